/**
 * Damage of the files of filters, and checks of them.
 * @module
 */
import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { filterFolderOf, isFilterFileSound, openFilterFile } from "../../../../src/store/index/parts/part-filter.ts";
import { createPartList, hasIdsApart, type PartInfo } from "../../../../src/store/index/parts/part-list.ts";
import { createPartKeyReads } from "../../../../src/store/index/parts/part-reads.ts";
import { closeDatabase, openForReading, prepareQuery } from "../../../../src/store/sqlite.ts";
import type { Random } from "../../../support/random.ts";
import { mergeSizes } from "./merge-steps.ts";

const cacheBytes = 2 ** 20;

/** Damages a share of the files of an index: removes them, cuts them short, or changes one byte. */
export function damageFilters(path: string, random: Random, share: number): void {
  const folder = filterFolderOf(path);
  for (const name of filesOf(folder)) {
    const file = join(folder, name);
    const bytes = readFileSync(file);
    const at = random.below(bytes.length);
    const change = (): void => writeFileSync(file, bytes.fill((bytes[at] ?? 0) ^ (1 + random.below(255)), at, at + 1));
    if (random.chance(share)) random.pick([() => rmSync(file), () => truncateSync(file, at), change])();
  }
}

/** Files of filters that no part names. `ofRepairs`: those of parts that have another filter or none. */
export function unnamedFilters(path: string): Readonly<{ all: readonly string[]; ofRepairs: readonly string[] }> {
  const db = openForReading(path, cacheBytes);
  try {
    type Row = Readonly<{ part: number; level: number; filter: string | null }>;
    const parts = prepareQuery<Row>(db, "SELECT part, level, filter FROM parts").all();
    const named = new Set(parts.map(({ filter }) => filter));
    const visible = new Set(parts.filter(({ level }) => level >= 0).map(({ part }) => part));
    const all = filesOf(filterFolderOf(path)).filter((name) => !named.has(name));
    return { all, ofRepairs: all.filter((name) => visible.has(Number.parseInt(name, 10))) };
  } finally {
    closeDatabase(db);
  }
}

/** Keys of parts that do not pass their filters, where these have files: look-ups would miss their rows. */
export function faultsOfFilters(path: string): string[] {
  return ofParts(path, (part, keys) => {
    const rows = hasIdsApart(part) ? part.count : undefined;
    const filters = part.filter === null ? undefined : openFilterFile(filterFolderOf(path), part.filter, rows);
    if (filters === undefined) return [];
    const ids = hasIdsApart(part) ? [...keys.ids(part)].filter((key) => filters.ids?.has(key) !== true) : [];
    const others = [...keys.keys(part)].filter((key) => !filters.keys.has(key));
    return [...ids, ...others].map((key) => `the filter ${part.filter} lacks the key ${key}`);
  });
}

/** The large parts of an index whose filters have no sound file. */
export function unsoundParts(path: string): number[] {
  return ofParts(path, ({ part, filter, count, keys }) => {
    if (keys === null || count < mergeSizes.filterFileRowsMin) return [];
    return filter !== null && isFilterFileSound(filterFolderOf(path), filter) ? [] : [part];
  });
}

function ofParts<Value>(
  path: string,
  read: (part: PartInfo, keys: ReturnType<typeof createPartKeyReads>) => readonly Value[],
): Value[] {
  const db = openForReading(path, cacheBytes);
  try {
    const keys = createPartKeyReads(db);
    return createPartList(db, () => undefined)
      .list()
      .flatMap((part) => read(part, keys));
  } finally {
    closeDatabase(db);
  }
}

/** In the order of their names, so that the same seed damages the same ones. */
function filesOf(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).sort() : [];
}
