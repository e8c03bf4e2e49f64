/**
 * SERVICES without the gateway, as a program: its listeners, the requests that it sends to its node, and that uploads
 * become permanent and payments become credits all the same.
 * Source: docs/operating.md#services.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { readWallet } from "../../src/arweave/wallet.ts";
import type { Devnet } from "../../src/dev/devnet/devnet.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openTestDevnet, serve, type TestNode } from "../dev/devnet/support.ts";
import { programPorts, repositoryRoot } from "../support/program.ts";
import { rsaKeys } from "../support/rsa-keys.ts";
import { eventually } from "../support/until.ts";
import { testItem } from "../support/upload.ts";
import { sendItem } from "../support/upload-stack.ts";

const adminKey = "key-of-this-test";

type Line = Readonly<{ gateway?: string; payment?: string; upload?: string; adminUrl?: string; adminKey?: string }>;

/** Opens a chain, and before its node a server that records the requests. */
async function openChain() {
  const devnet: Devnet = await openTestDevnet();
  const node: TestNode = serve(devnet);
  const paths: string[] = [];
  const recorder = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url);
      paths.push(pathname);
      return await fetch(`http://127.0.0.1:${node.port}${pathname}${search}`, request);
    },
  });
  await devnet.mine(3);
  return {
    devnet,
    url: `http://127.0.0.1:${recorder.port}`,
    asked: (start: string) => paths.filter((path) => path.startsWith(start)).length,
    paths,
    close: async () => {
      await recorder.stop(true);
      await node.close();
      devnet.close();
    },
  };
}

/** Starts `cairn serve`; resolves with its addresses. */
async function start(environment: Readonly<Record<string, string>>) {
  const folder = mkdtempSync(join(tmpdir(), "cairn-services-"));
  const walletFile = join(folder, "wallet.json");
  writeFileSync(walletFile, JSON.stringify(rsaKeys.other));
  const ports = programPorts();
  const child = Bun.spawn([process.execPath, resolve(repositoryRoot, "src/main.ts"), "serve", "--json"], {
    cwd: repositoryRoot,
    env: {
      ...process.env,
      DATA_DIR: join(folder, "data"),
      HOST: "127.0.0.1",
      LOG_FORMAT: "json",
      WALLET_FILE: walletFile,
      FOLLOW_INTERVAL_MS: "50",
      UPLOAD_BUNDLE_WAIT_MS: "50",
      UPLOAD_LOOK_MS: "50",
      UPLOAD_CONFIRMATIONS: "2",
      FREE_UPLOAD_BYTES: "1000000",
      WORKER_THREADS: "1",
      STOP_DELAY_MS: "0",
      ...ports,
      ...environment,
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const errors = new Response(child.stderr).text();
  const reader = child.stdout.getReader();
  let text = "";
  while (!text.includes("\n")) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`it ended: ${(await errors).slice(-4_000)}`);
    text += new TextDecoder().decode(value);
  }
  const line: Line = JSON.parse(text);
  return {
    line,
    ports,
    /** @returns The exit code, and what it wrote to standard error. */
    stop: async () => {
      child.kill("SIGTERM");
      const code = await child.exited;
      removeFolder(folder);
      return { code, errors: await errors };
    },
  };
}

type Started = Awaited<ReturnType<typeof start>>;

const statusOf = async (url: string) => (await fetch(url)).status;
const isOpen = async (port: string | undefined) =>
  await fetch(`http://127.0.0.1:${port}/info`).then(
    () => true,
    () => false,
  );

let chain: Awaited<ReturnType<typeof openChain>>;
let feed: ReturnType<typeof openFeed>;

function openFeed() {
  let count = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => {
      count += 1;
      return new Response("{}");
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, count: () => count, close: () => server.stop(true) };
}

beforeAll(async () => {
  chain = await openChain();
  feed = openFeed();
}, 60_000);
afterAll(async () => {
  await chain?.close();
  await feed?.close();
});

const settings = () => ({ TRUSTED_NODE_URL: chain.url, PRICE_FEED_URL: feed.url });

const asOperator = { authorization: `Bearer ${adminKey}` };

/** Grants credits to an account by the admin API. */
async function grant({ adminUrl }: Line, address: string, winc: bigint): Promise<void> {
  const { status } = await fetch(`${adminUrl}/svc/admin/accounts/${address}/grant`, {
    method: "POST",
    headers: asOperator,
    body: JSON.stringify({ winc: String(winc), operator: "olga", reason: "a test", idempotencyKey: `grant-${winc}` }),
  });
  expect(status).toBe(200);
}

async function balanceOf({ payment }: Line, address: string): Promise<string> {
  return (await (await fetch(`${payment}/account/balance/solana?address=${address}`)).json()).winc;
}

/** Uploads an item, and mines until it is permanent. */
async function uploadUntilPermanent(upload: string, item = testItem("without a gateway")): Promise<void> {
  await eventually(
    () =>
      sendItem(upload, item.bytes).then(
        () => "accepted",
        (error: unknown) => String(error), // as while the chain is not followed yet
      ),
    (outcome) => outcome === "accepted",
    60_000,
  );
  await eventually(
    async () => {
      await chain.devnet.mine(1);
      return (await (await fetch(`${upload}/tx/${item.id}/status`)).json()).status;
    },
    (status) => status === "FINALIZED",
    60_000,
  );
}

describe("SERVICES=upload", () => {
  let program: Started;
  beforeAll(async () => {
    chain.devnet.mint(readWallet(rsaKeys.other).address, 10n ** 15n);
    program = await start({ ...settings(), SERVICES: "upload" });
  }, 90_000);

  test("opens the port of uploads only, and serves health, readiness and metrics there", async () => {
    const { line, ports } = program;
    expect([line.gateway, line.payment, line.adminUrl, line.adminKey]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ] as unknown[] as string[]);
    expect([await isOpen(ports["GATEWAY_PORT"]), await isOpen(ports["PAYMENT_PORT"])]).toEqual([false, false]);
    const upload = line.upload ?? "";
    await eventually(
      () => statusOf(`${upload}/ready`),
      (status) => status === 200,
      60_000,
    );
    for (const path of ["/info", "/health", "/metrics"])
      expect([path, await statusOf(`${upload}${path}`)]).toEqual([path, 200]);
    for (const path of ["/svc/admin/status", "/svc/console", "/graphql", "/svc/info"])
      expect([path, await statusOf(`${upload}${path}`)]).toEqual([path, 404]);
    expect((await (await fetch(`${upload}/info`)).json()).gateway).toBe("");
  }, 90_000);

  test("makes an upload permanent, and asks its node for nothing that only a gateway needs", async () => {
    await uploadUntilPermanent(program.line.upload ?? "");
    expect([chain.asked("/price/") > 0, chain.asked("/block/") > 0]).toEqual([true, true]);
    expect([chain.asked("/tx/pending"), chain.asked("/peers"), feed.count()]).toEqual([0, 0, 0]);
    const { code, errors } = await program.stop();
    expect(code).toBe(0);
    expect(errors).toContain("the admin API is off: SERVICES leaves out gateway, and ADMIN_LISTEN is not set");
  }, 180_000);
});

describe("SERVICES=payment", () => {
  test("sells credits without following the chain, and serves the admin API on ADMIN_LISTEN", async () => {
    const before = chain.asked("/block/");
    const program = await start({
      ...settings(),
      SERVICES: "payment",
      WALLET_FILE: "",
      ADMIN_LISTEN: "127.0.0.1:0",
      ADMIN_API_KEY: adminKey,
      GATEWAY_PUBLIC_URL: "https://gateway.test",
    });
    const { line, ports } = program;
    try {
      expect([await isOpen(ports["GATEWAY_PORT"]), await isOpen(ports["UPLOAD_PORT"])]).toEqual([false, false]);
      const payment = line.payment ?? "";
      expect(await statusOf(`${payment}/ready`)).toBe(200);
      expect((await (await fetch(`${payment}/info`)).json()).gateway).toBe("https://gateway.test");
      await eventually(
        () => statusOf(`${payment}/price/bytes/1000`),
        (status) => status === 200,
        60_000,
      );
      const address = `${"A".repeat(42)}E`;
      await grant(line, address, 500n);
      expect(await balanceOf(line, address)).toBe("500");
      const status = await (await fetch(`${line.adminUrl}/svc/admin/status`, { headers: asOperator })).json();
      expect(status.chain.height).toBe(null);
      expect(await statusOf(`${line.adminUrl}/svc/console`)).toBe(200);
      expect(chain.asked("/block/")).toBe(before);
    } finally {
      expect((await program.stop()).code).toBe(0);
    }
  }, 120_000);
});

describe("SERVICES=payment,upload", () => {
  test("charges an upload against credits, and makes it permanent", async () => {
    const item = testItem("charged without a gateway");
    const program = await start({
      ...settings(),
      SERVICES: "payment,upload",
      FREE_UPLOAD_BYTES: "0",
      ADMIN_LISTEN: "127.0.0.1:0",
      ADMIN_API_KEY: adminKey,
    });
    try {
      const { line, ports } = program;
      expect(await isOpen(ports["GATEWAY_PORT"])).toBe(false);
      await grant(line, item.account, 10n ** 15n);
      await uploadUntilPermanent(line.upload ?? "", item);
      const left = BigInt(await balanceOf(line, item.account));
      expect(left > 0n && left < 10n ** 15n).toBe(true);
    } finally {
      expect((await program.stop()).code).toBe(0);
    }
  }, 180_000);
});
