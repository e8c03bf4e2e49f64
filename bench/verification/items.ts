/**
 * Data items: parsed headers and verified RSA items per second, against openssl on the same machine.
 * @module
 */
import { createHash, generateKeyPairSync } from "node:crypto";
import { checkItem, createDataItem, itemIdBytes, readItemFrame } from "../../src/arweave/data-item.ts";
import { createArweaveSigner } from "../../src/arweave/signers/arweave.ts";
import { assert } from "../../src/lib/assert.ts";
import { type Bench, type BenchSize, inOrder, median, type Outcome, perSecond, timed } from "../harness.ts";

const counts: Readonly<Record<BenchSize, { headers: number; items: number; rounds: number }>> = {
  small: { headers: 2_000, items: 20, rounds: 1 },
  large: { headers: 400_000, items: 4_000, rounds: 5 },
};

/** Parses headers and computes ids on one thread. */
export const headerBench: Bench = {
  name: "item headers",
  measure: async (size) => {
    const { headers, rounds } = counts[size];
    const item = makeItem();
    const digest = createHash("sha256");
    const walk = (): Outcome => {
      let last: Uint8Array = new Uint8Array(0);
      for (let index = 0; index < headers; index += 1) {
        const frame = readItemFrame(item, "lenient", item.length);
        assert(frame.kind === "frame", "the item is whole");
        last = itemIdBytes(item, frame);
      }
      return { amount: headers, digest: Buffer.from(last).toString("hex") };
    };
    const hashOnly = (): Outcome => {
      for (let index = 0; index < headers; index += 1) Bun.SHA256.hash(item.subarray(2, 514));
      return { amount: headers, digest: digest.copy().digest("hex") };
    };
    const { rate, against, ratio } = await inOrder(walk, hashOnly, rounds);
    return [
      {
        name: "item headers read, one thread",
        metric: perSecond(rate, "headers"),
        reference: `SHA-256 of the signature alone ${perSecond(against, "hashes")}`,
        ratio,
        target: "≥ 1 M headers/s",
      },
    ];
  },
};

/** Verifies complete items (header, hashes, signature), against RSA operations of openssl. */
export const verifyBench: Bench = {
  name: "item verification",
  measure: async (size) => {
    const { items, rounds } = counts[size];
    const batch = Array.from({ length: 16 }, makeItem);
    const check = (): Outcome => {
      let valid = 0;
      for (let index = 0; index < items; index += 1) {
        const item = batch[index % batch.length];
        assert(item !== undefined, "the batch is not empty");
        if (checkItem(item, "strict").kind === "item") valid += 1;
      }
      return { amount: items, digest: String(valid) };
    };
    await timed(check);
    const pairs: { rate: number; against: number }[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const against = opensslVerifies(size);
      const { rate, digest } = await timed(check);
      if (digest !== String(items)) throw new Error("a valid item was rejected");
      pairs.push({ rate, against });
    }
    const against = median(pairs.map((pair) => pair.against));
    return [
      {
        name: "RSA-4096 items verified, one thread",
        metric: perSecond(median(pairs.map(({ rate }) => rate)), "items"),
        reference: `openssl speed rsa4096 ${perSecond(against, "verifies")}`,
        ratio: median(pairs.map((pair) => pair.rate / pair.against)),
        target: "≥ 0.8",
      },
    ];
  },
};

const key = generateKeyPairSync("rsa", { modulusLength: 4_096 }).privateKey.export({ format: "jwk" });
const signer = createArweaveSigner(key);
let serial = 0;

function makeItem(): Uint8Array {
  serial += 1;
  const tags = [
    { name: "Content-Type", value: "application/octet-stream" },
    { name: "App-Name", value: "Bench" },
    { name: "Serial", value: String(serial) },
  ];
  return createDataItem({ data: new Uint8Array(1_024).fill(serial), tags }, signer);
}

/** Verifications per second by openssl on one thread. */
function opensslVerifies(size: BenchSize): number {
  const seconds = size === "small" ? "1" : "3";
  const { stdout } = Bun.spawnSync(["openssl", "speed", "-seconds", seconds, "rsa4096"], {
    stderr: "ignore",
  });
  const rate = /rsa 4096 bits\s+\S+\s+\S+\s+\S+\s+([\d.]+)/.exec(stdout.toString())?.[1];
  if (rate === undefined) throw new Error("openssl speed printed no rate");
  return Number(rate);
}
