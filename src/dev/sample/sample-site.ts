/**
 * The sample site that `cairn dev` posts to its chain: a bundle with pages, a picture, a nested bundle and a manifest,
 * and a large transaction. Data is posted as a client posts it: a signed transaction, then its chunks with proofs.
 * @module
 */
import { createHash } from "node:crypto";
import { writeBundle } from "../../arweave/bundle.ts";
import { createDataItem } from "../../arweave/data-item.ts";
import { type Id, idOfSignature } from "../../arweave/id.ts";
import { chunkSpans, createDataRoot } from "../../arweave/merkle.ts";
import { createArweaveSigner } from "../../arweave/signers/arweave.ts";
import { createEd25519Signer } from "../../arweave/signers/ed25519.ts";
import { createEthereumSigner } from "../../arweave/signers/ethereum.ts";
import type { Signer } from "../../arweave/signers/scheme.ts";
import type { Tag } from "../../arweave/tags.ts";
import { signTransaction } from "../../arweave/transaction-sign.ts";
import { readWallet, type Wallet } from "../../arweave/wallet.ts";
import type { Node, NodeResponse } from "../../chain/node.ts";
import { Failure } from "../../failures.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { utf8Bytes } from "../../lib/bytes.ts";
import type { JsonObject } from "../../lib/json.ts";
import { drawPicture, writeTones } from "./sample-media.ts";

/** Ids of the sample's content. */
export type Sample = Readonly<{ manifest: Id; sound: Id; bundle: Id }>;

/** About 15 MiB, which a player requests in ranges. */
const soundSeconds = 180;

const bundleTags = [
  { name: "Bundle-Format", value: "binary" },
  { name: "Bundle-Version", value: "2.0.0" },
];

type Item = Readonly<{ path: string; id: Id; bytes: Uint8Array }>;

/**
 * Posts the site, and waits until the node has accepted all of it. Does not wait for a block.
 *
 * @param key - JWK of a funded RSA wallet.
 * @param seed - Seed of the keys of the other signers.
 * @throws Failure `source_failed` with the node's response.
 */
export async function postSample(node: Node, key: JsonObject, seed: string, signal: AbortSignal): Promise<Sample> {
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

/** A file of the site: its path in the manifest, its type, its bytes. */
export type SiteFile = Readonly<{ path: string; contentType: string; body: string }>;

const style = `:root { color-scheme: light dark; font: 1rem/1.6 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 46rem; padding: 0 1.25rem 4rem; }
img { width: 100%; height: auto; border-radius: .75rem; margin: 1.5rem 0 .5rem; }
h1 { font-weight: 650; letter-spacing: -.02em; margin: 1.5rem 0 .25rem; }
nav a { margin-right: 1rem; }
audio { width: 100%; }
code { font-size: .9em; background: color-mix(in srgb, currentColor 10%, transparent); }
code { padding: .1em .35em; border-radius: .25em; }
.lead { opacity: .75; margin-top: 0; }`;

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="stylesheet" href="style.css">
</head>
<body>
<nav><a href="./">Home</a> <a href="about">About</a>
<a href="notes/1">Note 1</a> <a href="notes/2">Note 2</a></nav>
${body}
</body>
</html>
`;
}

const home = page(
  "A cairn",
  `<img src="cairn.png" width="960" height="480" alt="A cairn of six stones at dusk">
<h1>It stays where you put it</h1>
<p class="lead">This page is on your development chain: signed, bundled, mined, unbundled, verified, and served by
range.</p>
<p>The picture, the stylesheet and this page are data items of one bundle. The sound below is a transaction of its own,
fetched in chunks as the player asks for them; move the slider and watch <code>206 Partial Content</code>.</p>
<audio controls preload="metadata" src="tones.wav"></audio>
<p>The notes are one level deeper, in a bundle within the bundle. One manifest gives all of them their paths.</p>`,
);

const about = page(
  "About this site",
  `<h1>About this site</h1>
<p>The path <code>about</code> is in the manifest. A path that is not in the manifest shows the manifest's fallback,
which is this page too.</p>
<p>You can also find it by a query: <a href="/graphql">query the index</a>.</p>`,
);

/** The pages of the site, in the order of the bundle. */
export const sitePages: readonly SiteFile[] = [
  { path: "index.html", contentType: "text/html", body: home },
  { path: "about", contentType: "text/html", body: about },
  { path: "style.css", contentType: "text/css", body: style },
];

/** The notes in the nested bundle. */
export const siteNotes: readonly SiteFile[] = [
  {
    path: "notes/1",
    contentType: "text/plain; charset=utf-8",
    body: "A note in a bundle within a bundle.\n",
  },
  {
    path: "notes/2",
    contentType: "text/plain; charset=utf-8",
    body: "Another, signed by another kind of key.\n",
  },
];

/** Bytes that are hashed without a pause. */
const sliceBytes = 2 ** 20;

/**
 * Posts one format-2 transaction and all of its chunks.
 *
 * @throws Failure `source_failed` with the node's response.
 */
export async function postData(
  node: Node,
  wallet: Wallet,
  content: Readonly<{ data: Uint8Array; tags: readonly Tag[] }>,
  signal: AbortSignal,
): Promise<Id> {
  const { data, tags } = content;
  const root = createDataRoot(data.length, "halved");
  for (let at = 0; at < data.length; at += sliceBytes) {
    root.update(data.subarray(at, at + sliceBytes));
    await Bun.sleep(0);
  }
  const tree = root.finish();
  const transaction = signTransaction(
    {
      format: 2,
      lastTx: accepted("anchor", await node.anchor(signal)),
      reward: accepted("price", await node.price(data.length, undefined, signal)),
      tags,
      stated: { dataSize: data.length, dataRoot: tree.root },
    },
    wallet,
  );
  accepted("transaction", await node.postTx(utf8Bytes(transaction.text), signal));
  for (const [index, { start, end }] of chunkSpans(data.length, "halved").entries()) {
    if (start === end) continue;
    const chunk = {
      data_root: encodeBase64url(tree.root),
      data_size: String(data.length),
      data_path: encodeBase64url(tree.path(index)),
      offset: String(end - 1),
      chunk: encodeBase64url(data.subarray(start, end)),
    };
    accepted("chunk", await node.postChunk(utf8Bytes(JSON.stringify(chunk)), signal));
  }
  return transaction.id;
}

function accepted<Value>(what: string, response: NodeResponse<Value>): Value {
  if (response.kind === "ok") return response.value;
  throw new Failure("source_failed", { reason: `the node did not accept the ${what}`, response });
}
