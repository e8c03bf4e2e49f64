/**
 * The words of a command line: ids that start with a dash, unknown options and missing arguments.
 * @module
 */

/** The options and arguments of a command. */
export type KnownWords = Readonly<{
  /** Options with a value, and flags; names without dashes. */
  valued: readonly string[];
  flags: readonly string[];
  /** Arguments in order; the first `required` must be given. */
  positionals: readonly string[];
  required: number;
}>;

/** An id or a block hash that starts with a dash: base64url of 32 or 48 bytes. */
const dashedName = /^-(?:[A-Za-z0-9_-]{42}|[A-Za-z0-9_-]{63})$/;

/**
 * Protects ids that start with a dash from being read as options: joins an id to the option before it with `=`, or
 * moves it behind `--`, after which no word is an option.
 *
 * @param words - The words after the command's name.
 * @param valued - Names of the options with a value, without dashes.
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

/** The first word that a command does not know, or `undefined`: citty would ignore a mistyped `--ephemeral`. */
export function unknownWord(words: readonly string[], known: KnownWords): string | undefined {
  const { unknown, beside } = sortWords(words, known);
  return unknown ?? beside[known.positionals.length];
}

/** The first required argument that is not given. */
export function missingArgument(words: readonly string[], known: KnownWords): string | undefined {
  return known.positionals.slice(0, known.required)[sortWords(words, known).beside.length];
}

/** The first unknown option, and the words that are neither options nor their values. */
function sortWords(words: readonly string[], { valued, flags }: KnownWords) {
  const ends = words.indexOf("--");
  const [options, rest] = ends === -1 ? [words, []] : [words.slice(0, ends), words.slice(ends + 1)];
  const beside: string[] = [];
  let unknown: string | undefined;
  for (let index = 0; index < options.length; index += 1) {
    const word = options[index] ?? "";
    const [name = "", value] = word.slice(2).split("=", 2);
    // A lone dash is standard input.
    if (!word.startsWith("-") || word === "-") beside.push(word);
    else if (word.startsWith("--") && valued.includes(name)) index += value === undefined ? 1 : 0;
    else if (!word.startsWith("--") || !flags.includes(name) || value !== undefined) unknown ??= word;
  }
  return { unknown, beside: [...beside, ...rest] };
}
