/**
 * Bytes that a job hands back beside its response: all of them are there when the response is, and nothing was copied.
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { openParcel } from "../../src/threads/parcel.ts";
import { openPool } from "../../src/threads/pool.ts";

const pool = openPool<typeof import("./jobs.ts")>({
  entry: new URL("./jobs.ts", import.meta.url),
  threads: 2,
  queueMax: 64,
  timeoutMs: 20_000,
  idleMs: 10_000,
});
afterAll(() => pool.close());

async function send(sizes: readonly number[]) {
  const parcel = openParcel();
  try {
    const job = { sizes, port: parcel.port };
    const left = await pool.run("parcels", job, { transfer: [parcel.port] });
    return { left, pieces: parcel.take() };
  } finally {
    parcel.close();
  }
}

test("what is sent is there with the response, whole and in order, from several threads at once", async () => {
  const rounds = Array.from({ length: 300 }, (_, round) => [round, 350_000, 0, 1 + (round % 7)]);
  await Promise.all(
    Array.from({ length: 4 }, async (_, slot) => {
      for (let round = slot; round < rounds.length; round += 4) {
        const sizes = rounds[round] ?? [];
        const { left, pieces } = await send(sizes);
        expect(left).toBe("0 0 0 0");
        expect(pieces?.map(({ length }) => length)).toEqual(sizes);
        expect(pieces?.every((piece, index) => piece.every((byte) => byte === index))).toBe(true);
      }
    }),
  );
});

test("a parcel of which nothing was sent is empty", async () => {
  const parcel = openParcel();
  await pool.run("add", { a: 1, b: 2 });
  expect(parcel.take()).toBeUndefined();
  parcel.close();
});
