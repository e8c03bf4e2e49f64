/**
 * A program that takes uploads and brings them to a chain until it is killed:
 * `bun service-child.ts <folder> <node URL> <wallet file>`. Prints where it listens when it takes items.
 * @module
 */
import { takeFolder } from "../../src/app/data-folder.ts";
import { readUploadWallet } from "../../src/app/keys.ts";
import { openProgram } from "../../src/app/program.ts";
import { readConfig } from "../../src/config/config.ts";
import { createClosers } from "../../src/lib/closers.ts";
import { createLog } from "../../src/lib/log.ts";
import { until } from "../support/until.ts";

const [folder = "", nodeUrl = "", walletFile = ""] = process.argv.slice(2);
const { config } = readConfig(
  {
    DATA_DIR: folder,
    HOST: "127.0.0.1",
    GATEWAY_PORT: "0",
    PAYMENT_PORT: "0",
    UPLOAD_PORT: "0",
    WALLET_FILE: walletFile,
    TRUSTED_NODE_URL: nodeUrl,
    FREE_UPLOAD_BYTES: "0",
    FOLLOW_INTERVAL_MS: "30",
    UPLOAD_BUNDLE_WAIT_MS: "80",
    UPLOAD_LOOK_MS: "30",
    UPLOAD_CONFIRMATIONS: "2",
    WORKER_THREADS: "1",
    QUERY_THREADS: "1",
  },
  "dev",
);
const log = createLog({
  level: "error",
  format: "json",
  clock: Date.now,
  write: (line) => process.stderr.write(`${line}\n`),
});
const closers = createClosers((name, error) => log.error("could not be closed", { name, error }));
const program = await openProgram({
  config,
  log,
  closers,
  nodeUrls: [nodeUrl],
  rootHosts: config.ARNS_ROOT_HOST,
  folder: takeFolder(config, closers),
  wallet: readUploadWallet("WALLET_FILE", walletFile),
});
await until(() => program.reader.tip() !== undefined);
console.log((program.serviceUrls.get("upload") ?? "").replace(/\/$/, ""));
