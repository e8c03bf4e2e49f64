/**
 * Content over the wire: headers, caching and errors.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { Failure } from "../../src/failures.ts";
import { header, openGatewayServer, wire } from "../support/gateway-server.ts";
import { createMemoryContent, idOf, patternBytes } from "../support/memory-content.ts";
import { connectRaw } from "../support/raw-request.ts";
import { eventually } from "../support/until.ts";

const content = createMemoryContent();
let now = Date.now();
const { server, gateway, close, lines } = openGatewayServer({ content, clock: () => now });
afterAll(async () => {
  await close();
  await content.close();
});

const text = (value: string) => new TextEncoder().encode(value);
const large = 2 ** 20 + 17;
const cold = 9 * 2 ** 20 + 5;

const page = content.put("page", { body: text("<p>hello"), contentType: "text/html; charset=utf-8" });
const plain = content.put("plain", { body: text("plain"), contentType: "text/plain", digest: "known" });
const untyped = content.put("untyped", { body: text("bytes") });
const unstable = content.put("unstable", { body: text("new"), contentType: "text/plain", stable: false });
const unverified = content.put("unverified", {
  body: text("who knows"),
  contentType: "text/plain",
  verified: false,
});
const zipped = content.put("zipped", {
  body: Bun.gzipSync(text("zipped")),
  contentType: "text/plain",
  contentEncoding: "gzip",
});
const bigFile = content.put("big file", {
  body: patternBytes(large),
  from: "file",
  contentType: "image/png",
});
const bigPdf = content.put("big pdf", {
  body: patternBytes(large),
  from: "file",
  contentType: "application/pdf",
});
const bigScript = content.put("big script", {
  body: patternBytes(large),
  from: "file",
  contentType: "application/javascript; charset=utf-8",
});
const bigOctets = content.put("big octets", { body: patternBytes(large), from: "file", fileOffset: 100 });
const bigSource = content.put("big source", {
  body: patternBytes(cold),
  from: "source",
  contentType: "video/mp4",
});
const smallSource = content.put("small source", {
  body: patternBytes(70_000),
  from: "source",
  contentType: "image/gif",
});
const midSource = content.put("mid source", {
  body: patternBytes(3 * 2 ** 20),
  from: "source",
  contentType: "image/gif",
});
const breaking = content.put("breaking", {
  body: patternBytes(cold),
  from: "source",
  breaksAt: 4 * 2 ** 20,
  contentType: "video/mp4",
});
const broken = content.put("broken", { body: patternBytes(cold), from: "source", breaksAt: 0 });
const svg = content.put("svg", { body: text("<svg/>"), contentType: "image/svg+xml" });
const pdf = content.put("pdf", { body: text("%PDF"), contentType: "application/pdf" });
const hostile = content.put("hostile", { body: text("x"), contentType: "text/html\r\nSet-Cookie: a=b" });

const get = (path: string, more = "") => wire(server.port, `GET ${path} HTTP/1.1${more}`);
const head = (path: string, more = "") => wire(server.port, `HEAD ${path} HTTP/1.1${more}`);

describe("headers of content", () => {
  test("say what it is, that it was checked, and that it never changes", async () => {
    const response = await get(`/${plain}`, "\r\nX-Request-Id: r-1");
    const digest = createHash("sha256").update("plain").digest();
    expect(response.status).toBe(200);
    expect(response.body.toString()).toBe("plain");
    expect(Object.fromEntries(response.headers)).toEqual({
      "content-type": "text/plain; charset=utf-8",
      "content-length": "5",
      etag: `"${plain}"`,
      "cache-control": "public, max-age=2592000, immutable",
      "accept-ranges": "bytes",
      "x-content-type-options": "nosniff",
      "x-ar-io-data-id": plain,
      "x-ar-io-digest": digest.toString("base64url"),
      "content-digest": `sha-256=:${digest.toString("base64")}:`,
      "repr-digest": `sha-256=:${digest.toString("base64")}:`,
      "x-ar-io-verified": "true",
      "x-ar-io-stable": "true",
      "x-ar-io-trusted": "true",
      "x-ar-io-hops": "1",
      "x-cache": "HIT",
      "access-control-allow-origin": "*",
      "access-control-expose-headers": "*, Authorization",
      "x-request-id": "r-1",
      date: expect.any(String),
    });
  });

  const kinds: readonly (readonly [string, string])[] = [
    ["a page", page],
    ["text with a digest", plain],
    ["bytes without a type", untyped],
    ["what is not stable yet", unstable],
    ["unverified content", unverified],
    ["a coded body", zipped],
    ["a large file", bigFile],
    ["a large file without a type", bigOctets],
    ["a large body at a source", bigSource],
    ["a small body at a source", smallSource],
    ["a drawing", svg],
    ["a document", pdf],
    ["an invalid type", hostile],
  ];

  test.each(kinds)("of HEAD are those of GET: %s", async (_name, id) => {
    for (const path of [`/${id}`, `/raw/${id}`, `/${id}?download=1`, `/raw/${id}?filename=a.txt`]) {
      const rounds = [await get(path), await head(path), await get(path), await head(path)];
      const [first, headFirst, second, headSecond] = rounds.map((response) => {
        const said = Object.fromEntries(response.headers);
        // The first read of a body at a source differs from the next; a large body is sent without its length.
        const { date, "x-request-id": _id, "x-cache": _cache, ...rest } = said;
        expect(date).toBeDefined();
        return rest;
      });
      expect(headSecond).toEqual({ "content-length": expect.any(String), ...withoutFraming(second) });
      expect({ ...digests(first), ...headFirst }).toEqual({
        "content-length": expect.any(String),
        ...withoutFraming(first),
      });
    }
  });

  const withoutFraming = ({ "transfer-encoding": _framing, ...rest }: Record<string, string> = {}) => rest;
  const digests = (said: Record<string, string> = {}) =>
    Object.fromEntries(Object.entries(said).filter(([name]) => name.endsWith("digest")));

  test("of a small transaction have a digest once it was read", async () => {
    const digest = createHash("sha256").update("<p>hello").digest("base64url");
    await get(`/${page}`);
    expect(header(await head(`/${page}`), "x-ar-io-digest")).toBe(digest);
  });

  test("of a part have the digest of the whole, and none of the part", async () => {
    const response = await get(`/${plain}`, "\r\nRange: bytes=0-1");
    expect([header(response, "repr-digest") !== "", header(response, "content-digest")]).toEqual([true, ""]);
  });

  test.each([
    [plain, `"${plain}"`, "public, max-age=2592000, immutable", "true", "true"],
    [unstable, `"${unstable}"`, "public, max-age=7200", "true", "false"],
    [unverified, `"${unverified}.u"`, "public, max-age=7200", "false", "true"],
  ])("%s: tag %s, %s, verified %s, stable %s", async (id, tag, cache, verified, stable) => {
    for (const response of [await get(`/${id}`), await head(`/raw/${id}`), await get(`/${id}`)]) {
      const names = ["etag", "cache-control", "x-ar-io-verified", "x-ar-io-stable"];
      expect(names.map((name) => header(response, name))).toEqual([tag, cache, verified, stable]);
    }
  });

  test("never name the cache's file", async () => {
    for (const id of [bigOctets, bigFile, bigPdf, bigScript, untyped, hostile])
      for (const range of ["", "\r\nRange: bytes=5-2000", `\r\nRange: bytes=0-${large - 1}`])
        for (const response of [
          await get(`/${id}`, range),
          await head(`/${id}`, range),
          await get(`/raw/${id}`, range),
        ])
          expect(["", "inline"]).toContain(header(response, "content-disposition"));
  });

  test("R3: pass a coded body on as it is stored, ranges over the stored bytes", async () => {
    const whole = await get(`/${zipped}`);
    expect(header(whole, "content-encoding")).toBe("gzip");
    expect(Buffer.from(Bun.gunzipSync(new Uint8Array(whole.body))).toString()).toBe("zipped");
    const part = await get(`/${zipped}`, "\r\nRange: bytes=0-1");
    expect([part.body.toString("hex"), header(part, "content-encoding")]).toEqual(["1f8b", "gzip"]);
  });

  test.each([
    ["a page of a tag without a charset", "text/html", "text/html; charset=utf-8"],
    ["JSON", "application/json", "application/json; charset=utf-8"],
    ["a script", "application/javascript", "application/javascript; charset=utf-8"],
    ["XML", "application/xml", "application/xml; charset=utf-8"],
    ["text of another charset", "text/plain; charset=iso-8859-1", "text/plain; charset=iso-8859-1"],
    ["a drawing", "image/svg+xml", "image/svg+xml"],
    ["a picture", "image/png", "image/png"],
  ])("name the charset of text, in every form of the response: %s", async (_name, tag, type) => {
    const id = content.put(`charset of ${tag}`, { body: text("grüße, 石"), contentType: tag });
    const active = ["text/html", "application/xml", "image/svg+xml"].includes(tag);
    for (const path of [`/${id}`, `/raw/${id}`, `/${id}?download=1`])
      for (const ask of [get, head, get])
        for (const range of ["", "\r\nRange: bytes=0-1"]) {
          const response = await ask(path, range);
          expect([response.status, header(response, "content-type")]).toEqual([range === "" ? 200 : 206, type]);
          const isClosed = active && path.startsWith("/raw/");
          expect(header(response, "content-security-policy")).toBe(isClosed ? "sandbox" : "");
          expect(header(response, "access-control-allow-origin")).toBe("*");
        }
    const parts = await get(`/${id}`, "\r\nRange: bytes=0-0,3-4");
    expect(header(parts, "content-type")).toStartWith("multipart/byteranges; boundary=");
    expect(parts.body.toString("latin1").split(`\r\nContent-Type: ${type}\r\n`)).toHaveLength(3);
    const same = await get(`/${id}`, `\r\nIf-None-Match: "${id}"`);
    expect([same.status, header(same, "content-type")]).toEqual([304, ""]);
  });

  test("X2: do not let a tag write headers", async () => {
    const response = await get(`/${hostile}`);
    expect([response.status, header(response, "content-type"), header(response, "set-cookie")]).toEqual([
      200,
      "application/octet-stream",
      "",
    ]);
  });

  test.each([
    ["download=1", "attachment"],
    ["download=true", "attachment"],
    ["download=0", ""],
    ["download=false", ""],
    ["filename=a.txt", 'inline; filename="a.txt"'],
    ["download=1&filename=%E6%97%A5.txt", `attachment; filename="_.txt"; filename*=UTF-8''%E6%97%A5.txt`],
    ["filename=a%0D%0AX-Evil:%201", 'inline; filename="a__X-Evil: 1"'],
    ["other=1", ""],
  ])("with ?%s have the disposition %j", async (query, disposition) => {
    const response = await get(`/${plain}?${query}`);
    expect([response.status, header(response, "content-disposition"), header(response, "x-evil")]).toEqual([
      200,
      disposition,
      "",
    ]);
  });

  test.each([page, svg, pdf])("keep /raw of an active type from running anything: %s", async (id) => {
    expect(header(await get(`/raw/${id}`), "content-security-policy")).toBe("sandbox");
    expect(header(await get(`/${id}`), "content-security-policy")).toBe("");
  });
});

describe("not modified", () => {
  test.each(["*", `"${plain}"`, `W/"${plain}"`, `"a", "${plain}"`])("If-None-Match: %s", async (tag) => {
    for (const response of [
      await get(`/${plain}`, `\r\nIf-None-Match: ${tag}`),
      await head(`/raw/${plain}`, `\r\nIf-None-Match: ${tag}\r\nRange: bytes=0-1`),
    ]) {
      expect(response.status).toBe(304);
      expect(response.body.length).toBe(0);
      expect([header(response, "etag"), header(response, "content-type"), header(response, "content-digest")]).toEqual([
        `"${plain}"`,
        "",
        "",
      ]);
      expect(header(response, "cache-control")).toBe("public, max-age=2592000, immutable");
    }
  });

  test.each([`"${plain}.u"`, '"other"', plain])("If-None-Match: %s gets the body", async (tag) => {
    expect((await get(`/${plain}`, `\r\nIf-None-Match: ${tag}`)).body.toString()).toBe("plain");
  });
});

describe("If-Match", () => {
  test.each([
    ["*", 200],
    [`"${plain}"`, 200],
    [`"a", "${plain}"`, 200],
    [`W/"${plain}"`, 412],
    ['"other"', 412],
    ["", 412],
  ])("%s responds with %d", async (tag, status) => {
    for (const ask of [get, head])
      for (const path of [`/${plain}`, `/raw/${plain}`])
        expect((await ask(path, `\r\nIf-Match: ${tag}`)).status).toBe(status);
    const response = await get(`/${plain}`, `\r\nIf-Match: ${tag}\r\nIf-None-Match: *`);
    expect(response.status).toBe(status === 200 ? 304 : 412);
  });
});

describe("a body that is not on this disk", () => {
  test("arrives whole and chunked when it is large, with its length on HEAD", async () => {
    const response = await wire(server.port, `GET /raw/${bigSource} HTTP/1.1`);
    expect(header(response, "transfer-encoding")).toBe("chunked");
    expect(dechunk(response.body).equals(Buffer.from(patternBytes(cold)))).toBe(true);
    expect(header(await head(`/raw/${bigSource}`), "content-length")).toBe(String(cold));
    expect(header(response, "x-cache")).toBe("MISS");
  });

  test("has its length when it fits in the buffer", async () => {
    const response = await get(`/raw/${midSource}`);
    expect([header(response, "content-length"), header(response, "transfer-encoding")]).toEqual([
      String(3 * 2 ** 20),
      "",
    ]);
    expect(response.body.equals(Buffer.from(patternBytes(3 * 2 ** 20)))).toBe(true);
  });

  test("C2: that breaks in the middle cuts the connection", async () => {
    const response = await wire(server.port, `GET /raw/${breaking} HTTP/1.1`);
    expect(response.status).toBe(200);
    expect(response.end).toBe("reset");
    expect(response.body.subarray(-5).toString()).not.toBe("0\r\n\r\n");
  });

  test("that cannot be had at all is a response that says so", async () => {
    const response = await get(`/raw/${broken}`);
    expect([response.status, header(response, "retry-after"), header(response, "cache-control")]).toEqual([
      502,
      "5",
      "no-store",
    ]);
    expect(response.body.toString()).toBe('"No source could provide valid data"');
  });

  test("is not read on when its reader has left", async () => {
    const before = content.bytesRead();
    const leaving = await connectRaw(server.url);
    await leaving.write(`GET /raw/${bigSource} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await leaving.until("HTTP/1.1 200 ");
    leaving.cut();
    await eventually(
      async () => content.openReads(),
      (open) => open === 0,
    );
    expect(content.bytesRead() - before).toBeLessThan(cold);
  });

  test("says one hop more than its request, also where it is in memory", async () => {
    const hops = async (path: string, more = "") =>
      (await get(path, more)).headers.find(([name]) => name === "x-ar-io-hops")?.[1];
    for (const path of [`/raw/${plain}`, `/raw/${plain}`, `/${plain}`]) {
      expect(await hops(path)).toBe("1");
      for (const [sent, responded] of [
        ["0", "1"],
        ["1", "2"],
        ["7", "8"],
        ["x", "1"],
        ["-3", "1"],
      ])
        expect([path, sent, await hops(path, `\r\nX-AR-IO-Hops: ${sent}`)]).toEqual([path, sent, responded]);
      expect(await hops(path)).toBe("1");
    }
  });

  test("is not looked for elsewhere when another gateway asks", async () => {
    for (const path of [`/raw/${bigSource}`, `/${bigSource}`]) {
      expect((await get(path, "\r\nX-AR-IO-Hops: 1")).status).toBe(404);
      for (const hops of ["0", "", "x"]) expect((await head(path, `\r\nX-AR-IO-Hops: ${hops}`)).status).toBe(200);
    }
    expect((await get(`/raw/${plain}`, "\r\nX-AR-IO-Hops: 2")).status).toBe(200);
  });

  test("costs HEAD nothing", async () => {
    content.sourceReads.length = 0;
    await head(`/raw/${bigSource}`);
    await head(`/raw/${bigSource}`, "\r\nRange: bytes=0-9");
    await get(`/raw/${bigSource}`, `\r\nIf-None-Match: "${bigSource}"`);
    expect(content.sourceReads).toEqual([]);
  });
});

function dechunk(body: Buffer): Buffer {
  const pieces: Buffer[] = [];
  for (let at = 0; at < body.length; ) {
    const lineEnd = body.indexOf("\r\n", at);
    const size = Number.parseInt(body.subarray(at, lineEnd).toString(), 16);
    if (size === 0) break;
    pieces.push(body.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
  return Buffer.concat(pieces);
}

describe("what cannot be served", () => {
  const unknown = idOf("unknown");
  const blocked = content.put("blocked", { body: text("no"), contentType: "text/plain" });
  content.block(blocked);

  test.each([
    [`/${unknown}`, 404, "Not Found"],
    [`/raw/${unknown}`, 404, "Not Found"],
    [`/${unknown}/a/b`, 404, "Not Found"],
    [`/${plain}/below`, 404, "Not Found"],
    [`/raw/${plain}/below`, 404, "Not Found"],
    [`/${"A".repeat(42)}B`, 404, "Not Found"],
    [`/raw/${"A".repeat(42)}B`, 404, "Not Found"],
    ["/raw/short", 400, "Invalid ID"],
    [`/raw/${"A".repeat(44)}`, 400, "Invalid ID"],
    ["/raw/", 400, "Invalid ID"],
    ["/raw", 400, "Invalid ID"],
    [`/raw/${"!".repeat(43)}`, 400, "Invalid ID"],
    ["/short", 404, "Not Found"],
    [`/${plain.slice(0, 42)}`, 404, "Not Found"],
    [`/raw/%zz`, 400, "Malformed path"],
    [`/${plain}/%e0%a4%a`, 400, "Malformed path"],
    [`/${blocked}`, 451, "Blocked by this gateway's content policy"],
    [`/raw/${blocked}`, 451, "Blocked by this gateway's content policy"],
  ])("GET and HEAD %s respond with %d %j", async (path, status, message) => {
    const [got, asked] = [await get(path), await head(path)];
    expect([got.status, asked.status]).toEqual([status, status]);
    expect(got.body.toString()).toBe(JSON.stringify(message));
    expect(header(got, "content-type")).toBe("application/json; charset=utf-8");
    expect(header(asked, "content-length")).toBe(String(got.body.length));
    if (status !== 400) expect(header(got, "cache-control")).toBe("no-store");
    expect(header(got, "access-control-allow-origin")).toBe("*");
  });

  test.each(["", "\r\nRange: bytes=0-0", `\r\nIf-None-Match: "${blocked}"`, "\r\nIf-None-Match: *"])(
    "is rejected alike with %j",
    async (more) => {
      expect((await get(`/raw/${blocked}`, more)).status).toBe(451);
    },
  );

  test("is rejected under every spelling of its id", async () => {
    const spelled = `%${blocked.charCodeAt(0).toString(16)}${blocked.slice(1)}`;
    for (const path of [`/${spelled}`, `/raw/${spelled}`, `/%72aw/${blocked}`, `//../${blocked}`])
      expect((await get(path)).status).toBe(451);
  });

  test("is rejected at once, also where it was in memory", async () => {
    const soon = content.put("soon blocked", { body: text("yes"), contentType: "text/plain" });
    expect((await get(`/${soon}`)).status).toBe(200);
    expect(gateway.hit(new Request(`http://127.0.0.1:${server.port}/${soon}`))).toBeDefined();
    content.block(soon);
    gateway.forget(soon);
    expect((await get(`/${soon}`)).status).toBe(451);
  });

  test.each([
    ["source_failed", 502],
    ["busy", 503],
    ["source_timeout", 504],
  ] as const)("because of %s responds with %d, with no-store", async (code, status) => {
    const id = idOf(`failing ${code}`);
    content.fail(id, new Failure(code, { secret: "inner detail" }));
    for (const path of [`/${id}`, `/raw/${id}`]) {
      const response = await get(path);
      expect(response.status).toBe(status);
      expect([header(response, "retry-after"), header(response, "cache-control")]).toEqual(["5", "no-store"]);
      expect(response.body.toString()).not.toContain("inner");
    }
    expect(lines.some((line) => line["code"] === code && JSON.stringify(line).includes("inner detail"))).toBe(true);
  });

  test("because of a defect responds with 500, says nothing of it, and logs it whole", async () => {
    const id = idOf("defect");
    content.fail(id, new Error("the inside") as Failure);
    const response = await get(`/${id}`, "\r\nX-Request-Id: defect-1");
    expect([response.status, response.body.toString()]).toEqual([500, '"Internal Server Error"']);
    const line = lines.find((found) => found["requestId"] === "defect-1" && found["message"] === "defect");
    expect(line).toMatchObject({ level: "error", error: { message: "the inside" } });
  });
});

describe("other methods", () => {
  test.each(["POST", "PUT", "DELETE", "PATCH"])("%s of an id responds 405 with what is allowed", async (method) => {
    for (const path of [`/${plain}`, `/raw/${plain}`, `/${plain}/a`]) {
      const response = await wire(server.port, `${method} ${path} HTTP/1.1\r\nContent-Length: 0`);
      expect([response.status, header(response, "allow"), response.body.toString()]).toEqual([
        405,
        "GET, HEAD, OPTIONS",
        '"Method Not Allowed"',
      ]);
    }
  });
});

describe("in memory", () => {
  beforeAll(async () => {
    await get(`/${plain}`);
  });
  const hit = (path: string, headers: Record<string, string> = {}, method = "GET") =>
    gateway.hit(new Request(`http://127.0.0.1:1${path}`, { headers, method }));

  test("a small body that was read is served without being opened again", async () => {
    const opened = content.opened();
    const response = await get(`/${plain}`);
    expect(response.body.toString()).toBe("plain");
    expect(header(response, "x-cache")).toBe("HIT");
    expect(content.opened()).toBe(opened);
  });

  test("a response has an id only when the request had one, which is replaced if it is invalid", async () => {
    expect(header(await get(`/${plain}`), "x-request-id")).toBe("");
    const opened = content.opened();
    expect(header(await get(`/${plain}`, "\r\nX-Request-Id: mine"), "x-request-id")).toBe("mine");
    expect(header(await get(`/${plain}`, "\r\nX-Request-Id: not one"), "x-request-id")).toMatch(/^[\w-]{22}$/);
    expect(header(await get(`/${plain}`), "x-request-id")).toBe("");
    expect(content.opened()).toBe(opened);
  });

  test.each([
    [`/${plain}`, {}, true],
    [`/${plain}?download=1`, {}, false],
    [`/${plain}`, { range: "bytes=0-1" }, false],
    [`/${plain}`, { "if-none-match": "*" }, false],
    [`/${plain}`, { "x-request-id": "a" }, true],
    [`/${plain}`, { "service-worker": "script" }, false],
    [`/${plain}`, { accept: "text/html" }, true],
    [`/${idOf("never read")}`, {}, false],
    ["/", {}, false],
  ])("%s with %j is served from memory: %p", (path, headers, atOnce) => {
    expect(hit(path, headers) !== undefined).toBe(atOnce);
  });

  test("only GET is served from memory", () => {
    for (const method of ["HEAD", "POST", "OPTIONS"]) expect(hit(`/${plain}`, {}, method)).toBeUndefined();
  });

  test("what can change is looked at again after five seconds, what cannot is not", async () => {
    await get(`/${unstable}`);
    now += 4_999;
    expect([hit(`/${unstable}`), hit(`/${plain}`)].map(Boolean)).toEqual([true, true]);
    now += 1;
    expect([hit(`/${unstable}`), hit(`/${plain}`)].map(Boolean)).toEqual([false, true]);
    content.put("unstable", { body: text("new"), contentType: "text/plain", stable: true });
    expect(header(await get(`/${unstable}`), "x-ar-io-stable")).toBe("true");
  });
});
