/**
 * A defence of the program, as the text whose removal a test must notice.
 * @module
 */

/** A row of the tables of this folder. */
export type Defence = Readonly<{
  /** The row of docs/reference/threats.md that it belongs to. */
  threat: string;
  /** The rejected, bounded or checked input. */
  name: string;
  /** Below the repository's root. */
  file: string;
  /** Occurs exactly once in the file. */
  text: string;
  /** Takes its place, so that the defence is gone. */
  instead: string;
  /** Files or folders of tests, at least one of which must fail then. */
  tests: readonly string[];
  /** Only tests whose names match, where the others take long. */
  only?: string;
}>;
