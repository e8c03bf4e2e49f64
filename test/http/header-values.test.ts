/**
 * What strangers write into tags and queries, as header values: stored, replaced or escaped, never an error.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { contentCodingsOf, contentDisposition, isActiveType, mediaTypeOf } from "../../src/http/header-values.ts";

const octets = "application/octet-stream";

describe("X2: a Content-Type tag", () => {
  test.each([
    ["text/html", "text/html; charset=utf-8"],
    ["text/html; charset=utf-8", "text/html; charset=utf-8"],
    ['text/plain; charset="utf-8"', 'text/plain; charset="utf-8"'],
    ["Application/JSON", "Application/JSON; charset=utf-8"],
    ["application/x.arweave-manifest+json", "application/x.arweave-manifest+json"],
    ["image/svg+xml;", "image/svg+xml;"],
    ['video/mp4; codecs="avc1.4d002a, mp4a.40.2"', 'video/mp4; codecs="avc1.4d002a, mp4a.40.2"'],
    ["", octets],
    ["text", octets],
    ["text/", octets],
    ["/html", octets],
    ["text/html\r\nSet-Cookie: a=b", octets],
    ["text/html\nX: y", octets],
    ["text/html\0", octets],
    ["text/€", octets],
    ["text/html; charset=ütf-8", octets],
    ["text/html, text/plain", octets],
    [" text/html", octets],
    ["text/ html", octets],
    ["text/html; a", octets],
    ['text/html; a="b', octets],
    ["multipart/byteranges; boundary=x", octets],
    ["MULTIPART/x-mixed-replace", octets],
    [`text/${"x".repeat(8_192)}`, octets],
    [`text/html; ${"a=b;".repeat(2_000)}`, octets],
    [undefined, octets],
  ])("%j is sent as %j", (tag, sent) => {
    const value = mediaTypeOf(tag);
    expect(value).toBe(sent);
    // The runtime takes what is let through as it is.
    expect(new Response("", { headers: { "content-type": value } }).headers.get("content-type")).toBe(value);
  });

  test.each([
    ["text/css", "text/css; charset=utf-8"],
    ["TEXT/X-Anything", "TEXT/X-Anything; charset=utf-8"],
    ["application/javascript", "application/javascript; charset=utf-8"],
    ["application/x-javascript", "application/x-javascript; charset=utf-8"],
    ["application/ecmascript", "application/ecmascript; charset=utf-8"],
    ["application/xml", "application/xml; charset=utf-8"],
    ["text/xml", "text/xml; charset=utf-8"],
    ["text/plain;", "text/plain; charset=utf-8"],
    ["text/plain ; ;\t", "text/plain; charset=utf-8"],
    ["text/markdown;variant=GFM", "text/markdown;variant=GFM; charset=utf-8"],
    ['text/plain; note="; charset=latin1"', 'text/plain; note="; charset=latin1"; charset=utf-8'],
    ['text/plain; note="a;\\""; charset=x', 'text/plain; note="a;\\""; charset=x'],
    ["text/plain; xcharset=a", "text/plain; xcharset=a; charset=utf-8"],
    ["text/html;CharSet=ISO-8859-1", "text/html;CharSet=ISO-8859-1"],
    ["text/html; a=b ; charset=windows-1251", "text/html; a=b ; charset=windows-1251"],
    ["application/json; charset=utf-16", "application/json; charset=utf-16"],
    ["image/svg+xml", "image/svg+xml"],
    ["application/xhtml+xml", "application/xhtml+xml"],
    ["application/ld+json", "application/ld+json"],
    ["application/jsonl", "application/jsonl"],
    ["image/png", "image/png"],
    ["video/mp4", "video/mp4"],
    ["application/pdf", "application/pdf"],
    [octets, octets],
  ])("of text names its charset: %j is sent as %j", (tag, sent) => {
    expect(mediaTypeOf(tag)).toBe(sent);
    expect(mediaTypeOf(sent)).toBe(sent);
  });

  test.each(["; a", "; ", ";  ", ";\t ", " ;", "; a=b ", '; a="b" ', "; a=b; "])(
    "of %j again and again is rejected without looking far",
    (again) => {
      const hostile = `${"text/html".padEnd(254, again)}@`;
      const startedAt = performance.now();
      for (let round = 0; round < 200; round++) expect(mediaTypeOf(hostile)).toBe(octets);
      // Where a pattern backtracks over all parts, the runtime gives up after a few seconds: 200 times.
      expect(performance.now() - startedAt).toBeLessThan(60_000);
    },
  );

  test.each([
    ["text/html", true],
    ["TEXT/HTML; charset=x", true],
    ["application/xhtml+xml", true],
    ["image/svg+xml", true],
    ["application/xml", true],
    ["text/xml", true],
    ["application/rss+xml", true],
    ["application/pdf", true],
    ["text/plain", false],
    ["image/png", false],
    ["application/javascript", false],
    [octets, false],
  ])("%s is active: %p", (type, active) => {
    expect(isActiveType(type)).toBe(active);
  });
});

describe("X2: a Content-Encoding tag", () => {
  test.each([
    ["gzip", "gzip"],
    ["GZIP", "gzip"],
    ["br, gzip", "br, gzip"],
    ["identity", undefined],
    ["", undefined],
    ["gzip\r\nX: y", undefined],
    ["rot13", undefined],
    ["gzip,gzip,gzip,gzip", undefined],
    [undefined, undefined],
  ])("%j is sent as %j", (tag, sent) => {
    expect(contentCodingsOf(tag)).toBe(sent);
  });
});

describe("X2: a file name", () => {
  test.each([
    ["report.pdf", 'attachment; filename="report.pdf"'],
    [undefined, "attachment"],
    ["", "attachment"],
    ["..", "attachment"],
    ['a"b.txt', `attachment; filename="a_b.txt"; filename*=UTF-8''a%22b.txt`],
    ["a;b.txt", 'attachment; filename="a;b.txt"'],
    ["a\r\nSet-Cookie: x=y", 'attachment; filename="a__Set-Cookie: x=y"'],
    ["../../etc/passwd", 'attachment; filename=".._.._etc_passwd"'],
    ["C:\\temp\\a", 'attachment; filename="C:_temp_a"'],
    ["naïve.txt", `attachment; filename="na_ve.txt"; filename*=UTF-8''na%C3%AFve.txt`],
    ["日本.png", `attachment; filename="__.png"; filename*=UTF-8''%E6%97%A5%E6%9C%AC.png`],
    ["🎉", `attachment; filename="_"; filename*=UTF-8''%F0%9F%8E%89`],
    ["it's (1)*.txt", 'attachment; filename="it\'s (1)*.txt"'],
    ["ü'()*", `attachment; filename="_'()*"; filename*=UTF-8''%C3%BC%27%28%29%2A`],
    ["50%.txt", `attachment; filename="50_.txt"; filename*=UTF-8''50%25.txt`],
    ["\ud800", `attachment; filename="_"; filename*=UTF-8''%EF%BF%BD`],
    ["gpj\u202efdp.exe", 'attachment; filename="gpj_fdp.exe"'],
  ])("%j becomes %s", (name, value) => {
    expect(contentDisposition("attachment", name)).toBe(value);
    expect(new Headers({ "content-disposition": value }).get("content-disposition")).toBe(value);
  });

  test("is cut to 128 characters", () => {
    expect(contentDisposition("inline", "x".repeat(10_000))).toBe(`inline; filename="${"x".repeat(128)}"`);
  });
});
