/**
 * `cairn status`: how far a running gateway is, what it waits for, and what it holds.
 *
 * Everyone may read its health; with the admin key, the command prints queues, requests, disk, uploads and credits too.
 * @module
 */
import { exitCodes } from "../app/complaints.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../lib/json.ts";
import { jsonText } from "../lib/printable.ts";
import { arText, bytesText, countText, durationText, wincText } from "../lib/quantity-text.ts";
import { sleep, withDeadline } from "../lib/stop.ts";
import type { AdminAccess } from "./operator-commands.ts";
import { print } from "./print.ts";
import { objectIn, openServiceClient, type ServiceClient } from "./service-client.ts";
import { type PageRow, rowsText } from "./terminal.ts";

/** With neither key, only what everyone may read. */
export type StatusOptions = AdminAccess &
  Readonly<{
    json: boolean;
    /** Whether to print again every two seconds until Ctrl-C. */
    isLive: boolean;
  }>;

/** The health record, and the status record of operators. */
type Status = Readonly<{ health: JsonObject; operator: JsonObject | undefined }>;

const intervalMs = 2_000;
const timeoutMs = 30_000;

/** A failed request is not repeated: it is the status. */
const plan = { attempts: 1, firstMs: 0, longestMs: 0 } as const;

/** Clears a terminal. */
const clear = "\x1b[H\x1b[2J";

/** Prints the status. @returns The exit code: 0 when the gateway is healthy. */
export async function runStatus(options: StatusOptions): Promise<number> {
  const clients = [options.gateway, options.administration].map((url) => openServiceClient({ url, plan }));
  const [gateway, administration] = clients;
  const stop = new AbortController();
  const onStop = () => stop.abort();
  process.once("SIGINT", onStop);
  let code: number = exitCodes.interrupted;
  try {
    for (;;) {
      const status = await withDeadline(stop.signal, timeoutMs, (own) =>
        readStatus(gateway, administration, options, own),
      );
      code = printStatus(status, options);
      if (!options.isLive || (await isStopped(stop.signal))) return code;
    }
  } catch (error) {
    if (stop.signal.aborted) return code;
    throw error;
  } finally {
    process.off("SIGINT", onStop);
    for (const client of clients) client.close();
  }
}

/** @returns The exit code. */
function printStatus(status: Status, { json, isLive }: StatusOptions): number {
  print(json ? `${jsonText(status)}\n` : `${isLive ? clear : ""}${pageOf(status)}`);
  return status.health["status"] === "ok" ? exitCodes.done : exitCodes.failed;
}

/** Waits for the next print. @returns Whether the signal was aborted meanwhile. */
async function isStopped(signal: AbortSignal): Promise<boolean> {
  await sleep(intervalMs, signal).catch(() => "the caller reads the signal");
  return signal.aborted;
}

async function readStatus(
  gateway: ServiceClient | undefined,
  administration: ServiceClient | undefined,
  { adminKey, storedKey }: StatusOptions,
  signal: AbortSignal,
): Promise<Status> {
  const health = gateway === undefined ? {} : objectIn(await gateway.get("/health", signal), gateway.url);
  const key = adminKey ?? storedKey;
  if (administration === undefined || key === undefined) return { health, operator: undefined };
  const response = await administration.get("/svc/admin/status", signal, { authorization: `Bearer ${key}` });
  if (response.status === 401 && adminKey === undefined) return { health, operator: undefined };
  return { health, operator: objectIn(response, administration.url) };
}

/** The page, one line for each part. */
export function pageOf({ health, operator }: Status): string {
  const reasons = listIn(health, "reasons").map((reason): PageRow => ["", String(reason)]);
  const rows: readonly (PageRow | undefined)[] = [
    ["status", health["status"] === "ok" ? "healthy" : "unhealthy"],
    ...reasons,
    ["chain", chainText(operator === undefined ? objectOf(health, "chain") : objectOf(operator, "chain"))],
    ...(operator === undefined ? [] : operatorRows(operator)),
  ];
  return rowsText(
    rows.filter((row) => row !== undefined),
    10,
  );
}

function chainText(chain: JsonObject): string {
  const { height, tip, lag, blocksPerSecond, secondsToTip } = chain;
  if (typeof height !== "number") return "no block yet";
  const at = `height ${group(height)}`;
  if (typeof lag !== "number" || lag <= 0) return typeof tip === "number" ? `${at}, at the tip` : at;
  const rate = typeof blocksPerSecond === "number" ? `, ${blocksPerSecond.toFixed(1)} blocks/s` : "";
  const left = typeof secondsToTip === "number" ? `, ${durationText(secondsToTip * 1_000)} left` : "";
  return `${at} of ${group(Number(tip))}, ${countText(lag, "block")} behind${rate}${left}`;
}

function operatorRows(operator: JsonObject): readonly (PageRow | undefined)[] {
  const [index, requests, cache] = ["index", "requests", "cache"].map((name) => objectOf(operator, name));
  const queues = Object.entries(objectOf(operator, "queues")).filter(([, jobs]) => Number(jobs) > 0);
  const disks = Object.entries(objectOf(operator, "disk")).map(
    ([name, disk]) => `${name} ${bytesText(numberIn(disk, "freeBytes"))} free`,
  );
  return [
    [
      "index",
      [
        `${group(numberIn(index, "transactions"))} transactions`,
        `${group(numberIn(index, "items"))} items`,
        `${group(numberIn(index, "bundlesQueued"))} bundles queued`,
        `${group(numberIn(index, "bundlesFailed"))} failed`,
      ].join(", "),
    ],
    ["queues", queues.length === 0 ? "empty" : queues.map(([name, jobs]) => `${name} ${jobs}`).join(", ")],
    [
      "requests",
      `${group(numberIn(requests, "responses"))}, ${group(numberIn(requests, "serverErrors"))} with status 5xx, ` +
        `${bytesText(numberIn(requests, "bytes"))} sent`,
    ],
    ["cache", `${bytesText(numberIn(cache, "bytes"))} of ${bytesText(numberIn(cache, "bytesMax"))}`],
    disks.length === 0 ? undefined : ["disk", disks.join(", ")],
    ...uploadRows(operator["uploads"]),
    ...ledgerRows(operator["ledger"]),
  ];
}

function uploadRows(uploads: JsonValue | undefined): readonly PageRow[] {
  if (!isJsonObject(uploads)) return [];
  const items = Object.entries(objectOf(uploads, "items")).filter(([, count]) => Number(count) > 0);
  const bundles = listIn(uploads, "list").filter(isJsonObject);
  const wallet = uploads["wallet"];
  const row: PageRow = ["uploads", items.length === 0 ? "none wait" : items.map((each) => each.join(" ")).join(", ")];
  const waiting = bundles.map((bundle): PageRow => ["", `bundle ${bundle["id"]}: ${bundle["waitsFor"]}`]);
  if (!isJsonObject(wallet)) return [row, ...waiting];
  const days = wallet["daysLeft"];
  const left = typeof days === "number" ? `, ${days.toFixed(0)} days left` : "";
  return [row, ...waiting, ["wallet", `${wallet["address"]}: ${arText(BigInt(String(wallet["balance"])))} AR${left}`]];
}

function ledgerRows(ledger: JsonValue | undefined): readonly PageRow[] {
  if (!isJsonObject(ledger)) return [];
  const { liabilities, revenue } = ledger;
  return [
    ["credits", `${wincText(BigInt(String(liabilities)))} of clients, ${wincText(BigInt(String(revenue)))} earned`],
  ];
}

function group(count: number): string {
  return count.toLocaleString("en");
}

function objectOf(value: JsonObject, name: string): JsonObject {
  const found = value[name];
  return isJsonObject(found) ? found : {};
}

function listIn(value: JsonObject, name: string): readonly JsonValue[] {
  const found = value[name];
  return isJsonArray(found) ? found : [];
}

function numberIn(value: JsonValue | undefined, name: string): number {
  const found = isJsonObject(value) ? value[name] : undefined;
  return typeof found === "number" ? found : 0;
}
