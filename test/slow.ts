/**
 * The third tier: the sizes that docs/evidence.md records. `bun run test:slow`.
 *
 * The same tests as in the first tier, with larger numbers; every test prints its seed, which can be given
 * again as SEED.
 * @module
 */
import { resolve } from "node:path";

const root = resolve(import.meta.dir, "..");

/** Folders, and the sizes that their tests read from the environment. */
const steps: readonly (readonly [folder: string, sizes: Readonly<Record<string, string>>])[] = [
  ["test/arweave", { MUTATIONS: "1000000" }],
  ["test/arweave/manifest-scan.test.ts", { RUNS: "100000" }],
  ["test/store/manifests", { PATHS: "1000000", KILLS: "300", RUNS: "2000" }],
  ["test/program/large-manifests.test.ts", { MANIFEST_MIB: "42", READERS: "80", ROUNDS: "40" }],
  ["test/lib/range.test.ts", { RUNS: "1000000" }],
  ["test/program/columnar-history.test.ts", { ITEMS: "100000" }],
  ["test/stores/columnar-history.test.ts", { ITEMS: "100000" }],
  ["test/content/disk.test.ts", { FILES: "1000" }],
  ["test/content/starved.test.ts", { CYCLES: "100" }],
  ["test/indexing/bombs.test.ts", { FAN: "1000" }],
  ["test/http/slow-clients.test.ts", { COUNT: "3000" }],
  ["test/http/admin-guard-timing.test.ts", { SAMPLES: "100000" }],
  ["test/program/program.test.ts", { DOWNLOADS: "1000", UPLOADS: "200" }],
  ["test/store/ledger", { KILLS: "1000", EVENTS: "1000", LEDGER_KINDS: "sqlite,postgres" }],
  ["test/full/ledger-faults.test.ts", { FAULTS: "400" }],
  ["test/full/store-faults.test.ts", { FAULTS: "1000" }],
  ["test/sim/kill.test.ts", { KILLS: "1000" }],
  ["test/store/index/kill.test.ts", { KILLS: "500" }],
  ["test/store/index/kill-migration.test.ts", { KILLS: "500" }],
  ["test/store/index/pages/page-property.test.ts", { PAGE_SEEDS: "10000" }],
  ["test/indexing/heaviest-chain.test.ts", { HEAVIEST_SEEDS: "1000" }],
  ["test/columnar/export-kill.test.ts", { KILLS: "300" }],
  ["test/columnar/import-kill.test.ts", { KILLS: "300" }],
  ["test/store/extents/extents-kill.test.ts", { KILLS: "1000" }],
  ["test/payment/credits/credits-property.test.ts", { RUNS: "100000", LEDGER_KINDS: "sqlite,postgres" }],
  ["test/payment/prices/pricing-property.test.ts", { RUNS: "100000" }],
  ["test/payment/cards/card-shuffle.test.ts", { RUNS: "1000" }],
  ["test/payment/x402/payments-property.test.ts", { RUNS: "1000" }],
  ["test/payment/x402/kill.test.ts", { KILLS: "300" }],
  ["test/upload/multipart/multipart-model.test.ts", { RUNS: "2000" }],
  ["test/upload/multipart/multipart-kill.test.ts", { KILLS: "300" }],
  ["test/upload/x402/kill.test.ts", { KILLS: "200" }],
  ["test/clients/turbo-upload-chunked.test.ts", { MEBIBYTES: "200" }],
  ["test/cli/upload/upload.test.ts", { LARGE_MIB: "500" }],
  ["test/clients/turbo-upload.test.ts", { CHUNKED_MIB: "200" }],
  ["test/payment/tokens", { RUNS: "10000", KILLS: "200" }],
  ["test/upload/intake/intake-kill.test.ts", { KILLS: "1000", LEDGER_KINDS: "sqlite,postgres" }],
  ["test/upload/service-kill.test.ts", { KILLS: "1000" }],
  ["test/upload/intake/memory.test.ts", { BYTES: String(2 ** 30) }],
  ["test/upload/multipart/multipart-memory.test.ts", { BYTES: String(960 * 2 ** 20) }],
];

/** Three hours: far above what a step takes. */
const stepTimeoutMs = "10800000";

for (const [folder, sizes] of steps) {
  console.log(`== ${folder} ${JSON.stringify(sizes)}`);
  run(["test", "--timeout", stepTimeoutMs, folder], sizes);
}
console.log("== bun run mutate");
run(["test/mutate/run.ts"], {});

function run(words: readonly string[], environment: Readonly<Record<string, string>>): void {
  const { exitCode } = Bun.spawnSync([process.execPath, ...words], {
    cwd: root,
    env: { ...process.env, ...environment },
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (exitCode !== 0) process.exit(exitCode);
}
