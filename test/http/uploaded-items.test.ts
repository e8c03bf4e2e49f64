/**
 * Uploaded items that are in no block yet, at the gateway: blocked on every route before and after their block, with
 * the same responses before and after except for the fields of the block, and complete in queries and frames.
 * Source: docs/reference/gateway.md#verification; docs/reference/gateway.md#block-list; docs/reference/threats.md (P1).
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDataItem } from "../../src/arweave/data-item.ts";
import { type Id, idOfSignature } from "../../src/arweave/id.ts";
import { type Proof, readProof } from "../../src/arweave/proof.ts";
import { verifyProof } from "../../src/arweave/proof-verify.ts";
import { createEd25519Signer } from "../../src/arweave/signers/ed25519.ts";
import type { Tag } from "../../src/arweave/tags.ts";
import { sandboxLabel } from "../../src/http/hosts.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { testBytes } from "../dev/devnet/support.ts";
import { eventually } from "../support/until.ts";
import { openUploadStack, sendItem, statusOf, type UploadStack } from "../support/upload-stack.ts";
import { payloadRoutes } from "./blocked-fixture.ts";

const key = "key-of-uploads";
const root = "gateway.test";
const plain: readonly Tag[] = [{ name: "Content-Type", value: "text/plain" }];
const manifestType = "application/x.arweave-manifest+json";

const folder = mkdtempSync(join(tmpdir(), "cairn-uploaded-"));
const namesFile = join(folder, "names.json");
const signer = createEd25519Signer(new Uint8Array(32).fill(23));

function itemOf(data: Uint8Array, tags: readonly Tag[]) {
  const bytes = createDataItem({ data, tags: [...tags] }, signer);
  const signature = bytes.subarray(2, 2 + signer.scheme.signatureSize);
  return { bytes, data, signature, id: idOfSignature(signature) };
}

const secret = itemOf(testBytes(5_000, 1), plain);
const twin = itemOf(secret.data, [...plain, { name: "Name", value: "the same under another id" }]);
const manifestText = JSON.stringify({
  manifest: "arweave/paths",
  version: "0.2.0",
  index: { path: "s" },
  paths: { s: { id: secret.id }, t: { id: twin.id } },
});
const manifest = itemOf(new TextEncoder().encode(manifestText), [{ name: "Content-Type", value: manifestType }]);
const others = {
  "an empty item": itemOf(new Uint8Array(0), plain),
  "a large item without a type": itemOf(testBytes(3_000_000, 2), []),
  "an item that is compressed": itemOf(Bun.gzipSync("hello hello hello"), [
    ...plain,
    { name: "Content-Encoding", value: "gzip" },
  ]),
  "an item with an invalid type": itemOf(testBytes(10, 3), [
    { name: "Content-Type", value: "text/html\r\nSet-Cookie: a=b" },
  ]),
  "a page": itemOf(new TextEncoder().encode("<p>page</p>"), [{ name: "Content-Type", value: "text/html" }]),
};
const all = { "a text": secret, "its twin": twin, "a manifest": manifest, ...others };

type Seen = Readonly<{ status: number; headers: Readonly<Record<string, string>>; body: Buffer }>;
/** Responses by request. */
type Observation = Readonly<{
  content: ReadonlyMap<string, Seen>;
  query: unknown;
  frame: Seen;
  proof: Seen;
  /** Requests with another response than 451 while an id or a hash was blocked. */
  leaks: readonly string[];
}>;

let stack: UploadStack;
let pending: Observation;
let mined: Observation;

beforeAll(async () => {
  writeFileSync(namesFile, JSON.stringify({ secret: secret.id, site: manifest.id }));
  stack = await openUploadStack({
    environment: { ADMIN_API_KEY: key, ARNS_ROOT_HOST: root, NAMES_FILE: namesFile },
  });
  const items = Object.values(all);
  for (const { bytes } of items) await sendItem(stack.uploads, bytes);
  // `look` blocks the secret for a while: an item whose bundle is not posted yet would fail for good.
  for (const { id } of items)
    await eventually(
      () => statusOf(stack.uploads, id),
      ({ bundleId }) => stack.devnet.pendingIds().some((posted) => posted === bundleId),
      30_000,
    );
  pending = await look();
  await stack.devnet.mine(1);
  for (const { id } of items)
    await eventually(
      async () => stack.gateway.reader.locate(id),
      (located) => located?.pending === false,
      30_000,
    );
  mined = await look();
}, 120_000);
afterAll(async () => {
  await stack.close();
  removeFolder(folder);
});

async function look(): Promise<Observation> {
  return {
    content: await seeAll(),
    query: await query(),
    frame: await ask(`/local/social/frame/${secret.id}`),
    proof: await ask(`/svc/proof/${secret.id}`),
    leaks: await findLeaks(),
  };
}

async function ask(path: string, init: RequestInit = {}, host = "localhost"): Promise<Seen> {
  const { port } = new URL(stack.content);
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    ...init,
    redirect: "manual",
    decompress: false,
    headers: { ...init.headers, Host: `${host}:${port}` },
  });
  const body = Buffer.from(await response.arrayBuffer());
  const { date, "x-request-id": requestId, ...headers } = Object.fromEntries(response.headers);
  return { status: response.status, headers, body };
}

/** Ways of asking for content. */
const ways = (id: Id): Readonly<Record<string, RequestInit>> => ({
  whole: {},
  head: { method: "HEAD" },
  range: { headers: { range: "bytes=2-5" } },
  "head of a range": { method: "HEAD", headers: { range: "bytes=2-5" } },
  suffix: { headers: { range: "bytes=-3" } },
  "beyond its end": { headers: { range: "bytes=99999999-" } },
  "its tag": { headers: { "if-none-match": `"${id}"` } },
  "its tag, weak, in a list": { headers: { "if-none-match": `"x", W/"${id}"` } },
  "any tag": { headers: { "if-none-match": "*" } },
  "another tag": { headers: { "if-match": '"x"' } },
  "a range of what is had": { headers: { range: "bytes=0-1", "if-range": `"${id}"` } },
  "a range of what is old": { headers: { range: "bytes=0-1", "if-range": '"x"' } },
});

async function seeAll(): Promise<ReadonlyMap<string, Seen>> {
  const seen = new Map<string, Seen>();
  for (const [name, { id }] of Object.entries(all))
    for (const prefix of ["/", "/raw/"])
      for (const [way, init] of Object.entries(ways(id)))
        seen.set(`${name}, ${prefix}, ${way}`, await ask(`${prefix}${id}`, init));
  return seen;
}

async function query(): Promise<unknown> {
  const fields =
    "id signature signatureType anchor recipient fee { winston } quantity { winston } owner { address key } " +
    "data { size type } tags { name value }";
  const ids = JSON.stringify(Object.values(all).map(({ id }) => id));
  const text = `{ transactions(ids: ${ids}, first: 100) { edges { node { ${fields} } } } }`;
  const response = await ask("/graphql", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query: text }),
  });
  const { data } = JSON.parse(response.body.toString());
  const nodes: { id: string }[] = data.transactions.edges.map(({ node }: { node: { id: string } }) => node);
  return nodes.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

type Asked = readonly [path: string, host?: string | undefined, init?: RequestInit];

/** How each route gives the bytes of an upload: its requests by host. A route that gives none of an item has none. */
const routes: Readonly<Record<string, readonly Asked[]>> = {
  "/*": [
    ...Object.values(ways(secret.id))
      .filter(({ headers }) => !JSON.stringify(headers ?? {}).includes("if-match"))
      .flatMap((init) => [`/${secret.id}`, `/raw/${secret.id}`].map((path) => [path, undefined, init] as const)),
    [`/${secret.id}/`],
    [`/raw/${secret.id}/`],
    [`/${manifest.id}/`],
    [`/${manifest.id}/s`],
    [`/%${secret.id.charCodeAt(0).toString(16)}${secret.id.slice(1)}`],
    [`/raw/${secret.id}`, undefined, { headers: { "x-ar-io-hops": "1" } }],
    [`/${secret.id}?download=1`],
    ["/", `${sandboxLabel(secret.id)}.${root}`],
    [`/raw/${secret.id}`, `${sandboxLabel(secret.id)}.${root}`],
    ["/s", `${sandboxLabel(manifest.id)}.${root}`],
    ["/", `secret.${root}`],
    ["/s", `site.${root}`],
  ],
  ...Object.fromEntries(
    ["social", "farcaster"].flatMap((word) =>
      ["", "/"].map((end) => {
        const path = `/local/${word}/frame/${secret.id}${end}`;
        return [`/local/${word}/frame/:id${end}`, [[path], [path, undefined, { headers: { accept: "text/plain" } }]]];
      }),
    ),
  ),
  ...Object.fromEntries(
    ["/svc", "/ar-io"].map((prefix) => [`${prefix}/proof/:id`, [[`${prefix}/proof/${secret.id}`]]]),
  ),
  // An item is not a transaction.
  "/tx/:id": [],
  "/tx/:id/:field": [],
  "/unconfirmed_tx/:id": [],
  // Chunks belong to transactions in blocks; blocked-routes.test.ts covers their content.
  "/chunk/:offset": [],
  "/chunk/:offset/data": [],
};

async function administer(path: string, body: object): Promise<void> {
  const { status } = await ask(`/svc/admin/${path}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  });
  expect(status).toBe(200);
}

/** Rejects the secret by id, by its hash, by the hash through its twin's id; and asks in every way each time. */
async function findLeaks(): Promise<string[]> {
  const leaks: string[] = [];
  const asked = Object.values(routes).flat();
  for (const rule of [{ id: secret.id }, { hash: encodeBase64url(sha256(secret.data)) }]) {
    for (const [path, host, init] of asked) {
      const { status } = await ask(path, init, host);
      if (status >= 400 && status !== 416) leaks.push(`${status} for ${host} ${path} before it was blocked`);
    }
    await administer("block-data", rule);
    for (const [path, host, init] of asked) {
      const { status, body } = await ask(path, init, host);
      if (status !== 451 || body.includes(Buffer.from(secret.data.subarray(0, 3))))
        leaks.push(`${status} for ${init?.method} ${host} ${path} ${JSON.stringify(init?.headers)}`);
    }
    const { status } = await ask(`/${twin.id}`);
    if (status !== ("hash" in rule ? 451 : 200)) leaks.push(`${status} for the twin`);
    await administer("unblock-data", rule);
  }
  return leaks;
}

describe("an upload that is rejected, by id or by hash", () => {
  test("is requested on every route that serves payloads", () => {
    expect(Object.keys(routes).toSorted()).toEqual(payloadRoutes.toSorted());
  });

  test("leaves by none of them before it is in a block", () => {
    expect(pending.leaks).toEqual([]);
  });

  test("leaves by none of them after", () => {
    expect(mined.leaks).toEqual([]);
  });
});

describe("the proof of an upload", () => {
  const outcome = (proof: Proof, bytes: Uint8Array) =>
    verifyProof({ id: secret.id, proof, bytes, anchor: { kind: "none" } }).outcome;

  test("shows its signature before it is in a block, and all of it after", () => {
    const [early, late] = [pending, mined].map(({ proof }) => readProof(proof.body.toString()));
    expect(early === undefined || late === undefined).toBeFalse();
    if (early === undefined || late === undefined) return;
    expect([outcome(early, secret.data), outcome(late, secret.data)]).toEqual(["signed", "proven"]);
    expect(early.signature).toEqual(late.signature);
  });

  test("is rejected with one bit changed of what it shows, or of the content", () => {
    const proof = readProof(pending.proof.body.toString());
    const shown = proof.signature;
    if (shown === undefined) throw new Error("the proof shows a signature");
    for (const field of ["signature", "owner", "tags"] as const) {
      const flipped = Uint8Array.from(shown[field]);
      flipped[flipped.length - 1] = (flipped.at(-1) ?? 0) ^ 1;
      const changed = { ...proof, signature: { ...shown, [field]: flipped } };
      expect(outcome(changed, secret.data), field).toBe("rejected");
    }
    expect(outcome({ ...proof, signature: undefined }, secret.data)).toBe("rejected");
    expect(outcome(proof, secret.data.with(7, 255 - (secret.data[7] ?? 0)))).toBe("rejected");
  });
});

describe("an upload that is in no block", () => {
  test("is served as it is afterwards, except for its place in a transaction", () => {
    expect(pending.content.size).toBe(Object.keys(all).length * 24);
    for (const [name, { status, headers, body }] of pending.content) {
      const later = mined.content.get(name);
      expect([name, status, body.length]).toEqual([name, later?.status ?? 0, later?.body.length ?? 0]);
      expect(body.equals(later?.body ?? Buffer.alloc(0)), name).toBeTrue();
      const place = /^x-ar-io-(root-|data-item-)/;
      const known = Object.entries(later?.headers ?? {}).filter(([header]) => !place.test(header));
      expect(headers, name).toEqual(Object.fromEntries(known));
    }
  });

  test("is verified, not stable, stored by others for a while only, and has its digest", () => {
    for (const [name, { id, data }] of Object.entries(all)) {
      const { status, headers } = pending.content.get(`${name}, /raw/, whole`) ?? mined.frame;
      expect([name, status]).toEqual([name, 200]);
      expect(headers, name).toMatchObject({
        etag: `"${id}"`,
        "cache-control": "public, max-age=7200",
        "x-ar-io-verified": "true",
        "x-ar-io-stable": "false",
        "x-ar-io-digest": encodeBase64url(sha256(data)),
        "content-digest": `sha-256=:${Buffer.from(sha256(data)).toString("base64")}:`,
      });
    }
  });

  test("has its signature and all else in queries, as it has afterwards", () => {
    expect(pending.query).toEqual(mined.query);
    const signatures = Object.values(all).map(({ id, signature }) => ({
      id,
      signature: encodeBase64url(signature),
    }));
    expect(pending.query).toMatchObject(signatures.toSorted((a, b) => (a.id < b.id ? -1 : 1)));
  });

  test("is framed by its own header, as it is afterwards", () => {
    expect([pending.frame.status, pending.frame.body.toString()]).toEqual([200, mined.frame.body.toString()]);
    expect(JSON.parse(pending.frame.body.toString())).toMatchObject({ format: 2, id: secret.id });
  });
});
