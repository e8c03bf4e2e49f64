/**
 * One act of signing is charged once, whatever else of its request is spelled in another way: the token of the path,
 * the payers, the encoding of the signature; at once, and again after it failed and was paid back.
 * Source: docs/reference/signatures.md.
 * @module
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { ethereum } from "../../../src/arweave/signers/ethereum.ts";
import type { Signer } from "../../../src/arweave/signers/scheme.ts";
import type { UserAddress } from "../../../src/payment/addresses.ts";
import { refundReservation } from "../../../src/payment/credits/reservations.ts";
import { user } from "../../../src/store/ledger/transfers.ts";
import { accountOf } from "../../../src/upload/intake/charge-item.ts";
import { validEncodings } from "../../support/encodings.ts";
import { createRandom, type Random } from "../../support/random.ts";
import { seedOr } from "../../support/seed.ts";
import { createMultiAptosSigner, signers, testKey } from "../../support/signers.ts";
import { openTestUpload, type TestUpload, testItem } from "../../support/upload.ts";

const rounds = Number(process.env["COUNT"] ?? 15);
const sentAtOnce = 6;
const tokens = ["", "/ethereum", "/kyve", "/pol", "/base-eth", "/usdc", "/ed25519", "/arweave", "/ario"];
const malleable: readonly Signer[] = [
  ...signers.filter(({ scheme }) => [1, 3, 4, 7, 101].includes(scheme.type)),
  createMultiAptosSigner([testKey(31), testKey(32), testKey(33)], 2),
];

let upload: TestUpload;
beforeEach(async () => {
  upload = await openTestUpload();
});
afterEach(() => upload.close());

/** Every account that an item of a signer may be charged to. */
function accountsOf({ scheme, owner }: Signer): UserAddress[] {
  const account = accountOf(scheme.type, owner);
  return scheme.type === ethereum.type ? [account, accountOf(scheme.type, owner, "kyve")] : [account];
}

async function sumOf(accounts: readonly UserAddress[]): Promise<bigint> {
  let sum = 0n;
  for (const account of accounts) sum += await upload.payment.held(user(account));
  return sum;
}

/** The headers of a request that names its own signer as a payer, several times. */
function payerHeaders(random: Random, account: string): Record<string, string> {
  if (random.chance(0.5)) return {};
  const spellings = [account, account.toLowerCase(), ` ${account} `];
  const list = Array.from({ length: 1 + random.below(3) }, () => random.pick(spellings));
  return { "x-paid-by": list.join(","), "x-payment-directive": random.pick(["list-only", "list-or-signer"]) };
}

/** Sends an item at once in several spellings. @returns The ids of the receipts. */
async function sendSpellings(
  random: Random,
  encodings: readonly Uint8Array<ArrayBuffer>[],
  account: string,
): Promise<ReadonlySet<string>> {
  const requests = Array.from({ length: sentAtOnce }, () => ({
    body: random.pick(encodings),
    init: { path: `/tx${random.pick(tokens)}`, headers: payerHeaders(random, account) },
  }));
  const responses = await Promise.all(requests.map(({ body, init }) => upload.send(body, init)));
  const ids = new Set<string>();
  for (const response of responses) {
    const text = await response.text();
    expect([200, 400, 402]).toContain(response.status);
    if (response.status === 200) ids.add(JSON.parse(text).id);
  }
  return ids;
}

async function failAndPayBack(id: string): Promise<void> {
  const { database, clock, makeId } = upload.payment;
  await database.write(async (tx) => {
    const [row] = await tx.all<{ reservation_id: string }>(
      "UPDATE uploads SET failed_reason = 'a test' WHERE id = ? RETURNING reservation_id",
      id,
    );
    await refundReservation(tx, row?.reservation_id ?? "", { now: clock.now(), makeId });
  });
}

async function priceOf(ids: ReadonlySet<string>): Promise<bigint> {
  expect(ids.size).toBeLessThanOrEqual(1);
  let sum = 0n;
  for (const id of ids) sum += (await upload.row(id))?.winc ?? 0n;
  return sum;
}

test("an item is charged once, whatever its requests are spelled like, and once more after it was paid back", async () => {
  const random = createRandom(seedOr(20_261_122));
  let accepted = 0;
  for (let round = 0; round < rounds; round += 1) {
    const signer = random.pick(malleable);
    const item = testItem(`round ${round}`, { signer });
    const encodings = [item.bytes, ...validEncodings(item.bytes)];
    const accounts = accountsOf(signer);
    for (const account of accounts) await upload.payment.credit(account, 10n ** 10n);
    const had = await sumOf(accounts);
    const ids = await sendSpellings(random, encodings, item.account);
    expect(had - (await sumOf(accounts))).toBe(await priceOf(ids));
    for (const id of ids) await failAndPayBack(id);
    expect(await sumOf(accounts)).toBe(had);
    const again = await sendSpellings(random, encodings, item.account);
    accepted += ids.size + again.size;
    expect(had - (await sumOf(accounts))).toBe(await priceOf(again));
    expect((await upload.money()).faults).toEqual([]);
  }
  expect(accepted).toBeGreaterThan(rounds);
}, 60_000);
