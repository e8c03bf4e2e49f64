/**
 * `cairn dev`: a development chain, the gateway that follows it, and a site to open.
 * @module
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { claimPort } from "../app/claim-port.ts";
import { type DataFolder, dataFolderAt, takeFolder } from "../app/data-folder.ts";
import { claimDatabases, explainDamage } from "../app/databases.ts";
import { readUploadWallet, storedUploadWallet, type UploadWallet } from "../app/keys.ts";
import { openLog, openProgram } from "../app/program.ts";
import { openSandbox } from "../app/sandbox.ts";
import { winstonPerAr } from "../arweave/winston.ts";
import { openNode } from "../chain/node.ts";
import type { Config } from "../config/settings.ts";
import { type Devnet, openDevnet } from "../dev/devnet/devnet.ts";
import type { Shown } from "../dev/devnet-routes/controls.ts";
import { createDevnetRoutes } from "../dev/devnet-routes/node-routes.ts";
import { checkPortFree, reachableHost } from "../http/listener.ts";
import { systemClock } from "../lib/clock.ts";
import { type Closers, createClosers } from "../lib/closers.ts";
import type { Log } from "../lib/log.ts";
import type { MakeRsaJwk } from "../lib/rsa.ts";
import { storedSample } from "./dev-sample.ts";
import { commandsOf, devLine, devPage } from "./dev-text.ts";
import { fundDevWallets } from "./dev-wallets.ts";
import { readMining } from "./mining.ts";
import { createShownControls } from "./shown-controls.ts";
import { type Running, runUntilStopped } from "./until-stopped.ts";

/** How it is run. */
export type DevOptions = Readonly<{
  ephemeral: boolean;
  json: boolean;
  /** The `PATH` of who started it. */
  path: string;
  /** Makes keys that the folder does not have; they may have been begun before. */
  makeRsaKey: MakeRsaJwk;
}>;

/** Under `dev` this machine's own name is a root host: every id has an origin of its own without any set-up. */
const devRootHost = "localhost";

/** A thousand tokens. */
const walletFunds = 1_000n * winstonPerAr;

/** Far above what a node takes: its own check then rejects with its own text, before anything is read. */
const nodeBodyBytesMax = 128 * 2 ** 20;

/** Runs until a signal stops it. @returns The exit code. */
export async function runDev(config: Config, options: DevOptions): Promise<number> {
  const closers = createClosers((name, error) => log.error("could not be closed", { name, error }));
  const log = openLog(config, closers);
  const running = runUntilStopped({ closers, log }, (stop) => openDev(config, options, { closers, log, stop }));
  return await running.catch((error: unknown) => {
    throw explainDamage(error, dataFolderAt(config.DATA_DIR), config);
  });
}

type Opening = Running & Readonly<{ stop: AbortSignal }>;

/** Opens everything, and says where it is. */
async function openDev(given: Config, options: DevOptions, { closers, log, stop }: Opening): Promise<void> {
  const config = options.ephemeral ? { ...given, DATA_DIR: ephemeralFolder(closers) } : given;
  const folder = takeFolder(config, closers);
  await claimDatabases(folder, config, log);
  const readWallet = uploadWalletOf(config, folder, options.makeRsaKey);
  const controls = createShownControls(config);
  const chain = await openChain({
    config,
    dir: folder.devnet,
    shown: controls.shown,
    log,
    closers,
    makeRsaKey: options.makeRsaKey,
  });
  const sandbox = openSandbox({ config, folder, log, closers });
  const wallet = fundWallet(await readWallet(), chain.devnet);
  let isOver = false;
  const gateway = await openProgram({
    sandbox,
    wallet,
    config,
    folder,
    nodeUrls: [chain.url],
    rootHosts: [devRootHost, ...config.ARNS_ROOT_HOST],
    starting: () => (isOver ? [] : ["The sample site is not on the development chain yet."]),
    log,
    closers,
  });
  controls.by(gateway, chain.devnet);
  const node = openNode(chain.url);
  closers.add("sample", node.close);
  const { devnet } = chain;
  const sample = await storedSample({ dir: folder.devnet, devnet, node, gateway, config, log }, stop);
  const wallets = await fundDevWallets(devnet, gateway.ledger);
  const services = Object.fromEntries([...gateway.serviceUrls].map(([name, url]) => [name, localName(url)]));
  const record = {
    gateway: localName(gateway.url),
    ...services,
    sandbox: localName(sandbox.url),
    node: localName(chain.url),
    wallets,
    sample,
  };
  const administration = { adminUrl: gateway.adminUrl, ...gateway.shownKey };
  const dev = { ...record, ...administration };
  isOver = true;
  process.stdout.write(options.json ? devLine(dev) : devPage(dev, commandsOf(config, options, dev)));
}

/** Removed after everything in it is closed. */
function ephemeralFolder(closers: Closers): string {
  const folder = mkdtempSync(join(tmpdir(), "cairn-"));
  closers.add("folder", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

type ChainParts = Readonly<{
  config: Config;
  dir: string;
  shown: Shown;
  makeRsaKey: MakeRsaJwk;
  log: Log;
  closers: Closers;
}>;

async function openChain(parts: ChainParts): Promise<Readonly<{ devnet: Devnet; url: string }>> {
  const { config, dir, shown, makeRsaKey, log, closers } = parts;
  const mining = readMining(config.DEVNET_MINING);
  const devnet = await openDevnet({
    dir,
    seed: config.DEVNET_SEED,
    clock: systemClock,
    mining,
    makeRsaKey,
    log,
  });
  closers.add("development chain", devnet.close);
  const { HOST, DEVNET_PORT } = config;
  const serve = () => {
    checkPortFree(HOST, DEVNET_PORT);
    return Bun.serve({
      hostname: HOST,
      port: DEVNET_PORT,
      maxRequestBodySize: nodeBodyBytesMax,
      development: false,
      fetch: createDevnetRoutes(devnet, log, shown).fetch,
    });
  };
  const server = claimPort({ name: "DEVNET_PORT", value: DEVNET_PORT }, { name: "HOST", value: HOST }, serve);
  closers.add("development chain's listener", () => server.stop(true));
  const host = HOST === "0.0.0.0" || HOST === "::" ? "127.0.0.1" : reachableHost(HOST);
  return { devnet, url: `http://${host}:${server.port}` };
}

/** Begins to make the wallet where there is none. @returns Waits for the operator's wallet, or that one. */
function uploadWalletOf(
  { WALLET_FILE: file }: Config,
  folder: DataFolder,
  makeKey: MakeRsaJwk,
): () => Promise<UploadWallet> {
  if (file !== undefined) return async () => readUploadWallet("WALLET_FILE", file);
  const made = storedUploadWallet(folder.keys, makeKey);
  made.catch(() => "reported to its caller, unless the start fails before");
  return () => made;
}

/** With money out of nothing: as much as bundles will ever cost. */
function fundWallet(found: UploadWallet, devnet: Devnet): UploadWallet {
  const { address } = found.wallet;
  if ((devnet.account(address)?.balance ?? 0n) < walletFunds) devnet.mint(address, walletFunds);
  return found;
}

/** People open names, not numbers; and only names have subdomains. */
function localName(url: string): string {
  return url.replace("127.0.0.1", devRootHost);
}
