/**
 * Manifests of tens of megabytes in the whole program: each is read once, and a request then costs a look into a file.
 *
 * `MANIFEST_MIB=42 READERS=80 ROUNDS=40` are the sizes of the attack that this test covers.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createDataItem } from "../../src/arweave/data-item.ts";
import { createEd25519Signer } from "../../src/arweave/signers/ed25519.ts";
import { manifestText } from "../support/manifest-text.ts";
import { programPorts, type RunningProgram, startDev } from "../support/program.ts";
import { sendItem } from "../support/upload-stack.ts";

const mebibytes = Number(process.env["MANIFEST_MIB"] ?? 3);
const readers = Number(process.env["READERS"] ?? 20);
const rounds = Number(process.env["ROUNDS"] ?? 5);

/** Number of manifests, and of requested paths in each. */
const manifestCount = 6;
const slice = 2 ** 20;

/** Retries of a client after a 503. */
const attemptsMax = 5;

/**
 * The most by which the process may grow: two builds, each about as large as its manifest with the read-ahead of its
 * bytes, and what the allocator and the threads keep of them.
 */
const growthMax = 200 * slice + 3 * mebibytes * slice;

let program: RunningProgram;
let ports: Record<string, string>;
let page: string;
const manifests: string[] = [];

const start = (folder?: string) =>
  startDev({
    ports,
    ...(folder === undefined ? {} : { folder }),
    // Nothing is bundled meanwhile: what is measured is reading.
    environment: {
      FREE_UPLOAD_BYTES: String(2 ** 30),
      HOT_BYTES_MAX: "0",
      WORKER_THREADS: "2",
      UPLOAD_BUNDLE_WAIT_MS: String(3_600_000),
      UPLOAD_BYTES_MAX: String(2 ** 27),
    },
  });

beforeAll(async () => {
  ports = programPorts();
  program = await start();
  const send = async (data: Uint8Array, type: string, seed: number) => {
    const signer = createEd25519Signer(new Uint8Array(32).fill(seed));
    const item = createDataItem({ data, tags: [{ name: "Content-Type", value: type }] }, signer);
    return (await sendItem(program.line.upload, item)).id;
  };
  page = await send(new TextEncoder().encode("<h1>page"), "text/html", 1);
  const count = Math.floor((mebibytes * slice) / 66);
  for (let index = 0; index < manifestCount; index += 1) {
    const text = manifestText(page, count, `m${index}`);
    manifests.push(await send(text, "application/x.arweave-manifest+json", 2 + index));
  }
}, 300_000);
afterAll(() => program.remove());

type Metrics = Readonly<{ cpuMs: number; rssBytes: number; peakBytes: number }>;

/** CPU of all threads since the start, memory now, and the most since it was last asked to forget. */
function stats(): Metrics {
  const fields = readFileSync(`/proc/${program.pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  const status = readFileSync(`/proc/${program.pid}/status`, "utf8");
  const of = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1] ?? 0) * 1_024;
  const ticks = Number(fields[11]) + Number(fields[12]);
  return { cpuMs: ticks * 10, rssBytes: of("VmRSS"), peakBytes: of("VmHWM") };
}

async function ask(manifest: string, path: string): Promise<number> {
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const response = await fetch(`${program.line.gateway}/${manifest}/${path}`).catch(() => undefined);
    if (response === undefined) return 0;
    const body = await response.text();
    const seconds = Number(response.headers.get("retry-after") ?? 0);
    if (response.status !== 503 || seconds === 0)
      return body === "<h1>page" && response.headers.get("x-ar-io-data-id") === page
        ? response.status
        : -response.status;
    await Bun.sleep(1_000 * seconds);
  }
  return -503;
}

/** Requests new paths one after another. */
async function askInOrder(name: string): Promise<Readonly<{ wrong: number[]; cpuMsEach: number }>> {
  const before = stats();
  const seen: number[] = [];
  for (let round = 0; round < rounds; round += 1)
    for (const [index, manifest] of manifests.entries())
      seen.push(await ask(manifest, `m${index}/${name.length * 1_000 + round}.html`));
  return {
    wrong: seen.filter((status) => status !== 200),
    cpuMsEach: (stats().cpuMs - before.cpuMs) / seen.length,
  };
}

const indexFiles = () =>
  readdirSync(join(program.folder, "manifests"), { recursive: true }).filter((name) => String(name).endsWith(".index"));

test("M1: six large manifests are read once each, by all readers together, and are found again after a restart", async () => {
  writeFileSync(`/proc/${program.pid}/clear_refs`, "5");
  const idle = stats();
  const asked = await Promise.all(
    Array.from({ length: readers }, (_, at) => {
      const index = at % manifestCount;
      return ask(manifests[index] ?? "", `m${index}/${at}.html`);
    }),
  );
  const all = stats();
  const first = await askInOrder("a");
  const end = stats();
  console.log(
    `${manifestCount} manifests of ${mebibytes} MiB, ${readers} readers at once: ` +
      `${((all.cpuMs - idle.cpuMs) / readers).toFixed(1)} ms of CPU each, ` +
      `RSS ${mib(idle.rssBytes)} → ${mib(all.peakBytes)} MiB; ` +
      `then in round ${first.cpuMsEach.toFixed(1)} ms of CPU each, peak ${mib(end.peakBytes)} MiB`,
  );
  expect([asked.filter((status) => status !== 200), first.wrong]).toEqual([[], []]);
  expect(end.peakBytes - idle.rssBytes).toBeLessThan(growthMax);
  const stored = indexFiles();
  expect(stored.length).toBe(manifestCount);

  expect(await program.stop()).toBe(0);
  program = await start(program.folder);
  const again = await askInOrder("again");
  expect(again.wrong).toEqual([]);
  expect(indexFiles()).toEqual(stored);
  console.log(`after a restart in round ${again.cpuMsEach.toFixed(1)} ms of CPU each`);
}, 600_000);

function mib(bytes: number): number {
  return Math.round(bytes / slice);
}
