/**
 * https by certificate files: both or neither, another certificate on SIGHUP, and none that would not work.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { readConfig } from "../../src/config/config.ts";
import { openListener } from "../../src/http/listener.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { type CertificateFiles, makeCertificate, openssl } from "../support/certificates.ts";
import { describeWith, testWith } from "../support/helpers.ts";
import { openStack, type Stack } from "../support/stack.ts";
import { eventually } from "../support/until.ts";

const half = "TLS_CERT_FILE and TLS_KEY_FILE must be set together";

test.each([
  [{ TLS_CERT_FILE: "a" }, [half]],
  [{ TLS_KEY_FILE: "a" }, [half]],
  [{ TLS_CERT_FILE: "a", TLS_KEY_FILE: "b" }, []],
  [{}, []],
])("%j brings the complaints %j", (environment, complaints) => {
  expect(readConfig(environment, "serve").complaints).toEqual(complaints);
});

describeWith(openssl, "https", () => {
  const folder = mkdtempSync(join(tmpdir(), "cairn-certificates-"));
  const inUse = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") };
  const made: Record<string, CertificateFiles> = {};
  let stack: Stack;

  const put = (name: string) => {
    const files = made[name];
    if (files === undefined) throw new Error(`no certificate ${name}`);
    copyFileSync(files.cert, inUse.cert);
    copyFileSync(files.key, inUse.key);
  };
  const get = (path: string) =>
    fetch(`https://localhost:${stack.port}${path}`, { tls: { rejectUnauthorized: false }, keepalive: false });

  beforeAll(async () => {
    for (const name of ["first", "second"]) made[name] = await makeCertificate(folder, name);
    put("first");
    stack = await openStack({
      TLS_CERT_FILE: inUse.cert,
      TLS_KEY_FILE: inUse.key,
      ADMIN_LISTEN: "127.0.0.1:0",
      ADMIN_API_KEY: "key-of-the-test",
    });
  });
  afterAll(async () => {
    await stack?.close();
    removeFolder(folder);
  });

  test("serves the gateway and administration with the certificate", async () => {
    expect(stack.gateway.url).toStartWith("https://127.0.0.1:");
    expect(await servedName(stack.port)).toBe("first");
    expect(await servedName(Number(new URL(stack.gateway.adminUrl ?? "").port))).toBe("first");
    expect((await get("/svc/healthcheck")).status).toBe(200);
  });

  test("serves HTTP/2 and HTTP/1.1 alike", async () => {
    for (const [protocol, responded] of [
      ["h2", "h2"],
      ["http/1.1", "http/1.1"],
    ] as const) {
      const socket = await connected(stack.port, [protocol]);
      expect<unknown>(socket.alpnProtocol).toBe(responded);
      socket.destroy();
    }
  });

  test.each(["GET", "HEAD"])("%s by HTTP/2 gets the same response as by HTTP/1.1", async (method) => {
    const options = { tls: { rejectUnauthorized: false }, method };
    const plain = await fetch(`https://localhost:${stack.port}/svc/info`, options);
    const response = await askByHttp2(stack.port, method, "/svc/info");
    expect(response.body).toBe(await plain.text());
    expect(response.headers[":status"]).toBe(200);
    for (const name of ["content-type", "content-length", "access-control-allow-origin"])
      expect<unknown>(response.headers[name]).toBe(plain.headers.get(name) ?? undefined);
  });

  test("a connection that speaks no TLS is closed, and others are not disturbed", async () => {
    await expect(fetch(`http://localhost:${stack.port}/svc/info`)).rejects.toThrow();
    expect((await get("/svc/info")).status).toBe(200);
  });

  test("SIGHUP takes the new certificate, on every listener", async () => {
    put("second");
    process.kill(process.pid, "SIGHUP");
    await eventually(
      // A handshake that is not over when the certificate changes may be reset.
      () => servedName(stack.port).catch(String),
      (name) => name === "second",
    );
    for (let round = 0; round < 8; round += 1) expect(await servedName(stack.port)).toBe("second");
    expect(await servedName(Number(new URL(stack.gateway.adminUrl ?? "").port))).toBe("second");
    expect(stack.lines).toContainEqual(expect.objectContaining({ message: "certificate renewed" }));
  });

  test.each([
    ["no certificate", () => writeFileSync(inUse.cert, "not a certificate")],
    ["another's key", () => copyFileSync(made["first"]?.key ?? "", inUse.key)],
    ["no file", () => rmSync(inUse.cert, { force: true })],
  ])("%s on SIGHUP keeps the old certificate, and says so", async (_what, spoil) => {
    put("second");
    const before = complaints(stack);
    spoil();
    process.kill(process.pid, "SIGHUP");
    await eventually(
      async () => complaints(stack),
      (count) => count === before + 1,
    );
    expect(await servedName(stack.port)).toBe("second");
    expect((await get("/svc/info")).status).toBe(200);
  });

  test("an invalid certificate is reported at the start", async () => {
    writeFileSync(join(folder, "none.pem"), "none");
    const environment = { TLS_CERT_FILE: join(folder, "none.pem"), TLS_KEY_FILE: inUse.key };
    await expect(openStack(environment)).rejects.toThrow(/^Bad settings:\n {2}TLS_CERT_FILE and TLS_KEY_FILE: /);
  });

  test("a response that is under way when the certificate changes arrives whole, and closing waits for it", async () => {
    const pems = await Promise.all([pemOf(made["first"]), pemOf(made["second"])]);
    const release = Promise.withResolvers<void>();
    const listener = openListener({
      hostname: "127.0.0.1",
      port: 0,
      certificate: pems[0],
      idleSecondsMax: 60,
      bodyBytesMax: 1_000,
      fetch: async () => {
        const { readable, writable } = new TransformStream();
        const writer = writable.getWriter();
        void writer.write(new TextEncoder().encode("begun "));
        void release.promise.then(async () => {
          await writer.write(new TextEncoder().encode("and ended"));
          await writer.close();
        });
        return new Response(readable);
      },
      error: () => new Response(null, { status: 500 }),
    });
    const url = `https://127.0.0.1:${listener.port}/`;
    const underWay = await fetch(url, { tls: { rejectUnauthorized: false } });
    listener.renew(pems[1]);
    expect(await servedName(listener.port)).toBe("second");
    const closing = listener.close(10_000);
    release.resolve();
    expect(await underWay.text()).toBe("begun and ended");
    await closing;
    await expect(servedName(listener.port)).rejects.toThrow();
  });

  test("a port that another listener has is rejected, also when both would share it", async () => {
    const certificate = await pemOf(made["first"]);
    const response = () => new Response("x");
    const parts = {
      hostname: "127.0.0.1",
      certificate,
      idleSecondsMax: 60,
      bodyBytesMax: 1,
      fetch: response,
    };
    const first = openListener({ ...parts, port: 0, error: response });
    expect(() => openListener({ ...parts, port: first.port, error: response })).toThrow();
    await first.close(0);
  });
});

testWith(openssl, "after the gateway has closed, SIGHUP is no longer its affair", () => {
  expect(process.listenerCount("SIGHUP")).toBe(0);
});

/** The common name of the certificate of a port. */
async function servedName(port: number): Promise<string> {
  const socket = await connected(port, ["http/1.1"]);
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return String(subject.CN);
}

function connected(port: number, protocols: string[]): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, rejectUnauthorized: false, ALPNProtocols: protocols };
    const socket = connect(options, () => resolve(socket));
    socket.on("error", reject);
  });
}

async function askByHttp2(port: number, method: string, path: string) {
  const session = connectHttp2(`https://localhost:${port}`, { rejectUnauthorized: false });
  const stream = session.request({ ":method": method, ":path": path });
  const headers = await new Promise<Record<string, unknown>>((resolve, reject) => {
    stream.on("response", resolve);
    stream.on("error", reject);
    stream.end();
  });
  let body = "";
  for await (const piece of stream) body += piece;
  session.close();
  return { headers, body };
}

async function pemOf(files: CertificateFiles | undefined) {
  if (files === undefined) throw new Error("no such certificate");
  return { cert: await Bun.file(files.cert).text(), key: await Bun.file(files.key).text() };
}

function complaints(stack: Stack): number {
  return stack.lines.filter(({ message }) => message === "certificate not renewed, the present one stays in use")
    .length;
}
