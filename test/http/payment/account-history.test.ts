/**
 * The movements of a wallet's credits over HTTP: its own, by a signature or a token, page by page.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createAccountHistoryRoutes } from "../../../src/http/payment/account-history-routes.ts";
import {
  createWalletAccess,
  createWalletTokens,
  type WalletAccess,
} from "../../../src/payment/access/wallet-access.ts";
import { readAddress, type UserAddress } from "../../../src/payment/addresses.ts";
import { createOperatorAccounts } from "../../../src/payment/operator/operator-accounts.ts";
import { createTransferIds, historyOf, user } from "../../../src/store/ledger/transfers.ts";
import { openTestPayment, type TestPayment } from "../../support/payment.ts";
import { openPaymentServer, type PaymentServer } from "../../support/payment-server.ts";
import { arweaveWallet, ethereumWallet, signedHeaders, solanaWallet } from "../../support/signed-headers.ts";
import { rsaKey, testKey } from "../../support/signers.ts";

const arweave = arweaveWallet(rsaKey);
const ethereum = ethereumWallet(testKey(0x11));
const solana = solanaWallet(testKey(0x07));

type Page = {
  address: string;
  entries: { id: string; kind: string; date: string; winc: string; changeId: string | null }[];
  hasMore: boolean;
  cursor: string | null;
};

let payment: TestPayment;
let access: WalletAccess;
let server: PaymentServer;
let nonces = 0;

beforeAll(async () => {
  payment = await openTestPayment();
  const { database, clock } = payment;
  access = createWalletAccess({ database, tokens: createWalletTokens(testKey(99), clock.now), clock: clock.now });
  server = openPaymentServer(() => [
    createAccountHistoryRoutes({
      access,
      history: (address, page) => database.read((tx) => historyOf(tx, user(address), page)),
    }),
  ]);
  const accounts = createOperatorAccounts({
    ledger: database,
    clock: clock.now,
    makeId: createTransferIds(clock.now, () => 0.5),
  });
  for (const [address, winc] of [
    [ethereum.address, 100n],
    [ethereum.address, -30n],
    [arweave.address, 7n],
  ] as const)
    await accounts.move({
      kind: winc > 0n ? "grant" : "adjust",
      address: known(address),
      winc,
      operator: "ada",
      reason: "a secret of the operator",
      idempotencyKey: `key-${address}-${winc}`,
    });
});
afterAll(async () => {
  await server.close();
  await payment.close();
});

async function ask(query: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${server.url}/v1/svc/account/history${query}`, { headers });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) as Page };
}

function fresh(wallet = ethereum): Record<string, string> {
  nonces += 1;
  return signedHeaders(wallet, `nonce ${nonces}`);
}

const amounts = ({ entries }: Page) => entries.map(({ kind, winc }) => [kind, winc]);
const all = [
  ["adjustment", "-30"],
  ["promotion", "100"],
];

describe("GET /svc/account/history", () => {
  test("returns the movements of the wallet that signed, newest first, without the operator's notes", async () => {
    const { status, headers, body, text } = await ask("", fresh());
    expect([status, headers.get("cache-control")]).toEqual([200, "no-store"]);
    expect([body.address, amounts(body), body.hasMore, body.cursor]).toEqual([ethereum.address, all, false, null]);
    expect(text).not.toContain("secret");
    expect(text).not.toContain("ada");
    expect(amounts((await ask("", fresh(arweave))).body)).toEqual([["promotion", "7"]]);
  });

  test("returns a token with the response to a signature, and accepts it", async () => {
    const { headers } = await ask("", fresh());
    const authorization = headers.get("authorization") ?? "";
    const again = await ask("", { authorization });
    expect([amounts(again.body), again.headers.get("authorization")]).toEqual([all, null]);
    expect((await ask("", { authorization: "Bearer x" })).status).toBe(403);
  });

  test("returns an empty page and a token to a wallet that never had credits", async () => {
    const { status, headers, body } = await ask("", fresh(solana));
    expect([status, body]).toEqual([200, { address: solana.address, entries: [], hasMore: false, cursor: null }]);
    const again = await ask("", { authorization: headers.get("authorization") ?? "" });
    expect([again.status, again.body.address]).toEqual([200, solana.address]);
  });

  test("returns page after page", async () => {
    const first = (await ask("?limit=1", fresh())).body;
    expect([amounts(first), first.hasMore]).toEqual([all.slice(0, 1), true]);
    const second = (await ask(`?limit=1&cursor=${first.cursor}`, fresh())).body;
    expect([amounts(second), second.hasMore, second.cursor]).toEqual([all.slice(1), false, null]);
  });

  test("rejects requests that are not signed, and a signature that was used", async () => {
    expect((await ask(`?address=${ethereum.address}`)).status).toBe(403);
    const headers = fresh();
    expect((await ask("", headers)).status).toBe(200);
    expect((await ask("", headers)).status).toBe(403);
  });

  test.each([
    ["limit=0", "Invalid limit: a whole number from 1 to 100"],
    ["limit=101", "Invalid limit: a whole number from 1 to 100"],
    ["cursor=", "Invalid cursor"],
    ["cursor=x", "Invalid cursor"],
    [`cursor=${"U".repeat(26)}`, "Invalid cursor"],
    [`cursor=${"0".repeat(27)}`, "Invalid cursor"],
  ])("rejects %s and leaves the signature unused", async (query, reason) => {
    const headers = fresh();
    const { status, text } = await ask(`?${query}`, headers);
    expect([status, JSON.parse(text)]).toEqual([400, reason]);
    expect((await ask("", headers)).status).toBe(200);
  });
});

function known(text: string): UserAddress {
  const read = readAddress(text);
  if (read === undefined) throw new Error(`${text} is not a valid address`);
  return read.address;
}
