/**
 * Where part 4C is walked: the program, its parts where something can be made to happen to them, and parts of which all
 * else is out of reach.
 * @module
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../../src/failures.ts";
import { createItemRoutes, createReceiptRoutes } from "../../src/http/upload/item-routes.ts";
import { createMultipartRoutes } from "../../src/http/upload/multipart-routes.ts";
import { createUploadPriceRoutes } from "../../src/http/upload/upload-price-routes.ts";
import { createX402UploadRoutes } from "../../src/http/upload/x402-upload-routes.ts";
import { createSemaphore } from "../../src/lib/semaphore.ts";
import { funded, openX402Fixture, type X402Fixture } from "../payment/x402/x402-fixture.ts";
import { openPaymentServer } from "../support/payment-server.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { rsaKey, signers } from "../support/signers.ts";
import { openTestUpload, type TestItem, testItem } from "../support/upload.ts";
import { makeFolder, openMultipartFixture } from "../upload/multipart/multipart-fixture.ts";
import { openX402UploadServer } from "../upload/x402/upload-server.ts";

/** Where a step is taken: under `program` it is taken at each of the four addresses that the service has. */
export type Place = "program" | "paid" | "off" | "no price" | "not synced" | "no space" | "strict";

/** All places, open. */
export type UploadPlaces = Readonly<{
  program: RunningProgram;
  x402: X402Fixture;
  origins: Readonly<Record<Place, readonly string[]>>;
  /** The header of a payment by a funded payer. */
  payment: (amount: bigint) => string;
  close: () => Promise<void>;
}>;

/** Items up to this size cost nothing in the program. Bytes. */
export const freeBytes = 4_096;

/** The largest item that is taken where rules are strict. Bytes. */
export const strictBytesMax = 2_000;

/** Whose items are rejected where rules are strict. */
export const blockedSigner = signers[4];

let made = 0;

/** An item that no other step has. @param size - Of its payload. */
export function newItem(size = 100, fields: Parameters<typeof testItem>[1] = {}): TestItem {
  made += 1;
  const data = new Uint8Array(size).fill(made);
  new DataView(data.buffer).setUint32(0, made);
  return testItem(data, fields);
}

const unasked = () => {
  throw new Error("nothing is asked of these routes");
};

/** Opens them. */
export async function openUploadPlaces(): Promise<UploadPlaces> {
  const environment = { HOST: "127.0.0.1", FREE_UPLOAD_BYTES: String(freeBytes) };
  const program = await startDev({ environment });
  const noPrice = async (): Promise<never> => {
    throw new Failure("pricing_oracle_unavailable");
  };
  const { account } = testItem("a blocked signer", { signer: blockedSigner ?? unasked() });
  const blocked = new Set([String(account)]);
  const strict = { itemBytesMax: strictBytesMax, blocked, freeBytesMax: 0 };
  const uploads = {
    "no price": await openTestUpload({ priceOf: noPrice }),
    "not synced": await openTestUpload({ height: () => undefined, rules: { freeBytesMax: 2 ** 20 } }),
    "no space": await openTestUpload({ quota: { bytesMax: 10 }, rules: { freeBytesMax: 2 ** 20 } }),
    strict: await openTestUpload({ rules: strict }),
  };
  const priceless = openPaymentServer(() => [
    createUploadPriceRoutes({ prices: { bytes: noPrice } }),
    uploads["no price"].parts.createRoutes(),
  ]);
  const off = openPaymentServer(() => [
    createItemRoutes({ intake: undefined, writeReceipt: unasked }),
    createReceiptRoutes({ find: undefined, writeReceipt: unasked, semaphore: createSemaphore(1, 0) }),
    createMultipartRoutes({ multipart: undefined, writeReceipt: unasked }),
    createX402UploadRoutes({
      uploads: undefined,
      intake: undefined,
      writeReceipt: unasked,
      publicUrl: () => "",
    }),
  ]);
  const paid = await openPaid(blocked);
  const { upload, gateway } = program.line;
  let payers = 0;
  return {
    program,
    x402: paid.x402,
    origins: {
      program: [upload, `${upload}/v1`, `${gateway}/upload`, `${gateway}/upload/v1`],
      paid: [paid.url, `${paid.url}/v1`],
      off: [off.url, `${off.url}/v1`],
      "no price": [priceless.url],
      "not synced": [uploads["not synced"].url],
      "no space": [uploads["no space"].url],
      strict: [uploads.strict.url],
    },
    payment: (amount) => {
      payers += 1;
      const payer = funded(paid.x402, 5_000 + payers);
      return paid.x402.header(paid.x402.authorize(payer, amount), payer);
    },
    close: async () => {
      for (const server of [priceless, off, paid, ...Object.values(uploads)]) await server.close();
      await program.remove();
    },
  };
}

/** Uploads by x402 and in parts: a byte costs one winc from credits, and 2,000 by x402. */
async function openPaid(blocked: ReadonlySet<string>) {
  const folder = makeFolder();
  const x402 = await openX402Fixture();
  const { database, clock, makeId, credits } = x402.payment;
  const rules = { itemBytesMax: 1_000_000, freeBytesMax: 0, blocked };
  const fixture = await openMultipartFixture({
    database,
    makeId,
    clock: clock.now,
    folder: folder.path,
    rules,
  });
  const file = join(folder.path, "key.json");
  writeFileSync(file, JSON.stringify(rsaKey));
  const key = { file, modulus: rsaKey.n ?? "" };
  const opened = openX402UploadServer({
    x402: x402.x402,
    fixture,
    folder: folder.path,
    key,
    credits,
    rules,
    clock: clock.now,
  });
  return {
    x402,
    url: opened.server.url,
    close: async () => {
      await opened.close();
      await fixture.close();
      await x402.close();
      folder.remove();
    },
  };
}
