/**
 * Balances over HTTP: whose they are, who may ask how often, and what a token opens.
 * @module
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { createBalanceRoutes } from "../../../src/http/payment/account-routes.ts";
import { createWalletAccess, createWalletTokens } from "../../../src/payment/access/wallet-access.ts";
import { readAddress, type UserAddress } from "../../../src/payment/addresses.ts";
import { freeAllowance } from "../../../src/payment/prices/price-types.ts";
import { openTestPayment, type TestPayment, testAddress } from "../../support/payment.ts";
import { openPaymentServer, type PaymentServer } from "../../support/payment-server.ts";
import {
  arweaveWallet,
  ethereumWallet,
  type RequestWallet,
  rawSolanaWallet,
  signedHeaders,
  solanaWallet,
} from "../../support/signed-headers.ts";
import { rsaKey, testKey } from "../../support/signers.ts";

const secret = testKey(99);
const arweave = arweaveWallet(rsaKey);
const ethereum = ethereumWallet(testKey(0x11));
const solana = solanaWallet(testKey(0x07));
const stranger = solanaWallet(testKey(0x55));
const wallets: readonly [string, RequestWallet][] = [
  ["arweave", arweave],
  ["arweave in a browser", arweaveWallet(rsaKey, 32)],
  ["ethereum", ethereum],
  ["solana", solana],
  ["solana, raw", rawSolanaWallet(testKey(0x07))],
];

const credited = 5_000_000_000_000n;
const forbidden = "Invalid signature or missing required headers";

let payment: TestPayment;
let server: PaymentServer;
let freeBytes = 0;
let nonces = 0;

beforeAll(async () => {
  payment = await openTestPayment();
  const access = createWalletAccess({
    database: payment.database,
    tokens: createWalletTokens(secret, payment.clock.now),
    clock: payment.clock.now,
  });
  const { credits } = payment;
  server = openPaymentServer(() => [createBalanceRoutes({ credits, access, free: () => freeAllowance(freeBytes) })]);
  for (const wallet of [arweave, ethereum, solana]) await payment.credit(known(wallet.address), credited);
});

afterAll(async () => {
  await server.close();
  await payment.close();
});

beforeEach(() => {
  nonces += 1;
});

const nonce = () => `nonce ${nonces}`;

async function ask(path: string, headers: Record<string, string> = {}, method = "GET") {
  const response = await fetch(`${server.url}${path}`, { headers, method });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text === "" ? undefined : JSON.parse(text),
  };
}

describe("GET /balance", () => {
  test.each(wallets)("signed by a wallet of %s returns its balance and a token", async (_name, wallet) => {
    const { status, headers, body } = await ask("/v1/balance", signedHeaders(wallet, nonce()));
    expect(status).toBe(200);
    expect(body).toEqual({
      winc: String(credited),
      controlledWinc: String(credited),
      effectiveBalance: String(credited),
      givenApprovals: [],
      receivedApprovals: [],
    });
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(headers.get("access-control-expose-headers")).toContain("Authorization");
    const token = headers.get("authorization") ?? "";
    expect(token).toMatch(/^Bearer [\w-]+\.[\w-]+\.[\w-]+$/);
    const again = await ask("/balance", { authorization: token });
    expect(again.status).toBe(200);
    expect(again.body).toEqual(body);
    expect(again.headers.get("authorization")).toBeNull();
    expect(again.headers.get("cache-control")).toBe("no-store");
  });

  test("takes a signature over method, path and nonce as it was sent", async () => {
    for (const path of ["/v1/balance", "/balance?address=x&b=%41"]) {
      const used = `${nonce()}${path}`;
      const headers = signedHeaders(ethereum, used, Buffer.from(`GET ${path}${used}`));
      expect((await ask(path, headers)).status).toBe(200);
    }
    const bound = Buffer.from(`GET /v1/balance${nonce()}`);
    expect((await ask("/balance", signedHeaders(ethereum, nonce(), bound))).status).toBe(403);
    const head = Buffer.from(`HEAD /balance${nonce()}`);
    expect((await ask("/balance", signedHeaders(ethereum, nonce(), head))).status).toBe(403);
    expect((await ask("/balance", signedHeaders(ethereum, nonce(), head), "HEAD")).status).toBe(200);
  });

  test("S3: takes a signature once: its repetition is rejected, with an address and in the other place too", async () => {
    for (const [, wallet] of wallets) {
      const headers = signedHeaders(wallet, `${nonce()} ${wallet.sign(Buffer.of(1)).toHex().slice(0, 8)}`);
      expect((await ask("/v1/balance", headers)).status).toBe(200);
      for (const path of ["/v1/balance", "/balance", `/balance?address=${wallet.address}`]) {
        const { status, body, headers: responded } = await ask(path, headers);
        expect([status, body]).toEqual([403, forbidden]);
        expect(responded.get("authorization")).toBeNull();
      }
    }
  });

  test("gives the nonce of a hundred equal requests to one of them", async () => {
    const headers = signedHeaders(ethereum, nonce());
    const responses = await Promise.all(Array.from({ length: 100 }, () => ask("/balance", headers)));
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(responses.filter(({ status }) => status === 403)).toHaveLength(99);
  });

  test("does not find a wallet that never had credits; what it signed before it has some is good for nothing later", async () => {
    const headers = signedHeaders(stranger, nonce());
    const first = await ask("/balance", headers);
    expect([first.status, first.body]).toEqual([404, "User Not Found"]);
    expect(first.headers.get("authorization")).toBeNull();
    expect(first.headers.get("cache-control")).toBe("no-store");
    expect([(await ask("/balance", headers)).status]).toEqual([403]);
    const newcomer = solanaWallet(testKey(0x56));
    const caught = signedHeaders(newcomer, `${nonce()}, caught`);
    expect((await ask("/balance", caught)).status).toBe(404);
    await payment.credit(known(newcomer.address), 1n);
    expect([(await ask("/balance", caught)).status]).toEqual([403]);
    expect((await ask("/balance", signedHeaders(newcomer, nonce()))).status).toBe(200);
  });

  test("of an address needs no signature, and its spelling does not matter", async () => {
    const spellings = [ethereum.address, ethereum.address.toLowerCase(), arweave.address, solana.address];
    for (const address of spellings) {
      const { status, body, headers } = await ask(`/v1/balance?address=${address}`);
      expect([status, body.winc]).toEqual([200, String(credited)]);
      expect(headers.get("authorization")).toBeNull();
    }
  });

  test.each(["", "x", "%00", stranger.address, "A".repeat(5_000)])(
    "of the address %p is not found",
    async (address) => {
      const { status, body } = await ask(`/balance?address=${address}`);
      expect([status, body]).toEqual([404, "User Not Found"]);
    },
  );

  test("without signature, token or address is rejected", async () => {
    for (const path of ["/balance", "/v1/balance", "/v1/balance?addres=x"]) {
      const { status, body } = await ask(path);
      expect([status, body]).toEqual([403, forbidden]);
    }
  });

  test("with wrong headers is rejected, also if it has an address", async () => {
    const good = signedHeaders(ethereum, nonce());
    const wrong: Record<string, string>[] = [
      { ...good, "x-nonce": "another" },
      { ...good, "x-signature": signedHeaders(ethereum, "other")["x-signature"] ?? "" },
      { ...good, "x-public-key": ethereumWallet(testKey(0x12)).publicKey },
      { ...good, "x-signature-type": "1" },
      { ...good, "x-signature-type": "" },
      { "x-nonce": nonce() },
      { "x-signature": good["x-signature"] ?? "" },
      { "x-public-key": good["x-public-key"] ?? "" },
      { authorization: "Bearer" },
      { authorization: "Bearer x" },
      { authorization: "Bearer a.b.c" },
      { authorization: `bearer ${tokenOf({ alg: "none" })}` },
      { authorization: `Bearer ${tokenOf({ alg: "HS384" })}` },
      { authorization: `Bearer ${tokenOf({}, { aud: "upload" })}` },
      { authorization: `Bearer ${tokenOf({}, { exp: payment.clock.now() / 1_000 - 1 })}` },
      { authorization: `Bearer ${tokenOf({}, {}, testKey(98))}` },
    ];
    for (const headers of wrong)
      for (const path of ["/balance", `/v1/balance?address=${ethereum.address}`]) {
        const { status, body } = await ask(path, headers);
        expect([status, body]).toEqual([403, forbidden]);
      }
  });

  test("with a wrong signature is rejected though the token beside it is right", async () => {
    const headers = { ...signedHeaders(ethereum, nonce()), authorization: `Bearer ${tokenOf()}` };
    expect((await ask("/balance", { ...headers, "x-nonce": "another" })).status).toBe(403);
    expect((await ask("/balance", headers)).status).toBe(200);
  });

  test("leaves a proxy's own credentials alone", async () => {
    const headers = { authorization: "Basic dTpw" };
    expect((await ask(`/balance?address=${ethereum.address}`, headers)).status).toBe(200);
    expect((await ask("/balance", headers)).status).toBe(403);
  });

  test("returns the balance of the wallet that signed, whatever address it has", async () => {
    const other = testAddress("other");
    await payment.credit(other, 7n);
    const { body } = await ask(`/balance?address=${other}`, signedHeaders(ethereum, nonce()));
    expect(body.winc).toBe(String(credited));
    const { body: byToken } = await ask(`/balance?address=${other}`, {
      authorization: `Bearer ${tokenOf()}`,
    });
    expect(byToken.winc).toBe(String(credited));
    expect((await ask(`/balance?address=${other}`)).body.winc).toBe("7");
  });

  test("takes a token for an hour", async () => {
    const response = await ask("/balance", signedHeaders(arweave, nonce()));
    const authorization = response.headers.get("authorization") ?? "";
    payment.clock.advance(3_599_000);
    expect((await ask("/balance", { authorization })).status).toBe(200);
    payment.clock.advance(1_000);
    expect((await ask("/balance", { authorization })).status).toBe(403);
  });

  test("counts what was shared, given and received, and shows a debt as it is", async () => {
    const [giver, taker] = [testAddress("giver"), testAddress("taker")];
    await payment.credit(giver, 1_000n);
    const expiresAt = payment.clock.now() + 60_000;
    const approval = { payer: giver, approved: taker };
    await payment.credits.approve({ ...approval, approvalId: "first", winc: 100n });
    await payment.credits.approve({ ...approval, approvalId: "second", winc: 20n, expiresAt });
    const record = {
      approvalDataItemId: "second",
      approvedAddress: taker as string,
      payingAddress: giver as string,
      approvedWincAmount: "20",
      usedWincAmount: "0",
      creationDate: new Date(payment.clock.now()).toISOString(),
      expirationDate: new Date(expiresAt).toISOString(),
    };
    const { expirationDate: _, ...unlimited } = record;
    const approvals = [record, { ...unlimited, approvalDataItemId: "first", approvedWincAmount: "100" }];
    expect((await ask(`/balance?address=${giver}`)).body).toEqual({
      winc: "880",
      controlledWinc: "1000",
      effectiveBalance: "880",
      givenApprovals: approvals,
      receivedApprovals: [],
    });
    expect((await ask(`/balance?address=${taker}`)).body).toEqual({
      winc: "0",
      controlledWinc: "0",
      effectiveBalance: "120",
      givenApprovals: [],
      receivedApprovals: approvals,
    });
    await payment.chargeBack(giver, 1_000n);
    expect((await ask(`/balance?address=${giver}`)).body).toMatchObject({
      winc: "-120",
      controlledWinc: "0",
    });
  });
});

describe("GET /account/balance", () => {
  test.each(["/v1/account/balance", "/account/balance/arweave", "/v1/account/balance/base-usdc"])(
    "at %s returns the balance of an address, whatever token is named",
    async (path) => {
      for (const { address } of [arweave, ethereum, solana]) {
        const { status, body, headers } = await ask(`${path}?address=${encodeURIComponent(address)}`);
        expect(status).toBe(200);
        expect(body).toEqual({
          winc: String(credited),
          balance: String(credited),
          controlledWinc: String(credited),
          effectiveBalance: String(credited),
          givenApprovals: [],
          receivedApprovals: [],
        });
        expect(headers.get("cache-control")).toBe("no-store");
      }
      const missing = await ask(path);
      expect([missing.status, missing.body]).toEqual([400, "Missing address in query parameters"]);
      for (const address of [stranger.address, "unnamed", ""]) {
        const { status, body } = await ask(`${path}?address=${address}`);
        expect([status, body]).toEqual([404, "User Not Found"]);
      }
    },
  );
});

describe("GET /account/free", () => {
  test("says that nothing is left where nothing is free, and sets no limit where something is", async () => {
    const path = `/v1/account/free?address=${stranger.address}`;
    freeBytes = 0;
    expect((await ask(path)).body).toEqual({ bytesRemaining: 0, freeUploadLimitBytes: 0 });
    freeBytes = 1_024;
    expect((await ask(path)).body).toEqual({ bytesRemaining: null, freeUploadLimitBytes: 1_024 });
  });

  test("wants an address", async () => {
    const missing = await ask("/account/free");
    expect([missing.status, missing.body]).toEqual([400, "Missing address in query parameters"]);
    const wrong = await ask("/account/free?address=unnamed");
    expect([wrong.status, wrong.body]).toEqual([400, "Invalid paying address!"]);
  });
});

test("a ledger out of reach is said in the specification's words", async () => {
  const own = await openTestPayment();
  const access = createWalletAccess({
    database: own.database,
    tokens: createWalletTokens(secret, own.clock.now),
    clock: own.clock.now,
  });
  const { credits } = own;
  const closing = openPaymentServer(() => [createBalanceRoutes({ credits, access, free: () => freeAllowance(0) })]);
  await own.close();
  for (const path of [`/balance?address=${ethereum.address}`, `/v1/account/balance?address=${ethereum.address}`]) {
    const response = await fetch(`${closing.url}${path}`);
    expect([response.status, await response.json()]).toEqual([503, "Cloud Database Unavailable"]);
    expect(response.headers.get("retry-after")).toBe("5");
  }
  const signed = await fetch(`${closing.url}/balance`, { headers: signedHeaders(ethereum, nonce()) });
  expect(signed.status).toBe(503);
  await closing.close();
});

/** A token as ours are, with changes; signed with the secret of the service by default. */
function tokenOf(head: object = {}, claims: object = {}, key: Uint8Array = secret): string {
  const now = Math.floor(payment.clock.now() / 1_000);
  const write = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const all = { walletAddress: ethereum.address, aud: "payment", iat: now, exp: now + 60, ...claims };
  const signed = `${write({ alg: "HS256", typ: "JWT", ...head })}.${write(all)}`;
  return `${signed}.${createHmac("sha256", key).update(signed).digest("base64url")}`;
}

function known(text: string): UserAddress {
  const read = readAddress(text);
  if (read === undefined) throw new Error(`${text} is not a valid address`);
  return read.address;
}
