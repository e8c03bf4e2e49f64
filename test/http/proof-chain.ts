/**
 * A chain with one of everything that can be proven, the gateway that follows it, and what verifying takes.
 * @module
 */
import { writeBundle } from "../../src/arweave/bundle.ts";
import { createDataItem } from "../../src/arweave/data-item.ts";
import { type Address, type Id, idOfSignature } from "../../src/arweave/id.ts";
import { type Proof, readProof } from "../../src/arweave/proof.ts";
import { type Anchor, type ProofVerdict, verifyProof } from "../../src/arweave/proof-verify.ts";
import { createEd25519Signer } from "../../src/arweave/signers/ed25519.ts";
import { createEthereumSigner } from "../../src/arweave/signers/ethereum.ts";
import type { Signer } from "../../src/arweave/signers/scheme.ts";
import type { Wallet } from "../../src/arweave/wallet.ts";
import type { Devnet } from "../../src/dev/devnet/devnet.ts";
import { chunkPosts, ecdsa, post, rsa, statedOf, testBytes } from "../dev/devnet/support.ts";
import { testKey } from "../support/signers.ts";
import { openStack, type Stack } from "../support/stack.ts";
import { until } from "../support/until.ts";

/** Something that has an id and bytes. */
export type Planted = Readonly<{ id: Id; bytes: Uint8Array }>;

/** A data item: its content, and all of it. */
export type PlantedItem = Planted & Readonly<{ item: Uint8Array }>;

export const bundleTags = [
  { name: "Bundle-Format", value: "binary" },
  { name: "Bundle-Version", value: "2.0.0" },
];

export const ed25519 = createEd25519Signer(testKey(31));
export const ethereum = createEthereumSigner(testKey(32));

/** Makes an item. */
export function makeItem(bytes: Uint8Array, signer: Signer = ed25519, tags = bundleTags.slice(2)): PlantedItem {
  const item = createDataItem({ data: bytes, tags }, signer);
  return { id: idOfSignature(item.subarray(2, 2 + signer.scheme.signatureSize)), bytes, item };
}

/** Makes an item that is a bundle. */
export function makeNested(items: readonly PlantedItem[], signer: Signer = ethereum): PlantedItem {
  return makeItem(writeBundle(items.map(({ item }) => item)), signer, bundleTags);
}

/** Posts data as clients do, header first, then its chunks with a halved tail. */
export async function postChunked(
  devnet: Devnet,
  wallet: Wallet,
  bytes: Uint8Array,
  tags = bundleTags.slice(2),
): Promise<Planted> {
  const { id } = await post(devnet, wallet, { tags, stated: statedOf(bytes) });
  for (const chunk of chunkPosts(bytes)) {
    const outcome = devnet.postChunk(chunk);
    if (outcome.kind !== "stored") throw new Error(`the chain rejected a chunk: ${JSON.stringify(outcome)}`);
  }
  return { id, bytes };
}

/** Text as bytes. */
export function textBytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** The chain, its content, and the gateway. */
export type ProofChain = Readonly<{ stack: Stack; url: () => string } & Awaited<ReturnType<typeof plant>>>;

/** Opens the chain. Everything except `pending` is in block 1. */
export async function openProofChain(): Promise<ProofChain> {
  const stack = await openStack();
  const planted = await plant(stack);
  await stack.settled();
  return { stack, url: () => stack.gateway.url, ...planted };
}

async function plant({ devnet, gateway }: Stack) {
  const items = {
    small: makeItem(textBytes("A small item, first in its bundle.")),
    wide: makeItem(testBytes(300_000, 5), ethereum),
    note: makeItem(textBytes("A note in a bundle within a bundle.")),
    deep: makeItem(textBytes("Three bundles down."), ethereum),
    neighbour: makeItem(textBytes("Blocked bytes.")),
    empty: makeItem(new Uint8Array(0)),
    last: makeItem(textBytes("In the same chunk as blocked bytes.")),
  };
  const deepest = makeNested([items.deep]);
  const nested = makeNested([items.note, deepest], ed25519);
  const parts = [items.small, items.wide, nested, items.neighbour, items.empty, items.last];
  const tiny = [makeItem(textBytes("One.")), makeItem(textBytes("Two, which is proven byte by byte."))];
  const old = [makeItem(textBytes("In a transaction of the first format."))];
  const long = makeItem(testBytes(17 * 2 ** 20, 9));
  const oldData = testBytes(300_000, 3);
  oldData[oldData.length - 1] = 0;

  const chunked = await postChunked(devnet, rsa, testBytes(2 * 262_144 + 10_000));
  const bundle = await postChunked(devnet, rsa, writeBundle(parts.map(({ item }) => item)), bundleTags);
  const tinyBundle = await postChunked(devnet, rsa, writeBundle(tiny.map(({ item }) => item)), bundleTags);
  await postChunked(devnet, rsa, writeBundle([long.item]), bundleTags);
  const first = await post(devnet, rsa, { format: 1, data: oldData });
  await post(devnet, rsa, { format: 1, data: writeBundle(old.map(({ item }) => item)), tags: bundleTags });
  const transfer = await post(devnet, rsa, { target: ecdsa.address, quantity: 1_000n });
  await post(devnet, rsa, { format: 1, target: ecdsa.address, quantity: 1n });
  const curved = await postChunked(devnet, ecdsa, testBytes(300_000, 17));
  const curvedOther = await postChunked(devnet, ecdsa, testBytes(300_000, 19));
  const inCurved = makeItem(textBytes("In a bundle without a stated owner."));
  await postChunked(devnet, ecdsa, writeBundle([inCurved.item]), bundleTags);
  await devnet.mine(1);
  const other = await postChunked(devnet, rsa, testBytes(1_000, 11));
  await devnet.mine(1);
  const waiting = await postChunked(devnet, rsa, testBytes(5_000, 13));
  const waitingData = textBytes("Of the first format, and in no block yet.");
  const waitingFirst = await post(devnet, rsa, { format: 1, data: waitingData });
  for (const { id } of [waiting, waitingFirst]) await until(() => gateway.reader.locate(id) !== undefined);
  return {
    ...items,
    deepest,
    nested,
    long,
    chunked,
    bundle,
    tinyBundle,
    tiny: tiny[1] ?? items.small,
    old: old[0] ?? items.small,
    first: { id: first.id, bytes: oldData },
    transfer: { id: transfer.id, bytes: new Uint8Array(0) },
    other,
    /** Transactions with ECDSA signatures, of one size, and an item in a third. */
    curved,
    curvedOther,
    inCurved,
    pending: waiting,
    pendingFirst: { id: waitingFirst.id, bytes: waitingData },
  };
}

/** Asks for a proof. */
export async function askProof(url: string, id: string, range = ""): Promise<string> {
  const response = await fetch(`${url}/svc/proof/${id}${range === "" ? "" : `?range=${range}`}`);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`no proof: ${response.status} ${text}`);
  return text;
}

/** Checks a proof against the right bytes, or what is given instead. */
export function check(
  planted: Planted,
  text: string,
  given: Partial<{ anchor: Anchor; bytes: Uint8Array; whole: Uint8Array; owner: Address }> = {},
): ProofVerdict {
  const proof: Proof = readProof(text);
  const bytes = given.bytes ?? planted.bytes.subarray(proof.range.start, proof.range.end);
  return verifyProof({
    id: planted.id,
    proof,
    anchor: given.anchor ?? { kind: "none" },
    bytes,
    ...(given.owner === undefined ? {} : { owner: given.owner }),
    ...(given.whole === undefined ? {} : { whole: { kind: "bytes", bytes: given.whole } }),
  });
}
