/**
 * The sample site put on a development chain: a bundle with pages, a picture, a bundle within it and a manifest, and a
 * large transaction beside it.
 * @module
 */
import { createHash } from "node:crypto";
import { writeBundle } from "../../arweave/bundle.ts";
import { createDataItem } from "../../arweave/data-item.ts";
import { type Id, idOfSignature } from "../../arweave/id.ts";
import { createArweaveSigner } from "../../arweave/signers/arweave.ts";
import { createEd25519Signer } from "../../arweave/signers/ed25519.ts";
import { createEthereumSigner } from "../../arweave/signers/ethereum.ts";
import type { Signer } from "../../arweave/signers/scheme.ts";
import { readWallet } from "../../arweave/wallet.ts";
import type { Node } from "../../chain/node.ts";
import type { JsonObject } from "../../lib/json.ts";
import { drawPicture } from "./picture.ts";
import { postData } from "./post.ts";
import { siteNotes, sitePages } from "./site.ts";
import { writeTones } from "./tones.ts";

/** Ids of the sample's content. */
export type Sample = Readonly<{ manifest: Id; sound: Id; bundle: Id }>;

/** About 15 MiB: what a player asks for in ranges. */
const soundSeconds = 180;

const bundleTags = [
  { name: "Bundle-Format", value: "binary" },
  { name: "Bundle-Version", value: "2.0.0" },
];

type Item = Readonly<{ path: string; id: Id; bytes: Uint8Array }>;

/**
 * Plants the site and waits until the node has taken all of it; mining is the chain's own business.
 *
 * @param key - JWK of a funded RSA wallet.
 * @param seed - From which the keys of the other signers are derived.
 * @throws Failure `source_failed` with what the node said.
 */
export async function plantSample(node: Node, key: JsonObject, seed: string, signal: AbortSignal): Promise<Sample> {
  const wallet = readWallet(key);
  const owner = createArweaveSigner(Object.fromEntries(Object.entries(key)));
  const sound = await postData(
    node,
    wallet,
    { data: writeTones(soundSeconds), tags: [{ name: "Content-Type", value: "audio/wav" }, appTag] },
    signal,
  );
  const pages = [
    ...sitePages.map(({ path, contentType, body }) => makeItem(path, contentType, body, owner)),
    makeItem("cairn.png", "image/png", drawPicture(), owner),
  ];
  const notes = siteNotes.map(({ path, contentType, body }, index) =>
    makeItem(path, contentType, body, noteSigner(index, seed)),
  );
  const nested = createDataItem({ data: writeBundle(notes.map(({ bytes }) => bytes)), tags: bundleTags }, owner);
  const manifest = makeManifest([...pages, ...notes], sound, owner);
  const parts = [...pages.map(({ bytes }) => bytes), nested, manifest.bytes];
  const bundle = await postData(node, wallet, { data: writeBundle(parts), tags: [...bundleTags, appTag] }, signal);
  return { manifest: manifest.id, sound, bundle };
}

const appTag = { name: "App-Name", value: "Cairn-Sample" };

function makeItem(path: string, contentType: string, data: Uint8Array | string, signer: Signer): Item {
  const bytes = createDataItem({ data, tags: [{ name: "Content-Type", value: contentType }, appTag] }, signer);
  const signature = bytes.subarray(2, 2 + signer.scheme.signatureSize);
  return { path, id: idOfSignature(signature), bytes };
}

function makeManifest(items: readonly Item[], sound: Id, signer: Signer): Item {
  const paths = Object.fromEntries([...items.map(({ path, id }) => [path, { id }]), ["tones.wav", { id: sound }]]);
  const about = items.find(({ path }) => path === "about");
  const manifest = {
    manifest: "arweave/paths",
    version: "0.2.0",
    index: { path: "index.html" },
    ...(about === undefined ? {} : { fallback: { id: about.id } }),
    paths,
  };
  return makeItem("", "application/x.arweave-manifest+json", JSON.stringify(manifest), signer);
}

/** Two kinds of key that are not the chain's own, so that a reader sees owners of different kinds. */
function noteSigner(index: number, seed: string): Signer {
  const key = createHash("sha256").update(`${seed}:sample note ${index}`).digest();
  return index % 2 === 0 ? createEd25519Signer(key) : createEthereumSigner(key);
}
