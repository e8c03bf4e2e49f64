/**
 * Cursors of the journal as text.
 * @module
 */

/** A position in a journal. */
export type Cursor = Readonly<{ journal: string; number: number }>;

const cursorPattern = /^([0-9a-f]{12})-(0|[1-9][0-9]{0,14})$/;

/** Returns undefined for a text that is not a cursor. */
export function readCursor(text: string): Cursor | undefined {
  const [, journal, number] = cursorPattern.exec(text) ?? [];
  return journal === undefined || number === undefined ? undefined : { journal, number: Number(number) };
}

export function cursorText({ journal, number }: Cursor): string {
  return `${journal}-${number}`;
}
