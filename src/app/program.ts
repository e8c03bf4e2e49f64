/**
 * The composition root: opens the ledger, the parts that every service uses, payment, uploads, and last the gateway
 * with all listeners, or the listeners of the services alone.
 * @module
 */
import { fstatSync, statSync } from "node:fs";
import { devNull } from "node:os";
import type { Config } from "../config/settings.ts";
import type { HealthCheck } from "../gateway/health.ts";
import { createPublicUrl } from "../http/public-url.ts";
import type { Service } from "../http/service-app.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import type { JsonObject } from "../lib/json.ts";
import { createLog, type Log, openLineWriter, standardError } from "../lib/log.ts";
import { createLedgerMonitor } from "../payment/ledger-stats.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import { openLedger } from "../store/ledger/open-ledger.ts";
import { storedStoreName } from "../store/uploads/item-files.ts";
import { storedBytes } from "../upload/upload-rows.ts";
import { type AppContext, openBase } from "./base.ts";
import { watchDamage } from "./databases.ts";
import type { UploadWallet } from "./keys.ts";
import type { ListenerName, ServicePlace } from "./listeners.ts";
import { recordLog } from "./monitoring.ts";
import { type OpenGateway, openGateway } from "./open-gateway.ts";
import { openPaidReading } from "./open-paid-reading.ts";
import { openPayment } from "./open-payment.ts";
import { type OpenServices, openServices, withoutGateway } from "./open-services.ts";
import { createUploadSearch, openUpload } from "./open-upload.ts";
import type { OpenSandbox } from "./sandbox.ts";

/**
 * Whether standard error is a terminal. Only a device other than /dev/null can be one: `process.stderr`, which knows
 * it, takes 6 ms of a start (measured).
 */
function isTerminal(): boolean {
  const stats = fstatSync(standardError);
  return stats.isCharacterDevice() && stats.rdev !== statSync(devNull).rdev && process.stderr.isTTY === true;
}

/** A function that writes lines in place of another one. */
export type WrapLines = (write: (line: string) => void) => (line: string) => void;

/**
 * Opens the log. It must be opened first, so that it is closed last.
 *
 * @param wrap - Writes other text to the same terminal.
 */
export function openLog(config: Config, closers: Closers, wrap: WrapLines = (write) => write): Log {
  const writer = openLineWriter(standardError);
  closers.add("log", writer.close);
  const isPretty = config.LOG_FORMAT === "pretty" || (config.LOG_FORMAT === "auto" && isTerminal());
  return createLog({
    level: config.LOG_LEVEL,
    format: isPretty ? "pretty" : "json",
    clock: systemClock,
    write: wrap(writer.write),
  });
}

/** Largest request body of the payment service: a report of Stripe. Each route has a smaller limit. Bytes. */
const paymentBodyBytesMax = 2 ** 20;

/** The listener does not limit uploads: the routes reject an item that is too large, with the limit in the message. */
const uploadBodyBytesMax = Number.MAX_SAFE_INTEGER;

/** Parameters of {@link openProgram}. */
export type ProgramParts = AppContext &
  Readonly<{
    /** Chain nodes, in the order of requests. */
    nodeUrls: readonly string[];
    /** Hosts whose subdomains are names and sandboxes. */
    rootHosts: readonly string[];
    /** Undefined: uploads are off. */
    wallet: UploadWallet | undefined;
    /** Reasons why the start is not complete, although the gateway is open. */
    starting?: HealthCheck;
    /** Under `dev`: replaces Stripe and the price feed. */
    sandbox?: OpenSandbox | undefined;
    /** Under `dev`: key of a funded wallet, for the page for uploads. */
    testWallet?: JsonObject | undefined;
  }>;

export type OpenProgram = OpenGateway &
  Readonly<{
    ledger: LedgerDatabase;
    /** Fails, and refunds, all permanent uploads: their chain was begun anew. */
    failPermanentUploads: () => Promise<void>;
  }>;

/** Opens the program; `closers` close it. Rejects when a port, a folder or the ledger is unavailable. */
export async function openProgram(parts: ProgramParts): Promise<OpenProgram> {
  const { rootHosts, wallet, testWallet, sandbox } = parts;
  const opened = await openParts(parts);
  const { app, ledger, gatewayUrl, payment, upload } = opened;
  if (upload === undefined) await noteWaitingUploads(ledger, opened.storeName, app.log);
  const reading = await openPaidReading(app, { ledger, x402: payment?.x402 });
  const gateway = openGateway(
    { ...opened.shared, rootHosts, wallet, testWallet, paid: reading && { reading, publicUrl: gatewayUrl } },
    opened.base,
    opened.places,
  );
  upload?.start(gateway.wantBundle);
  sandbox?.reportTo(gateway.serviceUrls.get("payment") ?? "");
  return { ...gateway, ledger, failPermanentUploads: async () => upload?.failPermanent() };
}

/** Opens a program whose SERVICES leave out the gateway. Rejects as {@link openProgram} does. */
export async function openProgramWithoutGateway(parts: ProgramParts): Promise<OpenServices> {
  const { shared, base, payment, upload, places } = await openParts({ ...parts, config: withoutGateway(parts.config) });
  // Payments in AR are found in blocks of the index.
  const isChainNeeded = upload !== undefined || payment?.addresses.has("native") === true;
  const services = openServices({ ...shared, isChainNeeded }, base, places);
  upload?.start(services.wantBundle);
  return services;
}

/** Opens what a program has with a gateway and without: the ledger, the base, payment and uploads. */
async function openParts(parts: ProgramParts) {
  const { config, folder, closers, nodeUrls, rootHosts, wallet, starting, sandbox } = parts;
  const recorded = recordLog(parts.log);
  const { log, check: damage } = watchDamage(recorded.log, folder, config);
  const app: AppContext = { config, folder, log, closers };
  const ledger = await openLedger({ url: config.LEDGER_URL, path: folder.ledger });
  closers.add("ledger", ledger.close);
  const storeName = storedStoreName(folder.uploads, () => crypto.randomUUID());
  const findUploaded = createUploadSearch(ledger, folder, storeName);
  const base = openBase({ ...app, nodeUrls, findUploaded });
  const ports = createPorts(config);
  const urlOf = (name: ListenerName, setting: string | undefined) =>
    createPublicUrl({ setting, port: () => ports.of(name), ownHosts: [config.HOST, ...rootHosts] });
  const isOn = (name: ListenerName) => config.SERVICES.includes(name);
  // Without a gateway here, only the operator knows the address of another one.
  const hasGatewayUrl = isOn("gateway") || config.GATEWAY_PUBLIC_URL !== undefined;
  const gatewayUrl = hasGatewayUrl ? urlOf("gateway", config.GATEWAY_PUBLIC_URL) : () => "";
  const isPriced = isOn("payment") || isOn("upload") || config.X402_PAY_TO !== undefined;
  const payment = isPriced
    ? openPayment(app, {
        ...base,
        ...base.sources,
        ledger,
        gatewayUrl,
        publicUrl: urlOf("payment", config.PAYMENT_PUBLIC_URL),
        wallet,
        sandbox,
        damage,
      })
    : undefined;
  const upload =
    payment !== undefined && isOn("upload")
      ? await openUpload(app, {
          ...base,
          ...base.sources,
          ledger,
          storeName,
          payment,
          wallet,
          gatewayUrl,
          publicUrl: urlOf("upload", config.UPLOAD_PUBLIC_URL),
        })
      : undefined;
  if (config.SOLVENCY_PUBLISH_MS !== 0 && upload?.monitored === undefined)
    log.warn("roots of solvency are not published while uploads are off", { interval: config.SOLVENCY_PUBLISH_MS });
  const places: readonly (Omit<ServicePlace, "service"> & Readonly<{ service: Service | undefined }>)[] = [
    { name: "upload", service: upload?.service, port: config.UPLOAD_PORT, bodyBytesMax: uploadBodyBytesMax },
    { name: "payment", service: payment?.service, port: config.PAYMENT_PORT, bodyBytesMax: paymentBodyBytesMax },
  ];
  return {
    app,
    base,
    ledger,
    storeName,
    gatewayUrl,
    payment,
    upload,
    places: places.flatMap(({ service, ...place }) => (service === undefined ? [] : [{ ...place, service }])),
    /** Parameters of the gateway, and of a program without one. */
    shared: {
      ...app,
      nodeUrls,
      starting,
      damage,
      monitored: {
        ledger: createLedgerMonitor(base.metrics, ledger, systemClock),
        uploads: upload?.monitored,
        lines: recorded.lines,
      },
      operatorEndpoints: payment?.operatorEndpoints ?? [],
      onListening: ports.note,
    },
  };
}

/** Accepted items are posted by the upload service only. */
async function noteWaitingUploads(ledger: LedgerDatabase, storeName: string, log: Log): Promise<void> {
  const bytes = await ledger.read((tx) => storedBytes(tx, storeName));
  if (bytes > 0) log.warn("accepted uploads are not posted to the chain while SERVICES leaves out upload", { bytes });
}

/** Ports of the listeners. Port 0 of a setting is replaced by the picked port when the listener is open. */
function createPorts({ GATEWAY_PORT, PAYMENT_PORT, UPLOAD_PORT }: Config) {
  const ports = { gateway: GATEWAY_PORT, payment: PAYMENT_PORT, upload: UPLOAD_PORT };
  return {
    of: (name: ListenerName) => ports[name],
    note: (name: ListenerName, url: string) => {
      ports[name] = Number(new URL(url).port || ports[name]);
    },
  };
}
