/**
 * Bytes in segments that no row names: of items that were rejected after they were written, or whose clients had left.
 * They are on the disk until their segment is removed, and count as stored until then. A restart forgets them.
 * @module
 */
export type UnnamedBytes = Readonly<{
  add: (item: Readonly<{ file: string; size: number }>) => void;
  /** Forgets those of a segment, which was removed. */
  forget: (file: string) => void;
  bytes: () => number;
}>;

export function createUnnamedBytes(): UnnamedBytes {
  const bySegment = new Map<string, number>();
  return {
    add: ({ file, size }) => {
      bySegment.set(file, (bySegment.get(file) ?? 0) + size);
    },
    forget: (file) => {
      bySegment.delete(file);
    },
    bytes: () => bySegment.values().reduce((sum, size) => sum + size, 0),
  };
}
