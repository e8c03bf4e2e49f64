/**
 * A process that takes data items until it is ended: `bun upload-child.ts <ChildOptions as JSON>`. It prints `open <url>`
 * when it listens. A byte costs a winc.
 * @module
 */
import { writeSync } from "node:fs";
import { silentLog } from "../../src/lib/log.ts";
import { createTransferIds } from "../../src/store/ledger/transfers.ts";
import { openRemoval } from "../../src/upload/pipeline/file-removal.ts";
import { openPlace } from "../support/ledger-place.ts";
import { openPaymentServer } from "../support/payment-server.ts";
import { openUploadParts } from "../support/upload-parts.ts";
import type { ChildOptions } from "./upload-process.ts";

const { place, folder, keyFile, threads, itemBytesMax, freeBytesMin }: ChildOptions = JSON.parse(
  process.argv[2] ?? "{}",
);
const ledger = await openPlace(place);
// By the machine's own clock and chance, as outside: another process on this ledger makes none of the same ids.
const makeId = createTransferIds(Date.now, Math.random);
const parts = await openUploadParts({
  ledger,
  folder,
  keyFile,
  makeId,
  clock: Date.now,
  ...(threads === undefined ? {} : { threads }),
  ...(itemBytesMax === undefined ? {} : { rules: { itemBytesMax } }),
  ...(freeBytesMin === undefined ? {} : { quota: { freeBytesMin } }),
});
await openRemoval({ ledger, folder, onGone: () => undefined, graceMs: 60_000, clock: Date.now, log: silentLog });
const server = openPaymentServer(() => [parts.createRoutes()], Number.MAX_SAFE_INTEGER);
writeSync(1, `open ${server.url}\n`);
