/**
 * Bodies with a content coding: each is decoded within the bound of its caller, whatever it would become.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { openHttp } from "../../src/lib/http-client.ts";

const plain = Buffer.from("said again and again, ".repeat(100));
const zeros = Buffer.alloc(2 ** 28);

/** Quick, and as small for zeros. */
const quick = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };

const codings = [
  ["gzip", gzipSync],
  ["deflate", deflateSync],
  ["br", (bytes: Uint8Array) => brotliCompressSync(bytes, quick)],
  ["zstd", zstdCompressSync],
] as const;

const bodies = new Map<string, Readonly<{ coding: string; body: Uint8Array<ArrayBuffer> }>>();
for (const [coding, encode] of codings) {
  bodies.set(`/plain-${coding}`, { coding, body: new Uint8Array(encode(plain)) });
  bodies.set(`/bomb-${coding}`, { coding, body: new Uint8Array(encode(zeros)) });
}
bodies.set("/upper", { coding: " GZIP ", body: new Uint8Array(gzipSync(plain)) });
bodies.set("/members", {
  coding: "gzip",
  body: new Uint8Array(Buffer.concat([gzipSync(plain), gzipSync(plain)])),
});
bodies.set("/not-gzip", { coding: "gzip", body: new Uint8Array(plain) });
bodies.set("/cut", { coding: "gzip", body: new Uint8Array(gzipSync(plain).subarray(0, 40)) });
bodies.set("/twice", { coding: "gzip, br", body: new Uint8Array(plain) });
bodies.set("/unknown", { coding: "x-own", body: new Uint8Array(plain) });
bodies.set("/identity", { coding: "identity", body: new Uint8Array(plain) });
bodies.set("/empty", { coding: "gzip", body: new Uint8Array(0) });

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: ({ url }) => {
    const { coding, body } = bodies.get(new URL(url).pathname) ?? { coding: "", body: new Uint8Array(0) };
    return new Response(body, { headers: { "content-encoding": coding } });
  },
});
afterAll(() => server.stop(true));

async function ask(path: string, bytesMax: number) {
  const http = openHttp({ firstByteMs: 60_000, stallMs: 60_000, totalMs: 60_000 });
  const url = `http://127.0.0.1:${server.port}${path}`;
  const response = await http.whole({ method: "GET", url }, bytesMax, AbortSignal.timeout(60_000));
  http.close();
  return response.kind === "response" ? Buffer.from(response.body).toString() : response.reason;
}

describe("C2: a body that is larger when decoded", () => {
  test.each(codings.map(([coding]) => coding))("is taken up to the bound, and not beyond: %s", async (coding) => {
    expect(await ask(`/plain-${coding}`, plain.length)).toBe(plain.toString());
    expect(await ask(`/plain-${coding}`, plain.length - 1)).toBe("too_large");
    expect(await ask(`/bomb-${coding}`, 1e6)).toBe("too_large");
  });

  test.each(codings.map(([coding]) => coding))(
    "16 bodies of 256 MiB in %s take less than 128 MiB together",
    async (coding) => {
      const url = `http://127.0.0.1:${server.port}/bomb-${coding}`;
      const child = Bun.spawn([process.execPath, join(import.meta.dir, "bomb-reader.ts"), url, "16"], {
        stdout: "pipe",
        stderr: "inherit",
      });
      const { outcomes, grownMiB } = await new Response(child.stdout).json();
      expect(outcomes).toEqual(["too_large"]);
      expect(grownMiB).toBeLessThan(128);
    },
    120_000,
  );
});

test.each([
  ["/upper", plain.toString()],
  ["/members", plain.toString().repeat(2)],
  ["/identity", plain.toString()],
  ["/empty", ""],
  ["/not-gzip", "malformed"],
  ["/cut", "malformed"],
  ["/twice", "malformed"],
  ["/unknown", "malformed"],
])("a body with any coding has one outcome: %s", async (path, outcome) => {
  expect(await ask(path, 1e6)).toBe(outcome);
});
