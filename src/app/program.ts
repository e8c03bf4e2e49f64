/**
 * The whole program: the log, the parts that every service uses, payment, uploads, and the gateway with the listeners.
 * @module
 */
import type { Config } from "../config/settings.ts";
import type { HealthCheck } from "../gateway/health.ts";
import { createPublicUrl } from "../http/public-url.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import { createLog, type Log, openLineWriter } from "../lib/log.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import { openLedger } from "../store/ledger/open-ledger.ts";
import { storedStoreName } from "../store/uploads/item-files.ts";
import { openBase } from "./base.ts";
import type { DataFolder } from "./data-folder.ts";
import { watchDamage } from "./databases.ts";
import { type ListenerName, type OpenGateway, openGateway } from "./gateway.ts";
import type { UploadWallet } from "./keys.ts";
import { openPayment } from "./payment.ts";
import type { OpenSandbox } from "./sandbox.ts";
import { createUploadSearch, openUpload } from "./upload.ts";
import { openPaidReading } from "./x402.ts";

const standardError = 2;

/** Opens the log; it is closed last. */
export function openLog(config: Config, closers: Closers): Log {
  const writer = openLineWriter(standardError);
  closers.add("log", writer.close);
  const forPeople = config.LOG_FORMAT === "pretty" || (config.LOG_FORMAT === "auto" && process.stderr.isTTY);
  return createLog({
    level: config.LOG_LEVEL,
    format: forPeople ? "pretty" : "json",
    clock: systemClock,
    write: writer.write,
  });
}

/** Largest body of the payment service: what Stripe reports. Each route has a smaller limit of its own. */
const paymentBodyBytesMax = 2 ** 20;

/** The whole program, open. */
export type OpenProgram = OpenGateway & Readonly<{ ledger: LedgerDatabase }>;

/** Routes say of an item that is too large how large it may be; the listener would only cut it off. */
const uploadBodyBytesMax = Number.MAX_SAFE_INTEGER;

/** What the program is opened with. */
export type ProgramParts = Readonly<{
  config: Config;
  /** Locked by this process. */
  folder: DataFolder;
  /** Chain nodes, in the order of requests. */
  nodeUrls: readonly string[];
  /** Hosts whose subdomains are names and sandboxes. */
  rootHosts: readonly string[];
  /** Undefined: uploads are off. */
  wallet: UploadWallet | undefined;
  /** Why the start is not over yet, though the gateway is open; none when it is. */
  starting?: HealthCheck;
  /** Under `dev`: replaces Stripe and the price feed. */
  sandbox?: OpenSandbox;
  log: Log;
  closers: Closers;
}>;

/** Opens the program; everything is closed by `closers`. Rejects when a port, a folder or the ledger is unavailable. */
export async function openProgram(parts: ProgramParts): Promise<OpenProgram> {
  const { config, folder, nodeUrls, rootHosts, wallet, starting, sandbox, closers } = parts;
  const { log, check: damage } = watchDamage(parts.log, folder, config);
  const ledger = await openLedger({ url: config.LEDGER_URL, path: folder.ledger });
  closers.add("ledger", ledger.close);
  const storeName = storedStoreName(folder.uploads, () => crypto.randomUUID());
  const findUploaded = createUploadSearch(ledger, folder, storeName);
  const base = openBase({ config, folder, nodeUrls, findUploaded, log, closers });
  const { metrics, reader, index, sources } = base;
  const { nodes, content, blockList } = sources;
  const ports = createPorts(config);
  const ownHosts = [config.HOST, ...rootHosts];
  const publicUrl = (name: ListenerName, setting: string | undefined) =>
    createPublicUrl({ setting, port: () => ports.of(name), ownHosts });
  const gatewayUrl = publicUrl("gateway", config.GATEWAY_PUBLIC_URL);
  const payment = openPayment({
    config,
    folder,
    ledger,
    reader,
    nodes,
    metrics,
    gatewayUrl,
    publicUrl: publicUrl("payment", config.PAYMENT_PUBLIC_URL),
    wallet,
    sandbox,
    damage,
    log,
    closers,
  });
  const upload = await openUpload({
    config,
    folder,
    ledger,
    storeName,
    reader,
    index,
    nodes,
    content,
    blockList,
    metrics,
    payment,
    wallet,
    gatewayUrl,
    publicUrl: publicUrl("upload", config.UPLOAD_PUBLIC_URL),
    log,
    closers,
  });
  const reading = await openPaidReading({ config, folder, ledger, x402: payment.x402 });
  const paid = reading && { reading, publicUrl: gatewayUrl };
  const { PAYMENT_PORT, UPLOAD_PORT } = config;
  const gateway = openGateway(
    { config, folder, nodeUrls, rootHosts, starting, wallet, damage, paid, onListening: ports.note, log, closers },
    base,
    [
      { name: "upload", service: upload.service, port: UPLOAD_PORT, bodyBytesMax: uploadBodyBytesMax },
      { name: "payment", service: payment.service, port: PAYMENT_PORT, bodyBytesMax: paymentBodyBytesMax },
    ],
  );
  upload.start(gateway.wantBundle);
  sandbox?.reportTo(gateway.serviceUrls.get("payment") ?? "");
  return { ...gateway, ledger };
}

/** Ports of the listeners: those of the settings, until a listener is open: port 0 picks a free one. */
function createPorts({ GATEWAY_PORT, PAYMENT_PORT, UPLOAD_PORT }: Config) {
  const ports = { gateway: GATEWAY_PORT, payment: PAYMENT_PORT, upload: UPLOAD_PORT };
  return {
    of: (name: ListenerName) => ports[name],
    note: (name: ListenerName, url: string) => {
      ports[name] = Number(new URL(url).port || ports[name]);
    },
  };
}
