/**
 * The words of a command line: ids and hashes that begin with a dash are not taken for options, and a word that a
 * command does not know is found before it is ignored.
 * @module
 */

/** What a command knows: names of options without their dashes, and how many words beside them. */
export type KnownWords = Readonly<{
  valued: readonly string[];
  flags: readonly string[];
  positionals: number;
}>;

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

/**
 * The first word that a command does not know, or `undefined`: a mistyped `--ephemeral` must not pass for none.
 *
 * @param words - What follows the command's name.
 */
export function unknownWord(words: readonly string[], { valued, flags, positionals }: KnownWords): string | undefined {
  const ends = words.indexOf("--");
  const [options, rest] = ends === -1 ? [words, []] : [words.slice(0, ends), words.slice(ends + 1)];
  const beside: string[] = [];
  for (let index = 0; index < options.length; index += 1) {
    const word = options[index] ?? "";
    const [name = "", value] = word.slice(2).split("=", 2);
    // A dash alone is standard input.
    if (!word.startsWith("-") || word === "-") beside.push(word);
    else if (word.startsWith("--") && valued.includes(name)) index += value === undefined ? 1 : 0;
    else if (!word.startsWith("--") || !flags.includes(name) || value !== undefined) return word;
  }
  return [...beside, ...rest][positionals];
}
