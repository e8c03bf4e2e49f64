/**
 * Which tests run when: the inner loop, `bun run test`, and CI.
 * @module
 */

/** Folders and files of `bun run test:unit`: computation, formats, the index and the rules of money; no server is started. */
export const unitTests: readonly string[] = [
  "test/arweave/",
  "test/chain/",
  "test/config/",
  "test/console/",
  "test/dev/sample/",
  "test/gateway/names/",
  "test/graphql/",
  "test/lib/",
  "test/mutate/",
  "test/payment/access/",
  "test/payment/credits/",
  "test/payment/evm/",
  "test/payment/prices/",
  "test/payment/top-ups/",
  "test/store/",
  "test/support/",
  "test/tidy.test.ts",
];

/**
 * Tests of the second tier that need nothing but Bun: kills, slow clients, many seeds, whole matrices. They take as
 * long as half of all others, and run with `bun run test:full`.
 */
export const longTests: readonly string[] = [
  "test/app/services.test.ts",
  "test/arweave/ans104-mutations.test.ts",
  "test/columnar/disk-full.test.ts",
  "test/columnar/import-kill.test.ts",
  "test/columnar/merged-pages.test.ts",
  "test/content/starved.test.ts",
  "test/http/administration-kill.test.ts",
  "test/http/clients-leave.test.ts",
  "test/http/blocked-routes.test.ts",
  "test/http/slow-clients.test.ts",
  "test/http/slow-posts.test.ts",
  "test/http/slow-readers.test.ts",
  "test/http/source-faults.test.ts",
  "test/http/unread-streams.test.ts",
  "test/payment/tokens/payments-kill.test.ts",
  "test/payment/tokens/payments-property.test.ts",
  "test/payment/x402/kill.test.ts",
  "test/payment/x402/payments-property.test.ts",
  "test/program/columnar-history.test.ts",
  "test/program/columnar-kill.test.ts",
  "test/program/snapshot-faults.test.ts",
  "test/program/start-ends.test.ts",
  "test/sim/kill.test.ts",
  "test/sim/random.test.ts",
  "test/sim/upload.test.ts",
  "test/store/extents/extents-kill.test.ts",
  "test/store/index/pages/page-property.test.ts",
  "test/store/ledger/kills.test.ts",
  "test/store/ledger/postgres-silence.test.ts",
  "test/upload/intake/intake-kill.test.ts",
  "test/upload/intake/synchronised.test.ts",
  "test/upload/intake/two-processes.test.ts",
  "test/upload/multipart/multipart-kill.test.ts",
  "test/upload/multipart/multipart-model.test.ts",
  "test/upload/pipeline/bad-node.test.ts",
  "test/upload/service-kill.test.ts",
  "test/upload/x402/kill.test.ts",
];

/** Folders that only the second tier runs: published clients, servers beside the program, the binary. */
export const helperFolders: readonly string[] = ["test/clients", "test/stores", "test/full", "test/binary"];
