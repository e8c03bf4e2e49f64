/**
 * A process that asks a server for coded bodies, and tells what came and how much memory that took at its peak.
 * @module
 */
import { readFileSync } from "node:fs";
import { openHttp } from "../../src/lib/http-client.ts";

const [url = "", count = "1"] = process.argv.slice(2);

function peakMiB(): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1]) / 1_024;
}

const before = peakMiB();
const timeouts = { firstByteMs: 60_000, stallMs: 60_000, totalMs: 60_000 };
const http = openHttp(timeouts);
const signal = AbortSignal.timeout(60_000);
const responses = await Promise.all(
  Array.from({ length: Number(count) }, () => http.whole({ method: "GET", url }, 1e6, signal)),
);
const outcomes = new Set(responses.map((response) => (response.kind === "fault" ? response.reason : response.kind)));
process.stdout.write(JSON.stringify({ outcomes: [...outcomes], grownMiB: peakMiB() - before }));
http.close();
