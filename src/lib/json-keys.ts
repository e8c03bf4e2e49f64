/**
 * Keys that a JSON text repeats within one object, which `JSON.parse` lets pass in silence.
 * @module
 */

/** One open object or list: the keys seen so far (none in a list), and where in it the scan stands. */
type Level = { readonly keys: Set<string> | undefined; step: string | number };

const tokenPattern = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|[{}[\],]/g;

/**
 * Finds the first key that stands twice in one object.
 *
 * @param text - A valid JSON text.
 * @returns The path of the repeated key, such as `$.and[0].tags`, or `undefined`.
 */
export function repeatedKey(text: string): string | undefined {
  const levels: Level[] = [];
  for (const [token, quoted, colon] of text.matchAll(tokenPattern)) {
    if (quoted === undefined) moveBy(token, levels);
    else if (colon !== undefined && !isNewKey(quoted, levels.at(-1))) return pathOf(levels);
  }
  return undefined;
}

function moveBy(token: string, levels: Level[]): void {
  if (token === "{") levels.push({ keys: new Set(), step: "" });
  else if (token === "[") levels.push({ keys: undefined, step: 0 });
  else if (token !== ",") levels.pop();
  else {
    const level = levels.at(-1);
    if (typeof level?.step === "number") level.step += 1;
  }
}

function isNewKey(quoted: string, level: Level | undefined): boolean {
  if (level?.keys === undefined) return true;
  const key: unknown = JSON.parse(quoted);
  level.step = String(key);
  if (level.keys.has(level.step)) return false;
  level.keys.add(level.step);
  return true;
}

function pathOf(levels: readonly Level[]): string {
  const steps = levels.map(({ step }) => (typeof step === "number" ? `[${step}]` : `.${step}`));
  return `$${steps.join("")}`;
}
