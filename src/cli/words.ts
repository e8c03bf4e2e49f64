/**
 * The words of a command line, made such that ids and hashes which begin with a dash are not taken for options.
 * @module
 */

/** An id, or a block hash: base64url of 32 or 48 bytes, of which one in 64 begins with a dash. */
const dashedName = /^-(?:[A-Za-z0-9_-]{42}|[A-Za-z0-9_-]{63})$/;

/**
 * Joins a dashed name to the option before it, or puts it behind the word `--`, after which nothing is an option.
 *
 * @param words - What follows the command's name.
 * @param valued - Names of the options that take a value, without their dashes.
 */
export function shieldNames(words: readonly string[], valued: readonly string[]): string[] {
  const options = new Set(valued.map((name) => `--${name}`));
  const shielded: string[] = [];
  const names: string[] = [];
  for (const word of words) {
    const before = shielded.at(-1);
    if (!dashedName.test(word)) shielded.push(word);
    else if (before !== undefined && options.has(before)) shielded.splice(-1, 1, `${before}=${word}`);
    else names.push(word);
  }
  if (names.length === 0) return shielded;
  return shielded.includes("--") ? [...shielded, ...names] : [...shielded, "--", ...names];
}
