/**
 * Forms whose names spell out the place of a value: `line_items[0][price_data][currency]=usd`.
 * @module
 */

/** A form's values by their places; lists are trees with numbers for names. */
export type FormTree = { readonly [name: string]: string | FormTree };

/** Fields of one form, steps of one name, characters of one value: far beyond what any call needs. */
const fieldsMax = 1_000;
const depthMax = 8;
const valueLengthMax = 5_000;

const namePattern = /^([^[\]]+)((?:\[[^[\]]*\])*)$/;

type Branch = { [name: string]: string | Branch };

/**
 * Reads a form.
 *
 * @returns `undefined` when a name is malformed, comes twice, is a value and a branch at once, or a limit is passed.
 */
export function readForm(text: string): FormTree | undefined {
  const root: Branch = Object.create(null);
  let fields = 0;
  for (const [name, value] of new URLSearchParams(text)) {
    fields += 1;
    if (fields > fieldsMax || value.length > valueLengthMax) return undefined;
    const steps = readSteps(name);
    if (steps === undefined || !put(root, steps, value)) return undefined;
  }
  return root;
}

/** The text at a place, or undefined. */
export function textAt(form: FormTree, ...place: readonly string[]): string | undefined {
  const found = at(form, place);
  return typeof found === "string" ? found : undefined;
}

/** The branch at a place; an empty one where there is none. */
export function branchAt(form: FormTree, ...place: readonly string[]): FormTree {
  const found = at(form, place);
  return typeof found === "object" ? found : {};
}

/** The values of a list or of a tree of texts. */
export function textsAt(form: FormTree, ...place: readonly string[]): string[] {
  return Object.values(branchAt(form, ...place)).filter((value) => typeof value === "string");
}

function at(form: FormTree, place: readonly string[]): string | FormTree | undefined {
  let found: string | FormTree | undefined = form;
  for (const step of place) found = typeof found === "object" ? found[step] : undefined;
  return found;
}

function readSteps(name: string): string[] | undefined {
  const match = namePattern.exec(name);
  if (match === null) return undefined;
  const rest = (match[2] ?? "").slice(1, -1);
  const steps = [match[1] ?? "", ...(match[2] === "" ? [] : rest.split("]["))];
  return steps.length > depthMax ? undefined : steps;
}

/** Puts a value at its place; a nameless step, `types[]`, is the next of a list. */
function put(root: Branch, steps: readonly string[], value: string): boolean {
  let branch = root;
  for (const [index, named] of steps.entries()) {
    const step = named === "" ? String(Object.keys(branch).length) : named;
    const found = branch[step];
    if (index === steps.length - 1) {
      if (found !== undefined) return false;
      branch[step] = value;
      return true;
    }
    if (typeof found === "string") return false;
    const next: Branch = found ?? Object.create(null);
    branch[step] = next;
    branch = next;
  }
  return false;
}
