/**
 * Bodies as Stripe reads them: forms whose names spell out the place of a value, `line_items[0][quantity]=1`.
 * Source: Stripe's API reference, "application/x-www-form-urlencoded"; RFC 1866 §8.2.1.
 * @module
 */

/** What a form can say; `undefined` is left out. */
export type FormValue =
  | string
  | bigint
  | boolean
  | undefined
  | readonly FormValue[]
  | { readonly [name: string]: FormValue };

/** Writes a form. */
export function writeForm(fields: Readonly<Record<string, FormValue>>): string {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) append(form, name, value);
  return form.toString();
}

function append(form: URLSearchParams, name: string, value: FormValue): void {
  if (value === undefined) return;
  if (typeof value !== "object") {
    form.append(name, String(value));
    return;
  }
  // A list's places are its members' names.
  for (const [key, member] of Object.entries(value)) append(form, `${name}[${key}]`, member);
}
