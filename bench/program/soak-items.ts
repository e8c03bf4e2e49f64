/**
 * The items of the mixed load: made, uploaded in one request or in parts, and known to the reads of it.
 * @module
 */
import { createDataItem } from "../../src/arweave/data-item.ts";
import type { Signer } from "../../src/arweave/signers/scheme.ts";
import type { Random } from "../../test/support/random.ts";
import { jsonOf, type LoadClient } from "./soak-client.ts";

/** An upload, with what later checks need. */
export type KnownItem = Readonly<{
  id: string;
  size: number;
  digest: string;
  /** The item, if it is small enough to be sent again. */
  bytes: Uint8Array<ArrayBuffer> | undefined;
}>;

/** The newest uploads. */
export type KnownItems = Readonly<{
  add: (item: KnownItem) => void;
  any: () => KnownItem | undefined;
}>;

/** Number of newest uploads that reads choose from. */
const knownMax = 2_000;

/** Maximum size of items that are sent again. Bytes. */
const resentBytesMax = 64 * 2 ** 10;

/** Sizes of the data. Items of the smallest come again and again: their receipt is found by the header alone. */
const sizes = [0, 1, 900, 20_000, 100_000, 262_144, 300_000, 1_500_000, 4_000_000];

/** Data above this size can be damaged without an effect on the header. */
const damagedSizeMin = 100;

const partBytes = 5 * 2 ** 20;

export function createKnownItems(random: Random): KnownItems {
  const known: KnownItem[] = [];
  return {
    add: (item) => {
      known.push(item);
      if (known.length > knownMax) known.splice(0, known.length - knownMax);
    },
    any: () => known[random.below(known.length)],
  };
}

/** The steps of uploads. @param url - Of the upload service. */
export function createUploadSteps(
  { ask, wrong }: LoadClient,
  { url, random, signer, known }: Readonly<{ url: string; random: Random; signer: Signer; known: KnownItems }>,
) {
  const remember = (id: string, data: Uint8Array, bytes?: Uint8Array<ArrayBuffer>) =>
    known.add({ id, size: data.length, digest: digestOf(data), bytes });
  const sendAgain = async ({ id, bytes }: KnownItem) => {
    const again = await ask("upload again", `${url}/v1/tx/solana`, { method: "POST", body: bytes ?? null }, [200, 202]);
    const idAgain = again === undefined ? id : jsonOf(again).id;
    if (idAgain !== id) wrong("upload again: another id", idAgain);
  };
  return {
    /** Uploads an item; sometimes a known one again, or a damaged one, which must be rejected. */
    upload: async (): Promise<void> => {
      const sent = known.any();
      if (sent?.bytes !== undefined && random.below(10) === 0) return sendAgain(sent);
      const { item, data } = makeItem(random, signer, sizes[random.below(sizes.length)] ?? 0);
      if (data.length > damagedSizeMin && random.below(20) === 0) {
        item[item.length - 1] = (item[item.length - 1] ?? 0) ^ 1;
        await ask("invalid upload", `${url}/v1/tx/solana`, { method: "POST", body: item }, [400]);
        return;
      }
      const taken = await ask("upload", `${url}/v1/tx/solana`, { method: "POST", body: item });
      if (taken !== undefined) remember(jsonOf(taken).id, data, item.length <= resentBytesMax ? item : undefined);
    },
    /** Uploads an item of two to three parts. */
    uploadInParts: async (): Promise<void> => {
      const { item, data } = makeItem(random, signer, 2 * partBytes + random.below(partBytes));
      const chunks = `${url}/v1/chunks/solana`;
      const made = await ask("parts: create", `${chunks}/-1/-1?chunkSize=${partBytes}`);
      if (made === undefined) return;
      const upload = jsonOf(made).id;
      for (let at = 0; at < item.length; at += partBytes) {
        const body = item.subarray(at, at + partBytes);
        if ((await ask("parts: part", `${chunks}/${upload}/${at}`, { method: "POST", body })) === undefined) return;
      }
      const ended = await ask("parts: finalize", `${chunks}/${upload}/-1`, { method: "POST" });
      if (ended !== undefined) remember(jsonOf(ended).id, data);
    },
  };
}

export function digestOf(bytes: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(bytes).digest("base64url");
}

function makeItem(random: Random, signer: Signer, size: number) {
  const data = new Uint8Array(size);
  for (let at = 0; at < size; at += 65_536) crypto.getRandomValues(data.subarray(at, at + 65_536));
  const tags = [
    { name: "Content-Type", value: size % 2 === 0 ? "text/plain" : "application/octet-stream" },
    { name: "Kind", value: `kind-${random.below(5)}` },
  ];
  return { item: new Uint8Array(createDataItem({ data, tags }, signer)), data };
}
