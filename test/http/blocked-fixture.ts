/**
 * Content to block: a development chain with payloads that contain one another, occur twice, and are under paths.
 * @module
 */
import { writeBundle } from "../../src/arweave/bundle.ts";
import { createDataItem } from "../../src/arweave/data-item.ts";
import { type Id, idOfSignature, readId } from "../../src/arweave/id.ts";
import { createEd25519Signer } from "../../src/arweave/signers/ed25519.ts";
import type { Tag } from "../../src/arweave/tags.ts";
import { assert } from "../../src/lib/assert.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { sha256 } from "../../src/lib/hash.ts";
import type { ByteSpan } from "../../src/lib/range.ts";
import type { IndexReader } from "../../src/store/index/index-types.ts";
import { post, rsa, testBytes } from "../dev/devnet/support.ts";
import type { Stack } from "../support/stack.ts";

/** A payload and its position. */
export type Piece = Readonly<{
  name: string;
  id: Id;
  payload: Uint8Array;
  /** The transaction whose data contains the payload, and the offset. */
  rootId: Id;
  span: ByteSpan;
  format: 1 | 2;
  /** The paths of the manifest that lead to it. */
  paths: readonly string[];
}>;

/** Pieces whose names begin with `late` equal other ones, and no request has read them. */
export type Fixture = Readonly<{ pieces: ReadonlyMap<string, Piece>; manifest: Piece }>;

const signer = createEd25519Signer(new Uint8Array(32).fill(11));
const plain: readonly Tag[] = [{ name: "Content-Type", value: "text/plain" }];
const bundled: readonly Tag[] = [
  { name: "Bundle-Format", value: "binary" },
  { name: "Bundle-Version", value: "2.0.0" },
];

const payloads = {
  before: testBytes(270_000, 1),
  secret: testBytes(5_000, 2),
  after: testBytes(2_000, 3),
  inner: testBytes(700, 4),
  beside: testBytes(900, 5),
  twin: testBytes(400_000, 6),
  // Data of format 1 must not end with a digit.
  old: Uint8Array.from([...testBytes(20_000, 7), 0xff]),
} as const;

type Item = Readonly<{ id: Id; bytes: Uint8Array }>;

function makeItem(data: Uint8Array, tags: readonly Tag[]): Item {
  const bytes = createDataItem({ data, tags: [...tags] }, signer);
  return { id: idOfSignature(bytes.subarray(2, 2 + signer.scheme.signatureSize)), bytes };
}

/** Mines the fixture, and waits until the gateway has all of it. */
export async function makeFixture(stack: Stack): Promise<Fixture> {
  const { devnet } = stack;
  const ids = new Map<string, Id>();
  const item = (name: string, data: Uint8Array, tags = plain): Uint8Array => {
    const made = makeItem(data, [...tags, { name: "Name", value: name }]);
    ids.set(name, made.id);
    return made.bytes;
  };
  const transaction = async (name: string, data: Uint8Array, tags: readonly Tag[], format: 1 | 2 = 2) => {
    const posted = await post(devnet, rsa, { data, format, tags: [...tags, { name: "Name", value: name }] });
    ids.set(name, posted.id);
    return data;
  };

  const nested = item("nested", writeBundle([item("inner", payloads.inner), item("beside", payloads.beside)]), bundled);
  const parts = [
    item("before", payloads.before),
    item("secret", payloads.secret),
    nested,
    item("after", payloads.after),
  ];
  const bundle = await transaction("bundle", writeBundle(parts), bundled);
  const other = await transaction("other bundle", writeBundle([item("secret again", payloads.secret)]), bundled);
  await devnet.mine(1);
  for (const name of ["twin", "twin again", "late twin"]) await transaction(name, payloads.twin, plain);
  await transaction("old", payloads.old, plain, 1);
  await transaction("late old", payloads.old, plain);
  await devnet.mine(1);
  const named = [...ids].filter(([name]) => !name.startsWith("late"));
  const paths = Object.fromEntries(named.map(([name, id]) => [name.replaceAll(" ", "-"), { id }]));
  const manifestText = JSON.stringify({ manifest: "arweave/paths", version: "0.2.0", paths });
  const manifestBytes = new TextEncoder().encode(manifestText);
  await transaction("manifest", manifestBytes, [
    { name: "Content-Type", value: "application/x.arweave-manifest+json" },
  ]);
  await devnet.mine(1);
  await stack.settled();

  const whole: Readonly<Record<string, Uint8Array>> = {
    ...payloads,
    bundle,
    "other bundle": other,
    "secret again": payloads.secret,
    "twin again": payloads.twin,
    "late twin": payloads.twin,
    "late old": payloads.old,
    manifest: manifestBytes,
    nested: nested.subarray(nested.length - nestedSize()),
  };
  const pieces = new Map(
    [...ids].map(([name, id]) => {
      const payload = whole[name];
      assert(payload !== undefined, "every name has its payload");
      return [name, pieceOf(name, id, payload, name in paths || name.includes(" "), stack.gateway.reader)];
    }),
  );
  const manifest = pieces.get("manifest");
  assert(manifest !== undefined, "the manifest is one of them");
  return { pieces, manifest };
}

function nestedSize(): number {
  const items = [payloads.inner, payloads.beside].map((data, index) =>
    makeItem(data, [...plain, { name: "Name", value: ["inner", "beside"][index] ?? "" }]),
  );
  return writeBundle(items.map(({ bytes }) => bytes)).length;
}

function pieceOf(name: string, id: Id, payload: Uint8Array, hasPath: boolean, reader: IndexReader): Piece {
  const located = reader.locate(id);
  assert(located !== undefined && located.size === payload.length, `the index has ${name} with its size`);
  const { rootId, dataOffset, size, rootFormat = 2 } = located;
  const isListed = hasPath && !name.startsWith("late") && name !== "manifest";
  return {
    name,
    id,
    payload,
    rootId,
    span: { start: dataOffset, end: dataOffset + size },
    format: rootFormat,
    paths: isListed ? [name.replaceAll(" ", "-")] : [],
  };
}

/** The routes that give bytes of payloads, as they are registered. */
export const payloadRoutes: readonly string[] = [
  "/*",
  "/tx/:id",
  "/unconfirmed_tx/:id",
  "/tx/:id/:field",
  "/chunk/:offset",
  "/chunk/:offset/data",
  ...["/svc", "/ar-io"].map((prefix) => `${prefix}/proof/:id`),
  ...["social", "farcaster"].flatMap((word) => [`/local/${word}/frame/:id`, `/local/${word}/frame/:id/`]),
];

/** The hash under which a payload is rejected. */
export function hashOf(piece: Piece): string {
  return encodeBase64url(sha256(piece.payload));
}

/** An id of nothing. */
export function nobodys(): Id {
  const id = readId(encodeBase64url(sha256(new TextEncoder().encode("an unknown id"))));
  assert(id !== undefined, "a hash is an id");
  return id;
}
