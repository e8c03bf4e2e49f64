/**
 * The proxy's settings that are shipped (deploy/nginx.conf), before the program: everything passes as it would without it, and
 * one address has a bounded number of requests under way.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { freePorts } from "../support/free-ports.ts";
import { header, wire } from "../support/gateway-server.ts";
import { describeWith } from "../support/helpers.ts";
import { programPorts, type RunningProgram, repositoryRoot, startDev } from "../support/program.ts";
import { connectRaw } from "../support/raw-request.ts";
import { eventually } from "../support/until.ts";
import { testItem } from "../support/upload.ts";

const settings = readFileSync(resolve(repositoryRoot, "deploy/nginx.conf"), "utf8");
/** As the settings have it. */
const requestsOfOneAddress = Number(/^limit_conn cairn (\d+);/m.exec(settings)?.[1]);

let folder: string;
let program: RunningProgram;
let nginx: Bun.Subprocess;
let port: number;

/** The settings with this test's ports, and with places that need no rights. */
function settingsAt(listen: number, ports: Readonly<Record<string, string>>): string {
  const places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const here = settings
    .replaceAll("listen 80;", `listen 127.0.0.1:${listen};`)
    .replace("127.0.0.1:3000", `127.0.0.1:${ports["GATEWAY_PORT"]}`)
    .replace("127.0.0.1:3001", `127.0.0.1:${ports["PAYMENT_PORT"]}`)
    .replace("127.0.0.1:3002", `127.0.0.1:${ports["UPLOAD_PORT"]}`);
  return `${process.getuid?.() === 0 ? "user root;" : ""}
daemon off; pid ${folder}/nginx.pid; error_log ${folder}/error.log; worker_processes 1;
events { worker_connections 1024; }
http { access_log off; ${places.join(" ")}
${here}
}`;
}

const ask = (host: string, path: string, init: RequestInit = {}) =>
  fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers: { ...init.headers, Host: host } });

describeWith({ there: Bun.which("nginx") !== null, what: "nginx" }, "behind the proxy that is shipped", () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "cairn-proxy-"));
    const ports = programPorts();
    [port = 0] = freePorts(1);
    const free = { FREE_UPLOAD_BYTES: String(32 * 2 ** 20) };
    const environment = { HOST: "127.0.0.1", TRUSTED_PROXIES: "127.0.0.1", LOG_LEVEL: "debug", ...free };
    program = await startDev({ environment, ports });
    const file = join(folder, "nginx.conf");
    writeFileSync(file, settingsAt(port, ports));
    nginx = Bun.spawn(["nginx", "-c", file, "-e", join(folder, "error.log")], { stderr: "inherit" });
    await eventually(
      () =>
        ask("gateway.example", "/ready").then(
          ({ status }) => status,
          () => 0,
        ),
      (status) => status === 200,
    );
  }, 120_000);
  afterAll(async () => {
    nginx.kill();
    await nginx.exited;
    await program.remove();
    removeFolder(folder);
  });

  test("content, ranges, tags and errors are as without it", async () => {
    const direct = program.line.gateway;
    const path = `/raw/${program.line.sample.sound}`;
    const isCached = async () => {
      const reply = await fetch(`${direct}${path}`);
      await reply.arrayBuffer();
      return reply.headers.get("x-cache") === "HIT";
    };
    await eventually(isCached, (cached) => cached);
    const ways: readonly (readonly [string, RequestInit])[] = [
      [path, {}],
      [path, { method: "HEAD" }],
      [path, { headers: { range: "bytes=5-1000004" } }],
      [path, { headers: { "if-none-match": "*" } }],
      ["/raw/short", {}],
      [`/${program.line.sample.manifest}/%2e%2e//nothing%2F`, {}],
    ];
    for (const [at, init] of ways) {
      const [one, other] = await Promise.all([fetch(`${direct}${at}`, init), ask("gateway.example", at, init)]);
      expect([at, other.status]).toEqual([at, one.status]);
      for (const name of ["content-length", "content-type", "etag", "content-digest", "content-range", "cache-control"])
        expect([at, name, other.headers.get(name)]).toEqual([at, name, one.headers.get(name)]);
      expect(Buffer.compare(await other.bytes(), await one.bytes())).toBe(0);
    }
  }, 60_000);

  test.each([20, 180])("X4: %i cookies of 4 KiB block no client", async (count) => {
    const each = (index: number) => `c${index}=${"x".repeat(4_096 - 2 - String(index).length)}`;
    const cookie = Array.from({ length: count }, (_, index) => each(index)).join("; ");
    const response = await wire(port, `GET /health HTTP/1.1\r\nHost: gateway.example\r\nCookie: ${cookie}`);
    expect([response.status, header(response, "clear-site-data")]).toEqual([200, ""]);
  });

  test("pipelined requests get responses in order, also slow ones", async () => {
    const get = (path: string, more = "") => `GET ${path} HTTP/1.1\r\nHost: gateway.example\r\n${more}\r\n`;
    const unknown = "A".repeat(43);
    const connection = await connectRaw(`http://127.0.0.1:${port}`);
    const paths = [`/raw/${unknown}`, "/health", `/tx/${unknown}/offset`, "/raw/short"];
    await connection.write(paths.map((path) => get(path)).join("") + get("/ready", "Connection: close\r\n"));
    const statuses = [...(await connection.ended).matchAll(/HTTP\/1.1 (\d+)/g)].map(([, status]) => status);
    expect(statuses).toEqual(["404", "200", "404", "400", "200"]);
  });

  test("two Host headers are rejected", async () => {
    const two = "GET /health HTTP/1.1\r\nHost: gateway.example\r\nHost: upload.example";
    expect((await wire(port, two)).status).toBe(400);
  });

  test("uploads and prices go to their services", async () => {
    const item = testItem(new Uint8Array(2_000_000).fill(7));
    const reply = await ask("upload.example", "/v1/tx", { method: "POST", body: item.bytes });
    expect([reply.status, (await reply.json()).id]).toEqual([200, item.id]);
    const large = testItem(new Uint8Array(16 * 2 ** 20).fill(8));
    const mounted = await ask("gateway.example", "/upload/v1/tx", { method: "POST", body: large.bytes });
    expect([mounted.status, (await mounted.json()).id]).toEqual([200, large.id]);
    expect((await ask("payment.example", "/v1/price/bytes/1000")).status).toBe(200);
  }, 60_000);

  test("one address has a limited number of requests in progress, and gets 429 beyond it until one ends", async () => {
    const head = `GET /raw/${program.line.sample.sound} HTTP/1.1\r\nHost: gateway.example\r\n\r\n`;
    const stalled = Array.from({ length: requestsOfOneAddress }, () => {
      const socket = net.connect(port, "127.0.0.1", () => socket.write(head));
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
      socket.once("data", () => {
        socket.pause();
        begin();
      });
      socket.on("error", () => undefined); // it is cut below
      return { socket, begun };
    });
    await Promise.all(stalled.map(({ begun }) => begun));
    expect((await ask("gateway.example", "/ready")).status).toBe(429);
    for (const { socket } of stalled) socket.destroy();
    await eventually(
      () => ask("gateway.example", "/ready"),
      ({ status }) => status === 200,
    );
  }, 60_000);
});
