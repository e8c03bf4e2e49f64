/**
 * The known name that a mistyped name probably means, by edit distance.
 * @module
 */

/**
 * Finds the known name that is closest to a name.
 *
 * @param editsMax - Most inserted, deleted or replaced characters, inclusive.
 * @returns The first of the closest names, or `undefined` when all need more edits.
 */
export function nearestName(name: string, known: Iterable<string>, editsMax: number): string | undefined {
  let nearest: string | undefined;
  let fewest = editsMax + 1;
  for (const each of known) {
    const edits = editDistance(name, each, fewest);
    if (edits >= fewest) continue;
    nearest = each;
    fewest = edits;
  }
  return nearest;
}

/** Levenshtein distance: inserted, deleted and replaced UTF-16 code units; `limit` if it is at least that. */
function editDistance(left: string, right: string, limit: number): number {
  if (Math.abs(left.length - right.length) >= limit) return limit;
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= right.length; column += 1) {
      const same = left[row - 1] === right[column - 1] ? 0 : 1;
      current.push(
        Math.min((previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, (previous[column - 1] ?? 0) + same),
      );
    }
    // It only grows from row to row: most names differ in their first characters.
    if (Math.min(...current) >= limit) return limit;
    previous = current;
  }
  return Math.min(previous[right.length] ?? 0, limit);
}
