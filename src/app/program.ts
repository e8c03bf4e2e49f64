/**
 * The whole program: the log, the parts that every service uses, payment, uploads, and the gateway with the listeners.
 * @module
 */
import type { Config } from "../config/settings.ts";
import { createPublicUrl } from "../http/public-url.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import { createLog, type Log, openLineWriter } from "../lib/log.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import { openBase } from "./base.ts";
import { watchDamage } from "./databases.ts";
import { type GatewayParts, type OpenGateway, openGateway } from "./gateway.ts";
import type { UploadWallet } from "./keys.ts";
import { openPayment } from "./payment.ts";
import type { OpenSandbox } from "./sandbox.ts";
import { openUpload } from "./upload.ts";
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

/** Opens it; everything is closed by `closers`. Rejects when a port, a folder or the ledger cannot be had. */
export async function openProgram(
  given: GatewayParts & Readonly<{ wallet: UploadWallet | undefined; sandbox?: OpenSandbox }>,
): Promise<OpenProgram> {
  const { config } = given;
  const damage = watchDamage(given.log, given.folder, config);
  const parts = { ...given, log: damage.log, damage: damage.check };
  const base = openBase(parts);
  const opened: { gateway?: OpenGateway } = {};
  const ownHosts = [config.HOST, ...parts.rootHosts];
  const gatewayUrl = createPublicUrl({
    setting: config.GATEWAY_PUBLIC_URL,
    port: () => portOf(opened.gateway?.url, config.GATEWAY_PORT),
    ownHosts,
  });
  const paymentUrl = createPublicUrl({
    setting: config.PAYMENT_PUBLIC_URL,
    port: () => portOf(opened.gateway?.serviceUrls.get("payment"), config.PAYMENT_PORT),
    ownHosts,
  });
  const payment = await openPayment({ ...parts, base, gatewayUrl, publicUrl: paymentUrl });
  const uploadUrl = createPublicUrl({
    setting: config.UPLOAD_PUBLIC_URL,
    port: () => portOf(opened.gateway?.serviceUrls.get("upload"), config.UPLOAD_PORT),
    ownHosts,
  });
  const upload = await openUpload({ ...parts, base, payment, gatewayUrl, publicUrl: uploadUrl });
  const reading = await openPaidReading({ ...parts, ...payment });
  const paid = reading && { reading, publicUrl: gatewayUrl };
  const gateway = openGateway({ ...parts, paid }, base, [
    {
      name: "upload",
      service: upload.service,
      port: config.UPLOAD_PORT,
      bodyBytesMax: uploadBodyBytesMax,
    },
    {
      name: "payment",
      service: payment.service,
      port: config.PAYMENT_PORT,
      bodyBytesMax: paymentBodyBytesMax,
    },
  ]);
  opened.gateway = gateway;
  upload.start(gateway.wantBundle);
  parts.sandbox?.reportTo(gateway.serviceUrls.get("payment") ?? "");
  return { ...gateway, ledger: payment.ledger };
}

/** A port that was taken because it was free is known only when the listener is open. */
function portOf(url: string | undefined, asked: number): number {
  return url === undefined ? asked : Number(new URL(url).port || asked);
}
