/**
 * `cairn dev`: the development chain, the sandbox, all services, funded wallets and a sample site.
 * @module
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DataFolder, dataFolderAt, takeFolder } from "../app/data-folder.ts";
import { claimDatabases, explainDamage } from "../app/databases.ts";
import { readUploadWallet, storedUploadWallet, type UploadWallet } from "../app/keys.ts";
import { claimPort } from "../app/listeners.ts";
import { type OpenProgram, openLog, openProgram } from "../app/program.ts";
import { systemRandom } from "../app/random.ts";
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
import { type Log, openLineWriter, standardOutput } from "../lib/log.ts";
import { removeFolder } from "../lib/remove-folder.ts";
import type { MakeRsaJwk } from "../lib/rsa.ts";
import { giveStartingCredits } from "../payment/credits/credits.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import { balanceOf, createTransferIds, user } from "../store/ledger/transfers.ts";
import { readMining } from "./check-settings.ts";
import { storedSample } from "./dev-sample.ts";
import { commandsOf, devLine, devPage, type FundedWallet } from "./dev-text.ts";
import { createLiveText, type LiveText, openLiveSummary, type TerminalSize } from "./live-summary.ts";
import { createShownControls } from "./shown-controls.ts";
import { type Running, runUntilStopped } from "./until-stopped.ts";
import { accountOfKey } from "./wallet-file.ts";

export type DevOptions = Readonly<{
  ephemeral: boolean;
  json: boolean;
  /** Whether to show the status at the end of the terminal. */
  isLive: boolean;
  /** `PATH` of the environment. */
  path: string;
  /** Generates the keys that the folder lacks; their generation may have started before. */
  makeRsaKey: MakeRsaJwk;
}>;

/** `localhost` is a root host under `dev`: every id has its own origin without configuration. */
const devRootHost = "localhost";

/** Minimum balance of the wallet that posts bundles, winston. */
const walletFunds = 1_000n * winstonPerAr;

/** Far above the node's limit: the node's own check then rejects a larger body, with the node's message. */
const nodeBodyBytesMax = 128 * 2 ** 20;

/** Longer than a control waits for the gateway; the runtime cuts a connection that waits longer. Seconds. */
const controlSeconds = 120;

/** Runs until a signal stops it. @returns The exit code. */
export async function runDev(config: Config, options: DevOptions): Promise<number> {
  const closers = createClosers((name, error) => log.error("could not be closed", { name, error }));
  let live: LiveText | undefined;
  const log = openLog(config, closers, (write) => {
    if (!options.isLive) return write;
    live = createLiveText(write, terminalSize);
    return live.line;
  });
  const open = async (stop: AbortSignal) => {
    const gateway = await openDev(config, options, { closers, log, stop });
    if (live !== undefined) closers.add("live summary", openLiveSummary(gateway, live, log).close);
  };
  // With a certificate, SIGHUP reads its files again. Without --ephemeral there is nothing to remove.
  const isHangupStop = options.ephemeral && config.TLS_CERT_FILE === undefined;
  const running = runUntilStopped({ closers, log }, open, { isHangupStop });
  return await running.catch((error: unknown) => {
    throw explainDamage(error, dataFolderAt(config.DATA_DIR), config);
  });
}

function terminalSize(): ReturnType<TerminalSize> {
  const { columns, rows } = process.stderr;
  return { columns, rows };
}

type Opening = Running & Readonly<{ stop: AbortSignal }>;

/** Opens everything, and prints the addresses. */
async function openDev(given: Config, options: DevOptions, { closers, log, stop }: Opening): Promise<OpenProgram> {
  const config = options.ephemeral ? { ...given, DATA_DIR: ephemeralFolder(closers) } : given;
  const folder = takeFolder(config, closers);
  await claimDatabases(folder, config, log);
  const readWallet = uploadWalletOf(config, folder, options.makeRsaKey);
  const controls = createShownControls(config);
  let fundAgain = (): void => undefined;
  const chain = await openChain({
    config,
    dir: folder.devnet,
    shown: async (control) => {
      if (control === "reset") fundAgain();
      await controls.shown(control);
    },
    log,
    closers,
    makeRsaKey: options.makeRsaKey,
  });
  const sandbox = config.SERVICES.includes("payment") ? openSandbox({ config, folder, log, closers }) : undefined;
  const wallet = fundWallet(await readWallet(), chain.devnet);
  // A reset takes what was minted: uploads that are accepted afterwards could not be posted.
  fundAgain = () => void fundWallet(wallet, chain.devnet);
  let isReady = false;
  const gateway = await openProgram({
    sandbox,
    wallet,
    testWallet: chain.devnet.wallets.find(({ type }) => type === "rsa")?.jwk,
    config,
    folder,
    nodeUrls: [chain.url],
    rootHosts: [devRootHost, ...config.ARNS_ROOT_HOST],
    starting: () => (isReady ? [] : ["The sample site is not on the development chain yet."]),
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
    ...(sandbox === undefined ? {} : { sandbox: localName(sandbox.url) }),
    node: localName(chain.url),
    wallets,
    sample,
  };
  const hasConsole = config.ADMIN_LISTEN !== undefined || config.CONTENT_ISOLATION !== "off";
  const administration = {
    adminUrl: gateway.adminUrl,
    console: hasConsole ? `${gateway.adminUrl ?? record.gateway}/svc/console` : undefined,
    ...gateway.shownKey,
  };
  const dev = { ...record, ...administration };
  isReady = true;
  const output = openLineWriter(standardOutput);
  closers.add("output", output.close);
  output.write(options.json ? devLine(dev) : devPage(dev, commandsOf(config, options, dev)));
  return gateway;
}

/** A temporary folder. It is removed after every part that uses it is closed. */
function ephemeralFolder(closers: Closers): string {
  const folder = mkdtempSync(join(tmpdir(), "cairn-"));
  closers.add("folder", () => removeFolder(folder));
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
      idleTimeout: controlSeconds,
      development: false,
      fetch: createDevnetRoutes(devnet, log, shown).fetch,
    });
  };
  const server = claimPort({ name: "DEVNET_PORT", value: DEVNET_PORT }, { name: "HOST", value: HOST }, serve);
  closers.add("development chain's listener", () => server.stop(true));
  const host = HOST === "0.0.0.0" || HOST === "::" ? "127.0.0.1" : reachableHost(HOST);
  return { devnet, url: `http://${host}:${server.port}` };
}

/** Starts the generation of a missing wallet. @returns Waits for the generated wallet, or reads that of the setting. */
function uploadWalletOf(
  { WALLET_FILE: file }: Config,
  folder: DataFolder,
  makeKey: MakeRsaJwk,
): () => Promise<UploadWallet> {
  if (file !== undefined) return async () => readUploadWallet("WALLET_FILE", file);
  const made = storedUploadWallet(folder.keys, makeKey);
  made.catch(() => "the caller of the returned function receives the error");
  return () => made;
}

/** Mints tokens for a wallet with less than {@link walletFunds}. */
function fundWallet(found: UploadWallet, devnet: Devnet): UploadWallet {
  const { address } = found.wallet;
  if ((devnet.account(address)?.balance ?? 0n) < walletFunds) devnet.mint(address, walletFunds);
  return found;
}

/** Only a host name has subdomains; an IP address has none. */
function localName(url: string): string {
  return url.replace("127.0.0.1", devRootHost);
}

/** Credits that each wallet starts with, winc: about 100 GiB of storage at the first fees of the development chain. */
const wincAtStart = 100n * 10n ** 12n;

/** Credits each new account with {@link wincAtStart}. @returns All wallets with their balances. */
async function fundDevWallets(
  { wallets, account }: Pick<Devnet, "wallets" | "account">,
  ledger: LedgerDatabase,
): Promise<FundedWallet[]> {
  const accounts = wallets.map(({ jwk }) => accountOfKey(jwk));
  const parts = { ledger, clock: systemClock, makeId: createTransferIds(systemClock, systemRandom) };
  const known = accounts.filter((address) => address !== undefined);
  await giveStartingCredits(parts, known, wincAtStart);
  return await ledger.read(async (tx) => {
    const funded: FundedWallet[] = [];
    for (const [index, wallet] of wallets.entries()) {
      const address = accounts[index];
      const credits = address === undefined ? 0n : await balanceOf(tx, user(address));
      const balance = account(wallet.address)?.balance ?? 0n;
      funded.push({ ...wallet, balance, account: address, credits });
    }
    return funded;
  });
}
