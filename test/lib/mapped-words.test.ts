/**
 * Files in memory outside of the runtime's heaps: their words, what the runtime counts of them, and the end of a mapping.
 * @module
 */
import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { mapWords } from "../../src/lib/mapped-words.ts";
import { temporaryFolder } from "../store/folder.ts";

/** Words of the file of a test: 8 MiB. */
const length = 2 ** 21;

function writeWords(path: string): string {
  writeFileSync(
    path,
    new Uint32Array(length).map((_, index) => Math.imul(index, 2_654_435_761)),
  );
  return path;
}

const wordAt = (index: number) => Math.imul(index, 2_654_435_761) >>> 0;

/** Number of mappings of a file in this process. */
function mappingsOf(path: string): number {
  return readFileSync("/proc/self/maps", "utf8").split(`${path}\n`).length - 1;
}

/** Waits until the runtime has dropped what nothing refers to. */
async function waitFor(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) {
    await Bun.sleep(1);
    Bun.gc(true);
  }
}

test("a word is read at each index of a file, and 0 outside of it", () => {
  using folder = temporaryFolder();
  const words = mapWords(writeWords(`${folder.path}/words`));
  expect(words?.length).toBe(length);
  for (const index of [0, 1, 1_023, 1_024, length - 1]) expect(words?.at(index)).toBe(wordAt(index));
  for (const index of [-1, length, length + 1, 2 ** 40, Number.NaN]) expect(words?.at(index)).toBe(0);
});

test("bytes after the last complete word are no word", () => {
  using folder = temporaryFolder();
  writeFileSync(`${folder.path}/odd`, Uint8Array.of(1, 0, 0, 0, 9, 9, 9));
  const words = mapWords(`${folder.path}/odd`);
  expect([words?.length, words?.at(0), words?.at(1)]).toEqual([1, 1, 0]);
});

test("a missing file and an empty one have no words", () => {
  using folder = temporaryFolder();
  writeFileSync(`${folder.path}/empty`, "");
  expect(mapWords(`${folder.path}/empty`)).toBeUndefined();
  expect(mapWords(`${folder.path}/none`)).toBeUndefined();
  expect(() => mapWords(folder.path)).toThrow();
});

test("the runtime does not count the file, and unmaps it when nothing refers to its words", async () => {
  using folder = temporaryFolder();
  const path = writeWords(`${folder.path}/words`);
  const before = heapStats().extraMemorySize;
  // The function alone refers to them.
  const at = mapWords(path)?.at;
  const readOnce = () => {
    const other = mapWords(path);
    expect(other?.at(1)).toBe(wordAt(1));
    expect(mappingsOf(path)).toBe(2);
    expect(heapStats().extraMemorySize - before).toBeLessThan(2 ** 20);
  };
  readOnce();
  await waitFor(() => mappingsOf(path) === 1);
  expect(at?.(length - 1)).toBe(wordAt(length - 1));
});

test("a thread that ends leaves no mapping behind", async () => {
  using folder = temporaryFolder();
  const path = writeWords(`${folder.path}/words`);
  const source = `
    import { mapWords } from ${JSON.stringify(require.resolve("../../src/lib/mapped-words.ts"))};
    globalThis.words = mapWords(${JSON.stringify(path)});
    setInterval(() => undefined, 1_000);
    postMessage(globalThis.words.at(5));
  `;
  const thread = new Worker(URL.createObjectURL(new Blob([source], { type: "application/typescript" })));
  const word = await new Promise((resolve) => {
    thread.onmessage = ({ data }) => resolve(data);
  });
  expect([word, mappingsOf(path)]).toEqual([wordAt(5), 1]);
  thread.terminate();
  await waitFor(() => mappingsOf(path) === 0);
});
