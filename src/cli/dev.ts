/**
 * `cairn dev`: a development chain, the gateway that follows it, and a site to open.
 * @module
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { winstonPerAr } from "../arweave/winston.ts";
import { openNode } from "../chain/node.ts";
import { type Devnet, openDevnet } from "../devnet/devnet.ts";
import type { MiningMode } from "../devnet/miner.ts";
import { createDevnetRoutes } from "../http/devnet/routes.ts";
import { reachableHost, refuseTakenPort } from "../http/listener.ts";
import { systemClock } from "../lib/clock.ts";
import { type Closers, createClosers } from "../lib/closers.ts";
import type { Log } from "../lib/log.ts";
import type { Config } from "../settings.ts";
import { claimPort } from "./claim-port.ts";
import { badSettings } from "./complaints.ts";
import type { DataFolder } from "./data-folder.ts";
import { commandsOf, devLine, devPage } from "./dev-text.ts";
import { fundDevWallets } from "./dev-wallets.ts";
import { takeFolder } from "./folder-lock.ts";
import { openLog } from "./open/log.ts";
import { openProgram } from "./open/program.ts";
import { openSandbox } from "./open/sandbox.ts";
import { keptSample } from "./sample/kept.ts";
import { firstSignal, untilTold } from "./until-told.ts";
import { keptUploadWallet, readUploadWallet, type UploadWallet } from "./upload-wallet.ts";

/** How it is run. */
export type DevOptions = Readonly<{
  ephemeral: boolean;
  json: boolean;
  /** The `PATH` of who started it. */
  path: string;
}>;

/** Under `dev` this machine's own name is a root host: every id has an origin of its own without any set-up. */
const devRootHost = "localhost";

/** A thousand tokens. */
const walletFunds = 1_000n * winstonPerAr;

/** Far above what a node takes: its own check then refuses with its own text, before anything is read. */
const nodeBodyBytesMax = 128 * 2 ** 20;

/** Runs until told to stop. @returns The exit code. */
export async function runDev(given: Config, options: DevOptions): Promise<number> {
  const told = firstSignal();
  const closers = createClosers((name, error) => log.error("could not be closed", { name, error }));
  const log = openLog(given, closers);
  try {
    const config = options.ephemeral ? { ...given, DATA_DIR: ephemeralFolder(closers) } : given;
    const folder = takeFolder(config, closers);
    const chain = await openChain(config, folder.devnet, log, closers);
    const sandbox = openSandbox({ config, folder, log, closers });
    const wallet = await devWallet(config, folder, chain.devnet);
    const gateway = await openProgram({
      sandbox,
      wallet,
      config,
      folder,
      nodeUrls: [chain.url],
      rootHosts: [devRootHost, ...config.ARNS_ROOT_HOST],
      log,
      closers,
    });
    const node = openNode(chain.url);
    closers.add("sample", node.close);
    const sample = await keptSample(folder.devnet, chain.devnet, node, gateway, config.DEVNET_SEED);
    const wallets = await fundDevWallets(chain.devnet, gateway.ledger);
    const services = Object.fromEntries(
      [...gateway.serviceUrls].map(([name, url]) => [name, localName(url)]),
    );
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
    process.stdout.write(options.json ? devLine(dev) : devPage(dev, commandsOf(config, options, dev)));
    return await untilTold(told, closers, log);
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
}

/** Removed after everything in it is closed. */
function ephemeralFolder(closers: Closers): string {
  const folder = mkdtempSync(join(tmpdir(), "cairn-"));
  closers.add("folder", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function openChain(
  config: Config,
  dir: string,
  log: Log,
  closers: Closers,
): Promise<Readonly<{ devnet: Devnet; url: string }>> {
  const mining = readMining(config.DEVNET_MINING);
  const devnet = await openDevnet({ dir, seed: config.DEVNET_SEED, clock: systemClock, mining, log });
  closers.add("development chain", devnet.close);
  const { HOST, DEVNET_PORT } = config;
  const serve = () => {
    refuseTakenPort(HOST, DEVNET_PORT);
    return Bun.serve({
      hostname: HOST,
      port: DEVNET_PORT,
      maxRequestBodySize: nodeBodyBytesMax,
      development: false,
      fetch: createDevnetRoutes(devnet, log).fetch,
    });
  };
  const server = claimPort({ name: "DEVNET_PORT", value: DEVNET_PORT }, { name: "HOST", value: HOST }, serve);
  closers.add("development chain's listener", () => server.stop(true));
  const host = HOST === "0.0.0.0" || HOST === "::" ? "127.0.0.1" : reachableHost(HOST);
  return { devnet, url: `http://${host}:${server.port}` };
}

/** The operator's wallet, or one that is made; with money out of nothing, as much as bundles will ever cost. */
async function devWallet(config: Config, folder: DataFolder, devnet: Devnet): Promise<UploadWallet> {
  const { WALLET_FILE: file } = config;
  const given = file === undefined ? undefined : readUploadWallet("WALLET_FILE", file);
  const found = given ?? (await keptUploadWallet(folder.keys));
  const { address } = found.wallet;
  if ((devnet.account(address)?.balance ?? 0n) < walletFunds) devnet.mint(address, walletFunds);
  return found;
}

function readMining(text: string): MiningMode {
  if (text === "auto" || text === "manual") return text;
  if (/^[1-9]\d{0,8}$/.test(text)) return { intervalMs: Number(text) };
  throw badSettings([`DEVNET_MINING must be auto, manual or milliseconds, got ${JSON.stringify(text)}`]);
}

/** People open names, not numbers; and only names have subdomains. */
function localName(url: string): string {
  return url.replace("127.0.0.1", devRootHost);
}
