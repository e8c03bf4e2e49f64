/**
 * An upload service for tests: an empty ledger, a folder of its own, a listener, and items to send to it.
 * @module
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDataItem, type ItemFields, readItemHeader } from "../../src/arweave/data-item.ts";
import type { Id } from "../../src/arweave/id.ts";
import { createSolanaSigner } from "../../src/arweave/signers/ed25519.ts";
import type { Signer } from "../../src/arweave/signers/scheme.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import type { UserAddress } from "../../src/payment/addresses.ts";
import { checkLedger } from "../../src/store/ledger/ledger-check.ts";
import { revenue } from "../../src/store/ledger/transfers.ts";
import { accountOf } from "../../src/upload/intake/charge-item.ts";
import { findUpload, type Upload } from "../../src/upload/upload-rows.ts";
import type { LedgerKind } from "./ledger-databases.ts";
import { openTestPayment, type TestPayment } from "./payment.ts";
import { openPaymentServer, type PaymentServer } from "./payment-server.ts";
import { testKey } from "./signers.ts";
import { filesIn, makeReceiptKey, openUploadParts, publicKeyOf, type TestUploadOptions } from "./upload-parts.ts";

/** How a service is opened; defaults are those of `openUploadParts`. */
export type TestUploadSetup = Partial<Omit<TestUploadOptions, "ledger" | "folder" | "clock" | "makeId">> &
  Readonly<{ kind?: LedgerKind }>;

/** An upload service. */
export type TestUpload = Readonly<{
  payment: TestPayment;
  /** Of uploads. */
  folder: string;
  keyFile: string;
  publicKey: string;
  parts: Awaited<ReturnType<typeof openUploadParts>>;
  server: PaymentServer;
  url: string;
  /** Sends bytes as a client would. */
  send: (body: BodyInit, init?: SendInit) => Promise<Response>;
  /** The row of an item. */
  row: (id: string) => Promise<Upload | undefined>;
  /** Files of uploads and their sizes. */
  files: () => Record<string, number>;
  /** Faults of the ledger, and its income. */
  money: () => Promise<Readonly<{ faults: readonly unknown[]; revenue: bigint }>>;
  close: () => Promise<void>;
}>;

/** How bytes are sent. */
export type SendInit = Readonly<{ path?: string; headers?: HeadersInit; signal?: AbortSignal }>;

/** Opens a service on a free port. */
export async function openTestUpload(setup: TestUploadSetup = {}): Promise<TestUpload> {
  const { kind, ...options } = setup;
  const root = mkdtempSync(join(tmpdir(), "cairn-upload-"));
  const folder = join(root, "uploads");
  const payment = await openTestPayment(kind === undefined ? {} : { kind });
  const { database, clock, makeId } = payment;
  const keyFile = options.keyFile ?? makeReceiptKey(join(root, "keys"));
  const parts = await openUploadParts({
    ...options,
    ledger: database,
    folder,
    keyFile,
    clock: clock.now,
    makeId,
  });
  const server = openPaymentServer(() => [parts.createRoutes()], Number.MAX_SAFE_INTEGER);
  return {
    payment,
    folder,
    keyFile,
    parts,
    server,
    publicKey: publicKeyOf(keyFile),
    url: server.url,
    send: (body, { path = "/tx", headers, signal } = {}) =>
      fetch(`${server.url}${path}`, {
        method: "POST",
        body,
        ...(headers === undefined ? {} : { headers }),
        ...(signal === undefined ? {} : { signal }),
      }),
    row: (id) => database.read((tx) => findUpload(tx, id)),
    files: () => filesIn(folder),
    money: async () => ({ faults: await checkLedger(database), revenue: await payment.held(revenue) }),
    close: async () => {
      await server.close();
      await parts.close();
      await payment.close();
      removeFolder(root);
    },
  };
}

/** An item, its id, and whose it is. */
export type TestItem = Readonly<{
  bytes: Uint8Array<ArrayBuffer>;
  id: Id;
  account: UserAddress;
  headerSize: number;
}>;

/** A signer that is fast, and has an account. */
export const fastSigner: Signer = createSolanaSigner(testKey(44));

/** Makes an item. */
export function testItem(
  data: Uint8Array | string,
  { signer = fastSigner, ...fields }: ItemFields & Readonly<{ signer?: Signer }> = {},
): TestItem {
  const bytes = new Uint8Array(createDataItem({ ...fields, data }, signer));
  const read = readItemHeader(bytes, "strict", bytes.length);
  if (read.kind !== "header") throw new Error("a test's item is an item");
  const { id, signatureType, owner, headerSize } = read.header;
  return { bytes, id, account: accountOf(signatureType, owner), headerSize };
}
