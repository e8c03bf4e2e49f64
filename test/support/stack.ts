/**
 * The whole gateway on a real disk, following a development chain over a socket: every part is the program's own.
 * @module
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { takeFolder } from "../../src/app/data-folder.ts";
import { type OpenGateway, openGateway } from "../../src/app/open-gateway.ts";
import { readConfig } from "../../src/config/config.ts";
import type { Devnet, DevnetOptions } from "../../src/dev/devnet/devnet.ts";
import { createClosers } from "../../src/lib/closers.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openTestDevnet, serve, type TestNode } from "../dev/devnet/support.ts";
import { createRecordingLog } from "./recording-log.ts";
import { until } from "./until.ts";

/** A gateway and the chain that it follows. */
export type Stack = Readonly<{
  devnet: Devnet;
  node: TestNode;
  gateway: OpenGateway;
  port: number;
  /** Log lines so far, parsed. */
  lines: Record<string, unknown>[];
  /** Closes the gateway and opens it again on the same folder, at another port; with changed settings, if given. */
  restart: (changed?: Readonly<Record<string, string>>) => Promise<void>;
  /** Waits until the gateway has followed the chain's tip and its bundles are unbundled. */
  settled: () => Promise<void>;
  close: () => Promise<void>;
}>;

/** Longest wait for the gateway to catch up. Milliseconds. */
const settleMsMax = 60_000;

/**
 * Opens a chain, a node and a gateway on free ports.
 *
 * @param environment - Is added to the settings.
 * @param before - Puts a proxy between the gateway and its node. Returns the URL of the proxy.
 */
export async function openStack(
  environment: Readonly<Record<string, string>> = {},
  chain: Partial<DevnetOptions> = {},
  before: (nodeUrl: string) => Promise<string> = async (url) => url,
): Promise<Stack> {
  const { log, lines } = createRecordingLog();
  const devnet = await openTestDevnet(chain);
  const node = serve(devnet);
  const folder = mkdtempSync(join(tmpdir(), "cairn-stack-"));
  const nodeUrl = await before(`http://127.0.0.1:${node.port}`);
  const settings = {
    DATA_DIR: folder,
    HOST: "127.0.0.1",
    GATEWAY_PORT: "0",
    TRUSTED_NODE_URL: nodeUrl,
    FOLLOW_INTERVAL_MS: "50",
    WORKER_THREADS: "1",
    QUERY_THREADS: "1",
    ...environment,
  };
  const open = (changed: Readonly<Record<string, string>> = {}) => {
    const { config } = readConfig({ ...settings, ...changed }, "dev");
    const closers = createClosers((name, error) => log.error("could not be closed", { name, error }));
    const gateway = openGateway({
      config,
      folder: takeFolder(config, closers),
      nodeUrls: [nodeUrl],
      rootHosts: config.ARNS_ROOT_HOST,
      log,
      closers,
    });
    return { closers, gateway };
  };
  let opened = open();

  const isSettled = ({ gateway } = opened) =>
    gateway.reader.tip()?.height === devnet.height() &&
    gateway.reader.nextBundleAt() === undefined &&
    gateway.indexing.status().bundles.working.length === 0 &&
    gateway.reader.counts().bundlesQueued === 0;
  return {
    devnet,
    node,
    get gateway() {
      return opened.gateway;
    },
    get port() {
      return Number(new URL(opened.gateway.url).port);
    },
    lines,
    restart: async (changed) => {
      await opened.closers.closeAll();
      opened = open(changed);
    },
    settled: async () => {
      opened.gateway.indexing.wake();
      const lastLines = () => lines.slice(-20).map((line) => JSON.stringify(line));
      await until(isSettled, () => `the gateway catches up: ${lastLines().join("\n")}`, settleMsMax);
    },
    close: async () => {
      await opened.closers.closeAll();
      await node.close();
      devnet.close();
      removeFolder(folder);
    },
  };
}

/** The administration key of stacks that tests administer. */
export const adminKey = "key-of-this-test";

/** Sends a request to the admin API. @returns The parsed JSON, or "" for an empty body. */
export async function askAdmin(stack: Stack, method: string, path: string, body?: unknown) {
  const response = await fetch(`${stack.gateway.adminUrl ?? stack.gateway.url}/svc/admin/${path}`, {
    method,
    headers: { authorization: `Bearer ${adminKey}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? "" : JSON.parse(text) };
}
