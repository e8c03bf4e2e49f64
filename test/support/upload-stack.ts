/**
 * The whole program on a real disk, with uploads, following a development chain over a socket: every part is its own.
 * @module
 */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { takeFolder } from "../../src/app/data-folder.ts";
import { readUploadWallet } from "../../src/app/keys.ts";
import type { OpenGateway } from "../../src/app/open-gateway.ts";
import { openProgram } from "../../src/app/program.ts";
import { readConfig } from "../../src/config/config.ts";
import type { Devnet, DevnetOptions } from "../../src/dev/devnet/devnet.ts";
import { createClosers } from "../../src/lib/closers.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openTestDevnet, rsaJwk, serve } from "../dev/devnet/support.ts";
import { createRecordingLog } from "./recording-log.ts";
import { eventually, until } from "./until.ts";

/** A program and the chain that it follows. */
export type UploadStack = Readonly<{
  devnet: Devnet;
  gateway: OpenGateway;
  /** Where uploads go, and where content is read. */
  uploads: string;
  content: string;
  /** That of all data. */
  folder: string;
  /** Log lines so far, parsed. */
  lines: Record<string, unknown>[];
  /** Closes the program and opens it again on the same folder. */
  restart: () => Promise<void>;
  close: () => Promise<void>;
}>;

/** What it is opened with. */
export type UploadStackOptions = Readonly<{
  environment?: Readonly<Record<string, string>>;
  chain?: Partial<DevnetOptions>;
  /** Puts a proxy between the program and its node. Returns the URL of the proxy. */
  before?: (nodeUrl: string) => Promise<string> | string;
  /** Without a wallet uploads are off. */
  hasWallet?: boolean;
  /** Whether to wait for the first block; without one nothing is taken. */
  waitsForTip?: boolean;
}>;

/** Opens a chain, a node, and the program on free ports. Items cost nothing. */
export async function openUploadStack(options: UploadStackOptions = {}): Promise<UploadStack> {
  const { before = (url: string) => url, hasWallet = true, waitsForTip = true } = options;
  const { log, lines } = createRecordingLog();
  const devnet = await openTestDevnet({ clock: Date.now, ...options.chain });
  const node = serve(devnet);
  const root = mkdtempSync(join(tmpdir(), "cairn-uploads-"));
  const folder = join(root, "data");
  mkdirSync(folder);
  const walletFile = join(root, "wallet.json");
  writeFileSync(walletFile, JSON.stringify(rsaJwk));
  const nodeUrl = await before(`http://127.0.0.1:${node.port}`);
  const { config } = readConfig(
    {
      DATA_DIR: folder,
      HOST: "127.0.0.1",
      GATEWAY_PORT: "0",
      PAYMENT_PORT: "0",
      UPLOAD_PORT: "0",
      ...(hasWallet ? { WALLET_FILE: walletFile } : {}),
      TRUSTED_NODE_URL: nodeUrl,
      FREE_UPLOAD_BYTES: String(2 ** 30),
      FOLLOW_INTERVAL_MS: "30",
      UPLOAD_BUNDLE_WAIT_MS: "60",
      UPLOAD_LOOK_MS: "20",
      UPLOAD_CONFIRMATIONS: "2",
      WORKER_THREADS: "1",
      QUERY_THREADS: "1",
      ...options.environment,
    },
    "dev",
  );
  const open = async () => {
    const closers = createClosers((name, error) => log.error("could not be closed", { name, error }));
    const gateway = await openProgram({
      config,
      log,
      closers,
      nodeUrls: [nodeUrl],
      rootHosts: config.ARNS_ROOT_HOST,
      folder: takeFolder(config, closers),
      wallet: hasWallet ? readUploadWallet("WALLET_FILE", walletFile) : undefined,
    });
    // Receipts name a height: nothing is taken before there is one.
    await eventually(
      async () => gateway.reader.tip(),
      (tip) => tip !== undefined || !waitsForTip,
    );
    return { closers, gateway };
  };
  let opened = await open();
  return {
    devnet,
    folder,
    lines,
    get gateway() {
      return opened.gateway;
    },
    get content() {
      return opened.gateway.url.replace(/\/$/, "");
    },
    get uploads() {
      return (opened.gateway.serviceUrls.get("upload") ?? "").replace(/\/$/, "");
    },
    restart: async () => {
      await opened.closers.closeAll();
      opened = await open();
    },
    close: async () => {
      await opened.closers.closeAll();
      await node.close();
      devnet.close();
      removeFolder(root);
    },
  };
}

/** An item as the status route tells of it. */
export type ItemStatus = Readonly<{
  status: string;
  info: string;
  bundleId?: string;
  startOffsetInRootBundle?: number;
}>;

/** Sends a signed item. @returns Its receipt. */
export async function sendItem(uploads: string, bytes: Uint8Array): Promise<Readonly<{ id: string }>> {
  const headers = { "content-type": "application/octet-stream" };
  const response = await fetch(`${uploads}/tx`, { method: "POST", body: new Uint8Array(bytes), headers });
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  return await response.json();
}

/** How far an item is. */
export async function statusOf(uploads: string, id: string): Promise<ItemStatus> {
  const response = await fetch(`${uploads}/tx/${id}/status`);
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  return await response.json();
}

/** Mines blocks until an upload is permanent. */
export async function untilFinalized(stack: UploadStack, id: string): Promise<void> {
  await until(async () => {
    await stack.devnet.mine(1);
    return (await statusOf(stack.uploads, id)).status === "FINALIZED";
  });
}
