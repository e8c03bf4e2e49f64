/**
 * Ranges of content over the wire, compared byte for byte.
 *
 * The same vectors run against bodies in memory, in files (complete file and a slice of one), and at a source.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import type { Id } from "../../src/arweave/id.ts";
import type { OpenContent } from "../../src/content/opened-content.ts";
import type { GatewayOptions } from "../../src/http/gateway/gateway.ts";
import type { ByteSpan } from "../../src/lib/range.ts";
import { openGatewayServer, type WireResponse, wire } from "../support/gateway-server.ts";
import { createMemoryContent, type MemoryItem, patternBytes } from "../support/memory-content.ts";

const content = createMemoryContent();
const { server, close } = openGatewayServer({ content });
afterAll(async () => {
  await close();
  await content.close();
});

type Where = "memory" | "file" | "sliced file" | "source";
const small = 1_000;
const large = 2 ** 20 + 4_321;
const bodies = new Map<string, Buffer>();

function put(name: string, size: number, item: Omit<MemoryItem, "body">): string {
  const body = patternBytes(size);
  bodies.set(name, Buffer.from(body));
  return content.put(name, { body, contentType: "video/mp4", ...item });
}

const ids: Record<string, string> = {};
for (const size of [0, 1, small, large])
  for (const where of ["memory", "file", "sliced file", "source"] as const)
    ids[`${where} ${size}`] = put(`${where} ${size}`, size, {
      from: where === "sliced file" ? "file" : where,
      ...(where === "sliced file" ? { fileOffset: 777 } : {}),
    });

/** What a vector means for a body of a size: the whole of it, parts in order, or nothing there. */
type Meaning = "whole" | "nothing" | readonly (readonly [first: number, last: number])[];

const last = (size: number) => size - 1;

/** Header, and its meaning for a body of at least 1,000 bytes. */
const vectors: readonly (readonly [string, (size: number) => Meaning])[] = [
  ["bytes=0-0", () => [[0, 0]]],
  ["bytes=0-9", () => [[0, 9]]],
  ["bytes=10-19", () => [[10, 19]]],
  ["bytes=0-", (size) => [[0, last(size)]]],
  ["bytes=500-", (size) => [[500, last(size)]]],
  ["bytes=999-999", () => [[999, 999]]],
  ["bytes=0-999", () => [[0, 999]]],
  ["bytes=0-99999999", (size) => [[0, last(size)]]],
  ["bytes=990-99999999999999999999", (size) => [[990, last(size)]]],
  ["bytes=-1", (size) => [[last(size), last(size)]]],
  ["bytes=-100", (size) => [[size - 100, last(size)]]],
  ["bytes=-99999999", (size) => [[0, last(size)]]],
  ["bytes=-99999999999999999999", (size) => [[0, last(size)]]],
  ["Bytes=0-9", () => [[0, 9]]],
  ["BYTES=0-9", () => [[0, 9]]],
  ["bytes=007-009", () => [[7, 9]]],
  ["bytes=0-0 ", () => [[0, 0]]],
  ["bytes=99999999-", () => "nothing"],
  ["bytes=99999999-99999999", () => "nothing"],
  ["bytes=99999999999999999999-", () => "nothing"],
  ["bytes=-0", () => "nothing"],
  ["bytes=99999999-,-0", () => "nothing"],
  ["bytes=-", () => "whole"],
  ["bytes=", () => "whole"],
  ["bytes", () => "whole"],
  ["", () => "whole"],
  ["bytes=5-2", () => "whole"],
  ["bytes=0-9,5-2", () => "whole"],
  ["bytes=0-9,-", () => "whole"],
  ["bytes=a-b", () => "whole"],
  ["bytes=0-9x", () => "whole"],
  ["bytes=0x1-9", () => "whole"],
  ["bytes=+0-9", () => "whole"],
  ["bytes=0--9", () => "whole"],
  ["bytes=--9", () => "whole"],
  ["bytes=0-9-", () => "whole"],
  ["bytes=0.0-9", () => "whole"],
  ["bytes=1e1-20", () => "whole"],
  ["bytes=0 - 9", () => "whole"],
  ["bytes = 0-9", () => "whole"],
  ["bytes:0-9", () => "whole"],
  ["bytes 0-9", () => "whole"],
  ["0-9", () => "whole"],
  ["items=0-9", () => "whole"],
  ["bytes=0-9;bytes=10-19", () => "whole"],
  ["bytes=0-9,bytes=10-19", () => "whole"],
  ["bytes=,", () => "whole"],
  ["bytes=０-９", () => "whole"],
  [
    "bytes=0-1,5-6",
    () => [
      [0, 1],
      [5, 6],
    ],
  ],
  [
    "bytes=0-1, 5-6",
    () => [
      [0, 1],
      [5, 6],
    ],
  ],
  [
    "bytes=0-1 , 5-6",
    () => [
      [0, 1],
      [5, 6],
    ],
  ],
  [
    "bytes=5-6,0-1",
    () => [
      [5, 6],
      [0, 1],
    ],
  ],
  ["bytes=0-9,5-14", () => [[0, 14]]],
  ["bytes=5-14,0-9", () => [[0, 14]]],
  [
    "bytes=0-9,10-19",
    () => [
      [0, 9],
      [10, 19],
    ],
  ],
  ["bytes=0-9,0-9,0-9", () => [[0, 9]]],
  ["bytes=0-,0-", (size) => [[0, last(size)]]],
  [
    "bytes=0-1,-1",
    (size) => [
      [0, 1],
      [last(size), last(size)],
    ],
  ],
  ["bytes=0-1,99999999-", () => [[0, 1]]],
  ["bytes=99999999-,3-4,99999999-", () => [[3, 4]]],
  [`bytes=${list(16, (index) => `${index * 10}-${index * 10 + 1}`)}`, () => pairs(16)],
  [`bytes=${list(17, (index) => `${index * 10}-${index * 10 + 1}`)}`, () => "nothing"],
  [`bytes=${list(1_300, () => "0-0")}`, () => "nothing"],
  [`bytes=${list(16, () => "0-")}`, (size) => [[0, last(size)]]],
  [`bytes=${list(1_000, () => "0-")}`, () => "nothing"],
];

function list(count: number, part: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => part(index)).join(",");
}

function pairs(count: number): Meaning {
  return Array.from({ length: count }, (_, index) => [index * 10, index * 10 + 1] as const);
}

const header = (response: WireResponse, name: string) =>
  response.headers.filter(([found]) => found === name).map(([, value]) => value);

/** Checks a response against a meaning. */
function expectMeaning(response: WireResponse, meaning: Meaning, body: Buffer, headOnly: boolean): void {
  const size = body.length;
  const length = Number(header(response, "content-length")[0]);
  expect(header(response, "transfer-encoding")).toEqual([]);
  expect(header(response, "accept-ranges")).toEqual(["bytes"]);
  if (meaning === "nothing") {
    expect(response.status).toBe(416);
    expect(header(response, "content-range")).toEqual([`bytes */${size}`]);
    if (!headOnly) expect(response.body.toString()).toBe('"Range not satisfiable"');
  } else if (meaning === "whole") {
    expect(response.status).toBe(200);
    expect(header(response, "content-range")).toEqual([]);
    expect(length).toBe(size);
    if (!headOnly) expect(response.body.equals(body)).toBe(true);
  } else if (meaning.length === 1) {
    const [first, final] = meaning[0] ?? [0, 0];
    expect(response.status).toBe(206);
    expect(header(response, "content-range")).toEqual([`bytes ${first}-${final}/${size}`]);
    expect(length).toBe(final - first + 1);
    if (!headOnly) expect(response.body.equals(body.subarray(first, final + 1))).toBe(true);
  } else expectParts(response, meaning, body, length, headOnly);
}

function expectParts(
  response: WireResponse,
  parts: Exclude<Meaning, string>,
  body: Buffer,
  length: number,
  headOnly: boolean,
): void {
  expect(response.status).toBe(206);
  expect(header(response, "content-range")).toEqual([]);
  const boundary = /^multipart\/byteranges; boundary=([0-9a-f]{40})$/.exec(
    header(response, "content-type")[0] ?? "",
  )?.[1];
  expect(boundary).toBeDefined();
  const framed = parts.map(
    ([first, final]) =>
      [
        `--${boundary}\r\nContent-Type: video/mp4\r\nContent-Range: bytes ${first}-${final}/${body.length}\r\n\r\n`,
        body.subarray(first, final + 1),
      ] as const,
  );
  const expected = Buffer.concat([
    ...framed.flatMap(([head, bytes], index) => [Buffer.from(index === 0 ? head : `\r\n${head}`), bytes]),
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ]);
  expect(length).toBe(expected.length);
  if (!headOnly) expect(response.body.equals(expected)).toBe(true);
}

async function ask(method: string, id: string, range: string | undefined, more = ""): Promise<WireResponse> {
  const line = range === undefined ? "" : `\r\nRange: ${range}`;
  return await wire(server.port, `${method} /raw/${id} HTTP/1.1${line}${more}`);
}

describe.each([
  ["memory", small],
  ["memory", large],
  ["file", large],
  ["sliced file", large],
  ["source", large],
] as const)("R1, R2: a body in %s of %d bytes", (where: Where, size) => {
  const name = `${where} ${size}`;
  test.each(vectors)("Range %j", async (range, meaningOf) => {
    const body = bodies.get(name) ?? Buffer.alloc(0);
    const [got, head] = [await ask("GET", ids[name] ?? "", range), await ask("HEAD", ids[name] ?? "", range)];
    expectMeaning(got, meaningOf(size), body, false);
    expectMeaning(head, meaningOf(size), body, true);
    const said = (response: WireResponse) =>
      response.headers.filter(([found]) => !["date", "x-request-id"].includes(found));
    expect(new Map(said(head))).toEqual(new Map(said(got)));
    expect(head.body.length).toBe(0);
  });
});

describe("R2: an empty body", () => {
  test.each([
    [undefined, 200],
    ["bytes=0-", 416],
    ["bytes=0-0", 416],
    ["bytes=-1", 416],
    ["bytes=-", 200],
  ])("Range %j responds with %d", async (range, status) => {
    for (const where of ["memory", "file", "source"]) {
      const response = await ask("GET", ids[`${where} 0`] ?? "", range);
      expect(response.status).toBe(status);
      expect(header(response, "content-length")[0]).toBe(status === 200 ? "0" : String(response.body.length));
    }
  });
});

describe("R2: one byte", () => {
  test.each([
    ["bytes=0-", 206],
    ["bytes=-1", 206],
    ["bytes=-5", 206],
    ["bytes=1-", 416],
    ["bytes=0-0,0-0", 206],
  ])("Range %j responds with %d", async (range, status) => {
    const response = await ask("GET", ids["memory 1"] ?? "", range);
    expect(response.status).toBe(status);
    if (status === 206) expect(header(response, "content-range")).toEqual(["bytes 0-0/1"]);
  });
});

/** A body of 8 GiB, every byte of which is the lowest of its number. */
const vast = 2 ** 33;
const vastContent: GatewayOptions["content"] = {
  open: async (id, signal) => await openVast(id, signal),
  openIndexed: async (id, signal) => await openVast(id, signal),
};

async function openVast(id: Id, signal: AbortSignal): Promise<OpenContent> {
  const bytesOf = ({ start, end }: ByteSpan) =>
    Uint8Array.from({ length: end - start }, (_, index) => (start + index) % 256);
  async function* read(span: ByteSpan) {
    for (let start = span.start; start < span.end; start += 65_536)
      yield bytesOf({ start, end: Math.min(span.end, start + 65_536) });
  }
  const like = await content.open(id, signal);
  return { ...like, size: vast, file: async () => undefined, bytes: async (span) => bytesOf(span), read };
}

describe("R2: 8 GiB", () => {
  const vastServer = openGatewayServer({ content: vastContent });
  afterAll(() => vastServer.close());
  const askVast = (method: string, range: string) =>
    wire(vastServer.server.port, `${method} /raw/${ids["source 1"]} HTTP/1.1\r\nRange: ${range}`);
  const rows: readonly (readonly [string, number, number])[] = [
    ["bytes=0-9", 0, 9],
    ["bytes=4294967290-4294967299", 2 ** 32 - 6, 2 ** 32 + 3],
    ["bytes=-7", vast - 7, vast - 1],
    ["bytes=8589934590-", vast - 2, vast - 1],
    ["bytes=8589934591-99999999999999999999", vast - 1, vast - 1],
  ];
  test.each(rows)("Range %j", async (range, first, final) => {
    const [got, head] = [await askVast("GET", range), await askVast("HEAD", range)];
    for (const response of [got, head]) {
      expect([response.status, header(response, "content-range")]).toEqual([206, [`bytes ${first}-${final}/${vast}`]]);
      expect(header(response, "content-length")).toEqual([String(final - first + 1)]);
    }
    expect([...got.body]).toEqual(Array.from({ length: final - first + 1 }, (_, index) => (first + index) % 256));
  });
  test.each(["bytes=8589934592-", "bytes=8589934592-8589934593", "bytes=-0"])(
    "Range %j is nothing there",
    async (range) => {
      const response = await askVast("GET", range);
      expect([response.status, header(response, "content-range")]).toEqual([416, [`bytes */${vast}`]]);
    },
  );
  test("HEAD of all of it is its length, and reads none of it", async () => {
    expect(header(await askVast("HEAD", "bytes=-"), "content-length")).toEqual([String(vast)]);
  });
});

describe("R2: Range twice", () => {
  test("is ignored, because together the lines are no Range", async () => {
    const response = await ask("GET", ids[`memory ${small}`] ?? "", "bytes=0-1\r\nRange: bytes=4-5");
    expectMeaning(response, "whole", bodies.get(`memory ${small}`) ?? Buffer.alloc(0), false);
  });
});

describe.each(["memory", "file", "sliced file", "source"] as const)("R2: If-Range, a body in %s", (where) => {
  const name = `${where} ${large}`;
  const id = ids[name] ?? "";
  test.each([
    [`"${id}"`, 206],
    [`"${id}.u"`, 200],
    [`W/"${id}"`, 200],
    ['"other"', 200],
    ["*", 200],
    [id, 200],
    ["Sat, 21 Nov 2026 12:00:00 GMT", 200],
  ])("%s responds with %d", async (tag, status) => {
    for (const method of ["GET", "HEAD"]) {
      const response = await ask(method, id, "bytes=10-19", `\r\nIf-Range: ${tag}`);
      const body = bodies.get(name) ?? Buffer.alloc(0);
      expectMeaning(response, status === 200 ? "whole" : [[10, 19]], body, method === "HEAD");
    }
  });
});

test("R2: a Range is not heeded where nothing is got", async () => {
  const response = await wire(
    server.port,
    `POST /raw/${ids["memory 1"]} HTTP/1.1\r\nRange: bytes=0-0\r\nContent-Length: 0`,
  );
  expect(response.status).toBe(405);
});

test("a range of a large body at a source reads only that range", async () => {
  content.sourceReads.length = 0;
  await ask("GET", ids[`source ${large}`] ?? "", "bytes=600000-600009");
  expect(content.sourceReads).toEqual([{ start: 600_000, end: 600_010 }]);
});
