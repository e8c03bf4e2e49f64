/**
 * The content cache on a real disk: stored bytes are returned, damaged bytes are not, old ones are evicted.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Id, idFromBytes } from "../../../src/arweave/id.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { silentLog } from "../../../src/lib/log.ts";
import { removeFolder } from "../../../src/lib/remove-folder.ts";
import { openExtentFiles } from "../../../src/store/extents/extent-files.ts";
import { openExtentMap } from "../../../src/store/extents/extent-map.ts";
import { createQuota } from "../../../src/store/extents/extent-quota.ts";
import { createRoots, startFlush } from "../../../src/store/extents/extent-roots.ts";
import { type Extents, openExtents } from "../../../src/store/extents/extents.ts";
import type { RootSpec } from "../../../src/store/root-spec.ts";
import { type Need, testWith } from "../../support/helpers.ts";
import { canMount, fillUp } from "../../support/small-disk.ts";

/** Only root can mount a disk of 4 MiB. */
const smallDisk: Need = { there: canMount(), what: "the right to mount a tmpfs" };

const mebibyte = 2 ** 20;
const step = 64 * 1024;
const folders: string[] = [];
const opened: Extents[] = [];

afterEach(async () => {
  for (const extents of opened.splice(0)) await extents.close();
  for (const folder of folders.splice(0)) removeFolder(folder);
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "cairn-extents-"));
  folders.push(folder);
  return folder;
}

function openIn(
  folder: string,
  limits: { bytesMax?: number; freeBytesMin?: number; free?: () => number } = {},
): Extents {
  const extents = openExtents({
    folder: join(folder, "content"),
    mapPath: join(folder, "content.sqlite"),
    bytesMax: limits.bytesMax ?? 2 ** 30,
    freeBytesMin: limits.freeBytesMin ?? 0,
    ...(limits.free && { freeBytesOf: async () => limits.free?.() ?? 0 }),
    clock: systemClock,
    log: silentLog,
  });
  opened.push(extents);
  return extents;
}

async function close(extents: Extents): Promise<void> {
  opened.splice(opened.indexOf(extents), 1);
  await extents.close();
}

/** Bytes that depend on position and seed. */
function bytesOf(seed: number, size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  let state = (seed + 1) * 2_654_435_761;
  for (let at = 0; at < size; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[at] = state >>> 24;
  }
  return bytes;
}

function idOf(seed: number): Id {
  return idFromBytes(bytesOf(seed, 32));
}

function rootOf(seed: number, size: number): RootSpec {
  return { id: idOf(seed), dataRoot: idOf(seed + 1_000_000), size };
}

async function store(extents: Extents, root: RootSpec, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; at += mebibyte) {
    expect(await extents.write(root, at, bytes.subarray(at, at + mebibyte))).toBe(true);
  }
}

async function readAll(extents: Extents, root: RootSpec): Promise<Uint8Array | undefined> {
  const whole = new Uint8Array(root.size);
  for (let at = 0; at < root.size; at += mebibyte) {
    const piece = await extents.read(root, { start: at, end: Math.min(root.size, at + mebibyte) });
    if (piece === undefined) return undefined;
    whole.set(piece, at);
  }
  return whole;
}

describe("write and read", () => {
  test("written bytes are read back, at any span", async () => {
    const extents = openIn(newFolder());
    const bytes = bytesOf(1, 3 * mebibyte + 777);
    const root = rootOf(1, bytes.length);
    await store(extents, root, bytes);
    const spans = [
      [0, 1],
      [0, step],
      [step - 1, step + 1],
      [mebibyte - 5, 2 * mebibyte - 5],
      [bytes.length - 1, bytes.length],
      [bytes.length - 777, bytes.length],
    ] as const;
    for (const [start, end] of spans) {
      expect(await extents.read(root, { start, end })).toEqual(bytes.subarray(start, end));
    }
    expect(extents.missing(root, { start: 0, end: bytes.length })).toEqual([]);
  });

  test("a step that was not completely written is missing, whichever parts were written", async () => {
    const extents = openIn(newFolder());
    const bytes = bytesOf(2, 4 * step);
    const root = rootOf(2, bytes.length);
    await extents.write(root, 100, bytes.subarray(100, step));
    expect(extents.missing(root, { start: 200, end: 300 })).toEqual([{ start: 0, end: step }]);
    expect(await extents.read(root, { start: 200, end: 300 })).toBeUndefined();
    await extents.write(root, 0, bytes.subarray(0, 100));
    expect(await extents.read(root, { start: 0, end: step })).toEqual(bytes.subarray(0, step));
  });

  test.each([
    ["in order", [0, 1, 2, 3, 4]],
    ["backwards", [4, 3, 2, 1, 0]],
    ["in any order", [2, 0, 4, 1, 3]],
  ])("pieces that end inside of steps make whole steps, %s", async (_name, order) => {
    const extents = openIn(newFolder());
    const bytes = bytesOf(3, 5 * 50_001);
    const root = rootOf(3, bytes.length);
    for (const index of order) {
      await extents.write(root, index * 50_001, bytes.subarray(index * 50_001, (index + 1) * 50_001));
    }
    expect(await readAll(extents, root)).toEqual(bytes);
  });

  test("parts that overlap count once", async () => {
    const extents = openIn(newFolder());
    const bytes = bytesOf(4, step);
    const root = rootOf(4, step);
    await extents.write(root, 0, bytes.subarray(0, 40_000));
    await extents.write(root, 30_000, bytes.subarray(30_000, 60_000));
    expect(extents.present(root, { start: 0, end: 1 })).toBe(false);
    await extents.write(root, 50_000, bytes.subarray(50_000));
    expect(await readAll(extents, root)).toEqual(bytes);
    expect(extents.stats().bytes).toBe(step);
  });

  test("a part of a step does not outlive the file to which it was written", async () => {
    const extents = openIn(newFolder());
    const bytes = bytesOf(6, step);
    const root = rootOf(6, step);
    await extents.write(root, 0, bytes.subarray(0, 40_000));
    await extents.remove(root);
    await extents.write(root, 40_000, bytes.subarray(40_000));
    expect(extents.present(root, { start: 0, end: 1 })).toBe(false);
    await extents.write(root, 0, bytes.subarray(0, 40_000));
    expect(await readAll(extents, root)).toEqual(bytes);
    expect(extents.stats().damagedSteps).toBe(0);
  });

  test("parts of a step that is present wait for no others", async () => {
    const extents = openIn(newFolder());
    const bytes = bytesOf(7, step);
    const root = rootOf(7, step);
    await store(extents, root, bytes);
    await extents.write(root, 0, bytes.subarray(0, 40_000));
    writeFileSync(extents.path(root), new Uint8Array(step));
    expect(await extents.read(root, { start: 0, end: 1 })).toBeUndefined();
    await extents.write(root, 40_000, bytes.subarray(40_000));
    expect(extents.present(root, { start: 0, end: 1 })).toBe(false);
  });

  test("roots with one data root and two sizes have two files", async () => {
    const extents = openIn(newFolder());
    const bytes = bytesOf(5, 100);
    const long = { ...rootOf(5, 100) };
    const short = { ...long, size: 60 };
    await store(extents, long, bytes);
    expect(extents.present(short, { start: 0, end: 60 })).toBe(false);
    expect(extents.path(long)).not.toBe(extents.path(short));
  });

  test("a data root that spells another transaction's id does not name its file", async () => {
    const extents = openIn(newFolder());
    const victim: RootSpec = { id: idOf(6), dataRoot: "", size: 100 };
    await store(extents, victim, bytesOf(6, 100));
    const forged: RootSpec = { id: idOf(7), dataRoot: idOf(6), size: 100 };
    expect(extents.present(forged, { start: 0, end: 100 })).toBe(false);
  });

  test("a root without data is always present and takes no space", async () => {
    const extents = openIn(newFolder());
    const root = rootOf(8, 0);
    expect(extents.present(root, { start: 0, end: 0 })).toBe(true);
    expect(extents.stats().bytes).toBe(0);
  });
});

describe("restart", () => {
  test("stored bytes, pins and digests survive a restart", async () => {
    const folder = newFolder();
    const bytes = bytesOf(10, 20 * mebibyte + 5);
    const root = rootOf(10, bytes.length);
    const first = openIn(folder);
    await store(first, root, bytes);
    first.setDigest(root, bytesOf(11, 32));
    await close(first);

    const second = openIn(folder);
    expect(await readAll(second, root)).toEqual(bytes);
    expect(second.digest(root)).toEqual(bytesOf(11, 32));
    expect(second.stats().bytes).toBe(20 * mebibyte + 4096);
  });

  test("roots that were not flushed before a crash are absent and their files removed; the others are present", async () => {
    const folder = newFolder();
    const stored = rootOf(12, mebibyte);
    const lost = rootOf(13, mebibyte);
    const first = openIn(folder);
    await store(first, stored, bytesOf(12, mebibyte));
    await first.flush();
    await close(first);
    const orphan = join(folder, "content", "ab", "ab".repeat(32));
    mkdirSync(join(folder, "content", "ab"), { recursive: true });
    writeFileSync(orphan, "left by a crash");

    const second = openIn(folder);
    expect(await readAll(second, stored)).toEqual(bytesOf(12, mebibyte));
    expect(second.present(lost, { start: 0, end: 1 })).toBe(false);
    await close(second);
    expect(existsSync(orphan)).toBe(false);
  });

  test("a root whose file could not be synced, for whatever reason, is released and written by the next flush", async () => {
    const map = openExtentMap(join(newFolder(), "content.sqlite"), () => undefined);
    const roots = createRoots(map, systemClock, silentLog);
    let isBroken = true;
    const sync = async () => {
      if (isBroken) throw new TypeError("a defect");
      return { kind: "synced" } as const;
    };
    const flush = startFlush({ map, roots, files: { sync }, log: silentLog });
    const root = roots.open("root", step);
    roots.add(root, 0, 1n);
    expect([await flush.run(), root.users, map.count()]).toEqual([false, 0, 0]);
    isBroken = false;
    expect([await flush.run(), root.users, roots.passedCount()]).toEqual([true, 0, 0]);
    expect(map.pages(map.root("root")?.root ?? 0)).toEqual([0]);
    flush.stop();
    map.close();
  });

  test("a root whose row could not be removed, as on a full disk, leaves the total once", async () => {
    const map = openExtentMap(join(newFolder(), "content.sqlite"), () => undefined);
    const full = () => {
      throw new Error("database or disk is full");
    };
    const roots = createRoots({ ...map, remove: full }, systemClock, silentLog);
    const flush = startFlush({ map, roots, files: { sync: async () => ({ kind: "synced" }) }, log: silentLog });
    for (const name of ["evicted", "other"]) roots.add(roots.open(name, step), 0, 1n);
    expect([await flush.run(), roots.totalBytes()]).toEqual([true, 2 * step]);
    // The rows still list it, so that it is chosen again.
    for (let round = 0; round < 3; round++) roots.forget("evicted");
    expect(roots.totalBytes()).toBe(step);
    flush.stop();
    map.close();
  });

  test("roots whose rows cannot be removed are evicted once", async () => {
    const map = openExtentMap(join(newFolder(), "content.sqlite"), () => undefined);
    const full = () => {
      throw new Error("database or disk is full");
    };
    const roots = createRoots({ ...map, remove: full }, systemClock, silentLog);
    const flush = startFlush({ map, roots, files: { sync: async () => ({ kind: "synced" }) }, log: silentLog });
    for (const name of ["one", "other"]) roots.add(roots.open(name, step), 0, 1n);
    expect(await flush.run()).toBe(true);
    const removed: string[] = [];
    const quota = createQuota({
      limits: { bytesMax: step, freeBytesMin: step },
      files: { remove: async (name) => void removed.push(name) },
      freeBytesOf: async () => 0,
      ...{ map, roots, clock: systemClock, log: silentLog },
    });
    expect([await quota.reserve(step), quota.evictedCount()]).toEqual([undefined, 2]);
    expect(removed.toSorted()).toEqual(["one", "other"]);
    flush.stop();
    map.close();
  });

  test("a damaged map is recreated, and nothing is served from it", async () => {
    const folder = newFolder();
    const root = rootOf(14, mebibyte);
    const first = openIn(folder);
    await store(first, root, bytesOf(14, mebibyte));
    await close(first);
    writeFileSync(join(folder, "content.sqlite"), bytesOf(15, 40_000));
    rmSync(join(folder, "content.sqlite-wal"), { force: true });

    const second = openIn(folder);
    expect(second.present(root, { start: 0, end: mebibyte })).toBe(false);
    await store(second, root, bytesOf(14, mebibyte));
    expect(await readAll(second, root)).toEqual(bytesOf(14, mebibyte));
  });
});

testWith(
  { there: existsSync("/proc/self/fd"), what: "a list of open files" },
  "a file whose close fails, as on a disk of the network, ends nothing else",
  async () => {
    const files = openExtentFiles(newFolder());
    const name = "ab".repeat(32);
    expect(await files.write(name, step, 0, bytesOf(130, step))).toEqual({ kind: "written" });
    const descriptor = readdirSync("/proc/self/fd").find((each) => isLinkTo(`/proc/self/fd/${each}`, files.path(name)));
    closeSync(Number(descriptor)); // the next close fails
    await files.remove(name);
    await files.close();
    expect(existsSync(files.path(name))).toBe(false);
  },
);

function isLinkTo(link: string, path: string): boolean {
  try {
    return readlinkSync(link) === path;
  } catch {
    return false; // closed meanwhile
  }
}

describe("damage", () => {
  const size = 3 * step + 100;
  const faults: readonly (readonly [string, (path: string, other: string) => Promise<void> | void])[] = [
    ["the first bit flipped", (path) => flip(path, 0)],
    ["a bit in the middle flipped", (path) => flip(path, Math.floor(size / 2))],
    ["the last bit flipped", (path) => flip(path, size - 1)],
    ["truncated to nothing", (path) => truncateSync(path, 0)],
    ["truncated by one byte", (path) => truncateSync(path, size - 1)],
    ["deleted", (path) => unlinkSync(path)],
    ["swapped with another", swap],
    ["replaced by a folder", (path) => replace(path, () => mkdirSync(path))],
    ["replaced by a full folder", (path) => replace(path, () => fullFolder(path))],
    ["replaced by a link to another", (path, other) => replace(path, () => symlinkSync(other, path))],
    ["filled with zeros", (path) => writeFileSync(path, new Uint8Array(size))],
  ];

  test.each(faults)("%s: never served, detected by a read, and repaired by a write", async (_name, fault) => {
    for (const when of ["at once", "after a restart"] as const) {
      const folder = newFolder();
      const bytes = bytesOf(20, size);
      const [root, other] = [rootOf(20, size), rootOf(21, size)];
      let extents = openIn(folder);
      await store(extents, root, bytes);
      await store(extents, other, bytesOf(21, size));
      await extents.flush();
      const paths = [extents.path(root), extents.path(other)] as const;
      if (when === "after a restart") await close(extents);
      await fault(...paths);
      if (when === "after a restart") extents = openIn(folder);

      const seen: (Uint8Array | undefined)[] = [];
      for (let at = 0; at < size; at += step) {
        const span = { start: at, end: Math.min(size, at + step) };
        const got = await extents.read(root, span);
        if (got !== undefined) expect(got).toEqual(bytes.subarray(span.start, span.end));
        seen.push(got);
      }
      // An open file stays readable after it was removed; a restart detects the loss.
      if (when === "after a restart") expect(seen).toContain(undefined);
      expect(await pathBytes(extents, root)).not.toEqual("wrong");

      await store(extents, root, bytes);
      expect(await readAll(extents, root)).toEqual(bytes);
      expect(await readAll(extents, other)).toBeOneOf([bytesOf(21, size), undefined]);
      await close(extents);
      extents = openIn(folder);
      expect(await readAll(extents, root)).toBeOneOf([bytes, undefined]);
    }

    /** The bytes that a reader of the path gets. */
    async function pathBytes(extents: Extents, root: RootSpec): Promise<"right" | "wrong" | "none"> {
      const path = await extents.file(root, { start: 0, end: size });
      if (path === undefined) return "none";
      return Buffer.compare(readFileSync(path), bytesOf(20, size)) === 0 ? "right" : "wrong";
    }
  });

  test.each([
    ["of 16 KiB and a byte", 0, 2 ** 14 + 1, true],
    ["of 64 KiB over two steps", step - 1, step, true],
    ["of 256 KiB over five steps", step - 1, 2 ** 18, true],
    ["up to the last byte", mebibyte + 5 - 20_000, 20_000, true],
    ["of 256 KiB and a byte", 0, 2 ** 18 + 1, false],
    ["that ends in a step that is absent", mebibyte + 5 - 20_000, 20_001, false],
  ])("a span %s is read at once only while it is right", async (_name, start, length, isRead) => {
    const extents = openIn(newFolder());
    const whole = rootOf(7, 2 * mebibyte);
    const root = { ...whole, size: start + length > mebibyte + 5 ? whole.size : mebibyte + 5 };
    const bytes = bytesOf(7, mebibyte + 5);
    await store(extents, root, bytes);
    const span = { start, end: start + length };
    const expected = bytes.slice(start, start + length);
    expect(extents.hot(root, span)).toEqual(isRead ? expected : undefined);
    if (!isRead) return;
    const path = await extents.file(root, span);
    await flip(path ?? "", start + length - 1);
    expect(extents.hot(root, span)).toBeUndefined();
    expect(extents.stats().damagedSteps).toBe(0);
    expect(await extents.read(root, span)).toBeUndefined();
    expect(extents.stats().damagedSteps).toBe(1);
  });

  test("a span is read at once only while its file is open", async () => {
    const folder = newFolder();
    const first = openIn(folder);
    const root = rootOf(8, mebibyte);
    await store(first, root, bytesOf(8, mebibyte));
    await close(first);
    const second = openIn(folder);
    const span = { start: 0, end: 20_000 };
    expect(second.hot(root, span)).toBeUndefined();
    expect(await second.read(root, span)).toEqual(bytesOf(8, mebibyte).slice(0, 20_000));
    expect(second.hot(root, span)).toEqual(bytesOf(8, mebibyte).slice(0, 20_000));
  });

  test("a path is not returned for a changed file, even when it was returned before", async () => {
    const extents = openIn(newFolder());
    const bytes = bytesOf(22, size);
    const root = rootOf(22, size);
    await store(extents, root, bytes);
    const whole = { start: 0, end: size };
    await Bun.sleep(60); // the clock of the file system advances
    const path = await extents.file(root, whole);
    expect(path).toBeString();
    expect(await extents.file(root, whole)).toBe(path ?? "");
    await flip(path ?? "", size - 1);
    expect(await extents.file(root, whole)).toBeUndefined();
    expect(await extents.file(root, { start: 0, end: step })).toBe(path ?? "");
    expect(extents.stats().damagedSteps).toBe(1);
  });

  test("a file that changed a moment ago is verified each time, because its change time may hide another change", async () => {
    const folder = newFolder();
    const extents = openExtents({
      folder: join(folder, "content"),
      mapPath: join(folder, "content.sqlite"),
      bytesMax: 2 ** 30,
      freeBytesMin: 0,
      clock: () => 0, // every change is a moment ago
      log: silentLog,
    });
    opened.push(extents);
    const root = rootOf(23, step);
    await store(extents, root, bytesOf(23, step));
    const mapped = Bun.mmap(extents.path(root));
    const keep = mapped[7] ?? 0;
    mapped[7] = keep; // the page is written to now, and later writes to it leave no trace
    await Bun.sleep(20);
    expect(await extents.file(root, { start: 0, end: step })).toBeString();
    mapped[7] = keep ^ 1;
    expect(await extents.file(root, { start: 0, end: step })).toBeUndefined();
  });

  test("C4: a file that was damaged while open, and replaced by another file, is dropped completely", async () => {
    const extents = openIn(newFolder());
    const [root, other] = [rootOf(24, size), rootOf(25, size)];
    await store(extents, root, bytesOf(24, size));
    await store(extents, other, bytesOf(25, size));
    const [path, otherPath] = [extents.path(root), extents.path(other)];
    expect(await readAll(extents, root)).toEqual(bytesOf(24, size));
    await flip(path, 3);
    renameSync(otherPath, path);
    expect(await extents.read(root, { start: 0, end: step })).toBeUndefined();
    expect(extents.stats().lostFiles).toBe(1);
    expect(extents.present(root, { start: step, end: size })).toBe(false);
  });

  test("a sample finds damage that no read has found", async () => {
    const folder = newFolder();
    const roots = Array.from({ length: 20 }, (_, index) => rootOf(30 + index, 2 * step));
    const first = openIn(folder);
    for (const [index, root] of roots.entries()) await store(first, root, bytesOf(30 + index, 2 * step));
    const paths = roots.map(first.path);
    await close(first);
    for (const path of paths.slice(1)) await flip(path, 5);
    for (const path of paths.slice(0, 1)) unlinkSync(path);
    const second = openIn(folder);
    let state = 7;
    const { compared, damaged } = await second.sample(100, () => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return state / 2 ** 32;
    });
    expect(compared).toBeGreaterThan(20);
    expect(damaged).toBeGreaterThan(5);
  });

  async function flip(path: string, at: number): Promise<void> {
    const file = await open(path, "r+");
    const byte = new Uint8Array(1);
    await file.read(byte, 0, 1, at);
    byte[0] = (byte[0] ?? 0) ^ 1;
    await file.write(byte, 0, 1, at);
    await file.close();
  }

  function swap(path: string, other: string): void {
    renameSync(path, `${path}.aside`);
    renameSync(other, path);
    renameSync(`${path}.aside`, other);
  }

  function replace(path: string, by: () => void): void {
    unlinkSync(path);
    by();
  }

  function fullFolder(path: string): void {
    mkdirSync(path);
    writeFileSync(join(path, "file"), "something");
  }
});

describe("quota", () => {
  test("the least recently used roots are evicted first; pinned and held roots stay", async () => {
    const folder = newFolder();
    let now = 1_000_000;
    const extents = openExtents({
      folder: join(folder, "content"),
      mapPath: join(folder, "content.sqlite"),
      bytesMax: 10 * mebibyte,
      freeBytesMin: 0,
      clock: () => now,
      log: silentLog,
    });
    opened.push(extents);
    const roots = Array.from({ length: 10 }, (_, index) => rootOf(40 + index, mebibyte));
    const at = (index: number) => roots[index] ?? rootOf(0, 0);
    for (const [index, root] of roots.entries()) {
      now += 60_000;
      await store(extents, root, bytesOf(40 + index, mebibyte));
    }
    extents.pin(at(1));
    const release = extents.hold(at(2));
    now += 60_000;
    expect(await readAll(extents, at(0))).toBeDefined();
    await extents.flush();
    const newcomer = rootOf(60, mebibyte);
    await store(extents, newcomer, bytesOf(60, mebibyte));

    const present = roots.map((root) => extents.present(root, { start: 0, end: mebibyte }));
    expect(present.slice(0, 3)).toEqual([true, true, true]); // just used, pinned, held
    expect(present[3]).toBe(false);
    expect(present.slice(6)).toEqual([true, true, true, true]);
    expect(existsSync(extents.path(at(3)))).toBe(false);
    expect(extents.stats().bytes).toBeLessThanOrEqual(10 * mebibyte);
    release();
  });

  test("a reader that has a file open can finish after the file was evicted", async () => {
    const extents = openIn(newFolder());
    const root = rootOf(61, mebibyte);
    await store(extents, root, bytesOf(61, mebibyte));
    const file = await open(extents.path(root), "r");
    await extents.remove(root);
    expect(existsSync(extents.path(root))).toBe(false);
    const bytes = await file.readFile();
    expect(Buffer.compare(bytes, bytesOf(61, mebibyte))).toBe(0);
    await file.close();
    expect(extents.present(root, { start: 0, end: 1 })).toBe(false);
  });

  test("the disk's minimum of free space is respected: content is evicted first", async () => {
    const used = () => extents.stats().bytes;
    const extents: Extents = openIn(newFolder(), {
      freeBytesMin: 5 * mebibyte,
      free: () => 10 * mebibyte - used(),
    });
    for (let index = 0; index < 20; index++) {
      const root = rootOf(70 + index, mebibyte);
      await extents.write(root, 0, bytesOf(70 + index, mebibyte));
      await extents.flush();
      expect(used()).toBeLessThanOrEqual(5 * mebibyte);
    }
    expect(extents.stats().evictedRoots).toBeGreaterThan(10);
  });

  testWith(
    smallDisk,
    "a full disk rejects writes, keeps what it has, and takes writes again once there is space",
    async () => {
      const folder = newFolder();
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=4m", "tmpfs", folder]);
      try {
        const extents = openIn(folder);
        const stored = rootOf(100, mebibyte);
        await store(extents, stored, bytesOf(100, mebibyte));
        await extents.flush();
        writeFileSync(join(folder, "others"), new Uint8Array(2.5 * mebibyte));
        const release = extents.hold(stored);
        const rejected = rootOf(101, mebibyte);
        expect(await extents.write(rejected, 0, bytesOf(101, mebibyte))).toBe(false);
        expect(extents.present(rejected, { start: 0, end: 1 })).toBe(false);
        expect(await readAll(extents, stored)).toEqual(bytesOf(100, mebibyte));
        // Now neither data nor rows can be written; changes stay unwritten until there is space.
        await Bun.sleep(2_100); // longer than the check of free space is cached
        const late = rootOf(103, 3 * step);
        await store(extents, late, bytesOf(103, 3 * step));
        const filler = await open(join(folder, "rest"), "w");
        await fillUp(filler);
        extents.pin(stored);
        expect(await extents.flush()).toBe(false);
        await extents.remove(rootOf(102, step));
        expect(await readAll(extents, stored)).toEqual(bytesOf(100, mebibyte));
        unlinkSync(join(folder, "rest"));
        unlinkSync(join(folder, "others"));
        await Bun.sleep(2_100); // longer than the check of free space is cached
        await store(extents, rejected, bytesOf(101, mebibyte));
        expect(await readAll(extents, rejected)).toEqual(bytesOf(101, mebibyte));
        release();
        expect(await extents.flush()).toBe(true);
        await close(extents);
        const again = openIn(folder);
        expect(await readAll(again, late)).toEqual(bytesOf(103, 3 * step));
        expect(await readAll(again, stored)).toEqual(bytesOf(100, mebibyte));
      } finally {
        for (const extents of opened.splice(0)) await extents.close();
        // Lazily: a statement that failed for lack of space keeps SQLite's file open beyond its close.
        execFileSync("umount", ["-l", folder]);
      }
    },
  );

  testWith(smallDisk, "a part of a step does not outlive a file that did not fit on the disk", async () => {
    const folder = newFolder();
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", folder]);
    try {
      const extents = openIn(folder);
      const root = rootOf(110, step);
      const bytes = bytesOf(110, step);
      expect(await extents.write(root, 0, bytes.subarray(0, 4_096))).toBe(true);
      await fillUp(await open(join(folder, "others"), "w"));
      expect(await extents.write(root, 4_096, bytes.subarray(4_096))).toBe(false);
      expect(existsSync(extents.path(root))).toBe(false);
      unlinkSync(join(folder, "others"));
      await Bun.sleep(2_100); // longer than writes pause after the disk was full
      expect(await extents.write(root, 4_096, bytes.subarray(4_096))).toBe(true);
      expect(extents.present(root, { start: 0, end: 1 })).toBe(false);
      await store(extents, root, bytes);
      expect(await readAll(extents, root)).toEqual(bytes);
    } finally {
      for (const extents of opened.splice(0)) await extents.close();
      execFileSync("umount", ["-l", folder]); // as above
    }
  });

  test("a disk whose free space cannot be measured rejects writes until it can be", async () => {
    let isBroken = true;
    const extents = openIn(newFolder(), {
      free: () => {
        if (isBroken) throw Object.assign(new Error("EIO: i/o error"), { code: "EIO", syscall: "statfs" });
        return 2 ** 30;
      },
    });
    const root = rootOf(120, step);
    expect(await extents.write(root, 0, bytesOf(120, step))).toBe(false);
    expect([extents.present(root, { start: 0, end: 1 }), extents.stats().rejectedWrites]).toEqual([false, 1]);
    isBroken = false;
    await store(extents, root, bytesOf(120, step));
  });

  test("a defect in the measurement of free space is an error of the write", async () => {
    const free = () => {
      throw new TypeError("a defect");
    };
    const extents = openIn(newFolder(), { free });
    await expect(extents.write(rootOf(121, step), 0, bytesOf(121, step))).rejects.toThrow("a defect");
  });

  test("a write for which no file can be evicted is rejected", async () => {
    const extents = openIn(newFolder(), { bytesMax: mebibyte });
    const old = rootOf(122, mebibyte);
    await store(extents, old, bytesOf(122, mebibyte));
    await extents.flush();
    const parent = dirname(extents.path(old));
    rmSync(parent, { recursive: true });
    symlinkSync(parent, parent);
    const root = rootOf(123, mebibyte);
    expect(await extents.write(root, 0, bytesOf(123, mebibyte))).toBe(false);
    unlinkSync(parent);
    await store(extents, root, bytesOf(123, mebibyte));
    expect(await readAll(extents, root)).toEqual(bytesOf(123, mebibyte));
  });

  test("a root larger than the budget is rejected without an error, and other roots are unaffected", async () => {
    const extents = openIn(newFolder(), { bytesMax: mebibyte });
    const small = rootOf(90, step);
    await store(extents, small, bytesOf(90, step));
    const release = extents.hold(small);
    const large = rootOf(91, 4 * mebibyte);
    expect(await extents.write(large, 0, bytesOf(91, mebibyte))).toBe(false);
    expect(extents.hasSpace()).toBe(false);
    expect(extents.stats().rejectedWrites).toBe(1);
    expect(await readAll(extents, small)).toEqual(bytesOf(90, step));
    release();
  });
});
