/**
 * Blocked content, by id and by hash, on every route that could serve its bytes: 451 on the reply to the
 * rejection and after a restart, as before once it is taken back.
 *
 * The routes are those that are registered: one that this table does not know fails the test until it is said whether,
 * and how, it carries content.
 * Source: docs/reference/gateway.md#block-list; docs/reference/threats.md (P1).
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Elysia } from "elysia";
import { sandboxLabel } from "../../src/http/hosts.ts";
import { textResponse } from "../../src/http/responses.ts";
import type { ByteSpan } from "../../src/lib/range.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openGatewayServer } from "../support/gateway-server.ts";
import { createMemoryContent } from "../support/memory-content.ts";
import { openStack, type Stack } from "../support/stack.ts";
import { eventually } from "../support/until.ts";
import { type Fixture, hashOf, makeFixture, type Piece, payloadRoutes } from "./blocked-fixture.ts";

const key = "matrix-key";
const root = "gateway.test";
const message = '"Blocked by this gateway\'s content policy"';

let stack: Stack;
let fixture: Fixture;

const folder = mkdtempSync(join(tmpdir(), "cairn-names-"));
const namesFile = join(folder, "names.json");

beforeAll(async () => {
  writeFileSync(namesFile, "{}");
  stack = await openStack({ ADMIN_API_KEY: key, ARNS_ROOT_HOST: root, NAMES_FILE: namesFile });
  fixture = await makeFixture(stack);
  const pieces = [...fixture.pieces.values()].map((piece) => [nameOf(piece), piece.id]);
  writeFileSync(namesFile, JSON.stringify({ site: fixture.manifest.id, ...Object.fromEntries(pieces) }));
  await eventually(
    () => ask(get("/svc/resolver/site", 200)),
    ({ status }) => status === 200,
  );
}, 120_000);
afterAll(async () => {
  await stack.close();
  removeFolder(folder);
});

/** The name that resolves to a piece. */
function nameOf({ name }: Piece): string {
  return name.replaceAll(" ", "-");
}

/** One request, and its status while nothing is rejected. */
type Probe = Readonly<{ head: string; host?: string; status: number }>;

/** A span of the bytes of a piece that is blocked. */
type Touched = Readonly<{ piece: Piece; span: ByteSpan }>;

/** Requests to a route that would serve a byte of the span; or would not, for `spared`. */
type Route = (touched: Touched) => readonly Probe[];

const get = (path: string, status: number, more = "", host?: string): Probe => ({
  head: `GET ${path} HTTP/1.1${more}`,
  status,
  ...(host === undefined ? {} : { host }),
});
const withHead = (probe: Probe): Probe[] => [probe, { ...probe, head: probe.head.replace("GET", "HEAD") }];
const range = (...spans: readonly ByteSpan[]) =>
  `\r\nRange: bytes=${spans.map(({ start, end }) => `${start}-${end - 1}`).join(",")}`;

/** Everything that can be asked at an address of a piece. */
function contentProbes(path: string, { piece, span }: Touched, host?: string): Probe[] {
  const size = piece.payload.length;
  const first = { start: span.start, end: span.start + 1 };
  const last = { start: span.end - 1, end: span.end };
  const far = span.start > 1 ? { start: 0, end: 1 } : { start: size - 1, end: size };
  return [
    ...fewProbes(path, { piece, span }, host),
    get(`${path}?download=1&filename=a.txt`, 200, "", host),
    get(path, 304, "\r\nIf-None-Match: *", host),
    get(path, 206, range(span), host),
    get(path, 206, range(last), host),
    get(path, 206, `\r\nRange: bytes=-${size - span.start}`, host),
    get(path, 206, `\r\nRange: bytes=${span.start}-`, host),
    get(path, 206, range(far, first), host),
    get(path, 206, range(first, far), host),
    get(path, 304, `${range(first)}\r\nIf-None-Match: "${piece.id}"`, host),
  ].flatMap(withHead);
}

/** What tells whether another spelling of an address leads past a rejection. */
function fewProbes(path: string, { piece, span }: Touched, host?: string): Probe[] {
  return [
    get(path, 200, "", host),
    get(path, 206, range({ start: span.start, end: span.start + 1 }), host),
    get(path, 304, `\r\nIf-None-Match: "${piece.id}"`, host),
  ];
}

const isTransaction = ({ id, rootId }: Piece) => id === rootId;

/** Chunks are halves of what is left of data where it is not much longer than one. */
function chunkProbes(path: (offset: bigint) => string): Route {
  return ({ piece, span }) => {
    const start = stack.gateway.reader.weaveSpan(piece.id)?.start;
    if (!isTransaction(piece) || start === undefined) return [];
    const offsets = [span.start, span.end - 1].map((byte) => start + BigInt(byte) + 1n);
    return offsets.flatMap((offset) => [
      ...withHead(get(path(offset), 200)),
      ...withHead(get(path(offset), 304, "\r\nIf-None-Match: *")),
    ]);
  };
}

const ofTransactions =
  (probe: (piece: Piece) => Probe): Route =>
  ({ piece }) =>
    isTransaction(piece) ? withHead(probe(piece)) : [];

/** The records of format 1 carry their data. */
const records =
  (path: string): Route =>
  ({ piece }) =>
    isTransaction(piece) && piece.format === 1 ? withHead(get(`/${path}/${piece.id}`, 200)) : [];

/** Proofs show the bytes of the chunks that contain a piece. */
const proofs =
  (prefix: string): Route =>
  ({ piece, span }) =>
    [
      get(`${prefix}/proof/${piece.id}`, 200),
      get(`${prefix}/proof/${piece.id}`, 200, range(span)),
      get(`${prefix}/proof/${piece.id}?range=${span.start}-${span.end - 1}`, 200),
    ].flatMap(withHead);

/** Frames show the content, and the record of a transaction of format 1 its data. */
const frames =
  (path: string): Route =>
  (touched) => {
    const { piece } = touched;
    if (piece === fixture.manifest) return [];
    const at = path.replace(":id", piece.id);
    return [get(at, 200), get(at, 200, "\r\nAccept: text/plain")].flatMap(withHead);
  };

/** Every route of the gateway: the requests by which it would serve a blocked byte. */
const routes: Readonly<Record<string, Route>> = {
  "/*": (touched) => {
    const { id, paths } = touched.piece;
    const isFolder = touched.piece === fixture.manifest;
    const escaped = `/%${id.charCodeAt(0).toString(16)}${id.slice(1)}`;
    const home = `${sandboxLabel(id)}.${root}`;
    const manifestHome = `${sandboxLabel(fixture.manifest.id)}.${root}`;
    const spellings = [`/raw/${id}/`, ...(isFolder ? [] : [`/${id}/`, escaped])];
    const athome = [`/raw/${id}`, ...(isFolder ? [] : ["/", `/${id}`])];
    return [
      ...contentProbes(isFolder ? `/raw/${id}` : `/${id}`, touched),
      ...spellings.flatMap((path) => fewProbes(path, touched)),
      ...(isFolder ? [] : contentProbes(`/raw/${id}`, touched)),
      ...athome.flatMap((path) => fewProbes(path, touched, home)),
      ...paths.flatMap((path) => [
        ...contentProbes(`/${fixture.manifest.id}/${path}`, touched),
        ...fewProbes(`/${path}`, touched, manifestHome),
        ...fewProbes(`/${path}`, touched, `site.${root}`),
      ]),
      ...(isFolder ? [] : fewProbes("/", touched, `${nameOf(touched.piece)}.${root}`)),
    ];
  },
  "/tx/:id": records("tx"),
  "/unconfirmed_tx/:id": records("unconfirmed_tx"),
  "/tx/:id/:field": ofTransactions(({ id }) => get(`/tx/${id}/data`, 200)),
  "/chunk/:offset": chunkProbes((offset) => `/chunk/${offset}`),
  "/chunk/:offset/data": chunkProbes((offset) => `/chunk/${offset}/data`),
  "/svc/proof/:id": proofs("/svc"),
  "/ar-io/proof/:id": proofs("/ar-io"),
  ...Object.fromEntries(
    ["social", "farcaster"].flatMap((word) =>
      [`/local/${word}/frame/:id`, `/local/${word}/frame/:id/`].map((path) => [path, frames(path)]),
    ),
  ),
};

/** Routes that carry no byte of any payload: headers, numbers, pages of our own, queries over names and tags. */
const payloadless: readonly RegExp[] = [
  /^\/(svc|ar-io)\/(info|peers|healthcheck|events|__gateway_metrics|admin\/.*|resolver\/:name|invalid-items\/:id)$/,
  /^\/(health|ready|metrics|info|height|peers|tx_anchor|current_block|graphql|tx|chunk|openapi\.json|api-docs|)$/,
  /^\/api-docs\/.*$/,
  /^\/svc\/(explorer(\/.*)?|verify\.js)$/,
  /^\/block\/(current|height\/:height|hash\/:hash)$/,
  /^\/tx\/(pending|:id\/status|:id\/offset)$/,
  /^\/(wallet|price)\/.*$/,
];

/** A blocked piece, and the pieces that contain a byte of it. */
type Target = readonly [name: string, rule: (piece: Piece) => Readonly<Record<string, string>>, piece: string];

const byId = ({ id }: Piece) => ({ id });
const byHash = (piece: Piece) => ({ hash: hashOf(piece) });
const targets: readonly Target[] = [
  ["an item by id", byId, "secret"],
  ["an item by hash, which is in another bundle, too", byHash, "secret"],
  ["an item of a bundle within a bundle", byId, "inner"],
  ["an item of a bundle within a bundle, by hash", byHash, "inner"],
  ["a bundle within a bundle", byId, "nested"],
  ["a bundle within a bundle, by hash", byHash, "nested"],
  ["a bundle", byId, "bundle"],
  ["a bundle by hash", byHash, "bundle"],
  ["a transaction in chunks", byId, "twin"],
  ["a transaction by hash, whose data is on the chain three times", byHash, "twin"],
  ["a transaction of format 1", byId, "old"],
  ["a transaction of format 1, by hash", byHash, "old"],
  ["a manifest", byId, "manifest"],
];

/** The pieces that contain blocked bytes. */
function touchedBy(blocked: Piece, isHash: boolean): Touched[] {
  const pieces = [...fixture.pieces.values()];
  const same = pieces.filter((piece) => piece === blocked || (isHash && hashOf(piece) === hashOf(blocked)));
  return pieces.flatMap((piece) => {
    const spans = same
      .filter(({ rootId }) => rootId === piece.rootId)
      .map((one) => ({
        start: Math.max(0, one.span.start - piece.span.start),
        end: Math.min(piece.payload.length, one.span.end - piece.span.start),
      }));
    return spans.filter(({ start, end }) => start < end).map((span) => ({ piece, span }));
  });
}

async function ask({ head, host }: Probe): Promise<Readonly<{ status: number; body: string }>> {
  const [first = "", ...lines] = head.split("\r\n");
  const [method = "", path = ""] = first.split(" ");
  const headers = lines.map((line): [string, string] => {
    const [name = "", value = ""] = line.split(": ");
    return [name, value];
  });
  const response = await fetch(`http://127.0.0.1:${stack.port}${path}`, {
    method,
    headers: [...headers, ["Host", `${host ?? "localhost"}:${stack.port}`]],
    redirect: "manual",
  });
  return {
    status: response.status,
    body: response.status === 451 ? await response.text() : await drained(response),
  };
}

/** Reads a body to its end, so that its connection can be used again. */
async function drained(response: Response): Promise<string> {
  await response.arrayBuffer();
  return "";
}

async function put(path: string, body: object): Promise<void> {
  const response = await fetch(`${stack.gateway.url}/svc/admin/${path}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  });
  expect([response.status, await response.text()]).toEqual([200, ""]);
}

/** Sends all probes, a few at a time; returns those with another status, and their responses. */
async function unexpected(probes: readonly Probe[], status: (probe: Probe) => number): Promise<string[]> {
  const faults: string[] = [];
  const left = [...probes];
  const work = async () => {
    for (let probe = left.pop(); probe !== undefined; probe = left.pop()) {
      const response = await ask(probe);
      const isRight = response.status === status(probe);
      const isSilent = response.status !== 451 || probe.head.startsWith("HEAD") || response.body === message;
      if (!isRight || !isSilent)
        faults.push(`${probe.host ?? ""} ${probe.head.replaceAll("\r\n", " | ")}: ${response.status}`);
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
  return faults;
}

describe("the table of routes", () => {
  test("knows every route that is registered", async () => {
    const content = createMemoryContent();
    const graphql = new Elysia().get("/graphql", () => textResponse("")).post("/graphql", () => textResponse(""));
    const { gateway, close } = openGatewayServer({ content, graphql });
    const registered = [...new Set(gateway.app.routes.map(({ path }) => path))];
    const unknown = registered.filter(
      (path) => routes[path] === undefined && !payloadless.some((pattern) => pattern.test(path)),
    );
    await close();
    await content.close();
    // Say above how such a route gives a byte of a piece, or that it gives none.
    expect(unknown).toEqual([]);
    expect(Object.keys(routes).filter((path) => !registered.includes(path))).toEqual([]);
    expect(Object.keys(routes).toSorted()).toEqual(payloadRoutes.toSorted());
  });
});

describe("P1: the matrix", () => {
  test.each(targets)(
    "%s",
    async (_name, rule, name) => {
      const blocked = fixture.pieces.get(name);
      if (blocked === undefined) throw new Error("the fixture has the blocked piece");
      const body = rule(blocked);
      const touched = touchedBy(blocked, body["hash"] !== undefined);
      const probes = Object.values(routes).flatMap((route) => touched.flatMap(route));
      const warm = probes.filter(({ head, host }) => !isLate(head, host));
      const spared = sparedBy(touched);
      expect(probes.length).toBeGreaterThan(20);

      const open = ({ status }: Probe) => status;
      expect(await unexpected([...warm, ...spared], open)).toEqual([]);
      await put("block-data", body);
      expect(await unexpected(probes, () => 451)).toEqual([]);
      expect(await unexpected(spared, open)).toEqual([]);
      await stack.restart();
      await stack.settled();
      expect(await unexpected(probes, () => 451)).toEqual([]);
      expect(await unexpected(spared, open)).toEqual([]);
      await put("unblock-data", body);
      expect(await unexpected([...probes, ...spared], open)).toEqual([]);
    },
    120_000,
  );
});

describe("P1: a name that is rejected", () => {
  test("does not resolve, nor do its undernames, and resolves again when it is unblocked", async () => {
    const hosts = [`site.${root}`, `docs_site.${root}`];
    const paths = ["/", "/secret", "/nothing", "/svc/admin/debug"];
    const probes = [
      ...hosts.flatMap((host) => paths.flatMap((path) => withHead(get(path, 0, "", host)))),
      ...hosts.flatMap((host) => withHead(get("/secret", 0, "\r\nRange: bytes=0-9", host))),
      ...hosts.flatMap((host) => withHead(get("/secret", 0, "\r\nIf-None-Match: *", host))),
      ...["/svc", "/ar-io"].flatMap((prefix) => withHead(get(`${prefix}/resolver/SITE`, 0))),
    ];
    const statuses = () => Promise.all(probes.map(async (probe) => (await ask(probe)).status));
    const open = await statuses();
    expect(open).toContain(200);
    expect(open).not.toContain(451);
    await put("block-name", { name: "Site" });
    const blocked = probes.map(() => 451);
    expect(await statuses()).toEqual(blocked);
    await stack.restart();
    await stack.settled();
    expect(await statuses()).toEqual(blocked);
    // The content is not rejected, only that name for it.
    expect((await ask(get(`/${fixture.manifest.id}/secret`, 200))).status).toBe(200);
    await put("unblock-name", { name: "sitE" });
    expect(await statuses()).toEqual(open);
  }, 120_000);
});

/** Whether a probe requests content that was not read before: it stays unread until it is blocked. */
function isLate(head: string, host = ""): boolean {
  const late = [...fixture.pieces.values()].filter(({ name }) => name.startsWith("late"));
  if (late.some((piece) => host === `${nameOf(piece)}.${root}`)) return true;
  return late.some(({ id }) => head.includes(id) || head.includes(id.slice(1)) || host.startsWith(sandboxLabel(id)));
}

/** Ranges and chunks of the same pieces without a blocked byte or a byte of its item's header. */
function sparedBy(touched: readonly Touched[]): Probe[] {
  return touched.flatMap(({ piece, span }) => {
    const others = touched.filter((other) => other.piece === piece);
    if (others.length > 1 || span.start < 2_000) return [];
    const free = { start: 0, end: 100 };
    const probes = [`/${piece.id}`, `/raw/${piece.id}`].flatMap((path) => withHead(get(path, 206, range(free))));
    const start = stack.gateway.reader.weaveSpan(piece.id)?.start;
    const isApart = isTransaction(piece) && start !== undefined && span.start > 2 ** 18;
    return isApart ? [...probes, ...withHead(get(`/chunk/${start + 1n}`, 200))] : probes;
  });
}
