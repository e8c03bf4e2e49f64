/**
 * Where part 4B is walked: the program with everything on, its parts where something can be made to happen to them, and
 * parts of which all else is out of reach.
 * @module
 */
import type { AnyElysia } from "elysia";
import { Failure } from "../../src/failures.ts";
import { createApprovalRoutes, createBalanceRoutes } from "../../src/http/payment/account-routes.ts";
import { createPromoGuard, createReportGuard } from "../../src/http/payment/client-guards.ts";
import { createPriceRoutes } from "../../src/http/payment/price-routes.ts";
import { createTokenRoutes } from "../../src/http/payment/token-payment-routes.ts";
import { createWalletAccess, createWalletTokens } from "../../src/payment/access/wallet-access.ts";
import { readAddress, type UserAddress } from "../../src/payment/addresses.ts";
import { freeAllowance } from "../../src/payment/prices/price-types.ts";
import { openCardFixture } from "../payment/cards/card-fixture.ts";
import { createScriptedChain, type ScriptedChain, testHash, transferOf } from "../payment/tokens/scripted-chain.ts";
import { ethereumAddressOf, openTokenFixture } from "../payment/tokens/token-fixture.ts";
import { openX402Fixture, type X402Fixture } from "../payment/x402/x402-fixture.ts";
import { openTestPayment, type TestPayment, testAddress } from "../support/payment.ts";
import { openPaymentServer, type PaymentServer } from "../support/payment-server.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { ethereumWallet } from "../support/signed-headers.ts";
import { testKey } from "../support/signers.ts";

/** Where a step is taken: under `program` it is taken at each of the four addresses that the service has. */
export type Place =
  | "program"
  | "accounts"
  | "tokens"
  | "x402"
  | "broken accounts"
  | "broken prices"
  | "broken top-ups"
  | "broken tokens";

/** All places, open. */
export type Places = Readonly<{
  program: RunningProgram;
  x402: X402Fixture;
  origins: Readonly<Record<Place, readonly string[]>>;
  close: () => Promise<void>;
}>;

/** Whose key signs requests. */
export const wallet = ethereumWallet(testKey(0x11));
/** Whom it gave an approval. */
export const friend = testAddress("friend");

/** Transactions of the tokens' place: one that waits, one that is credited, one that the chain did not carry out. */
export const hashes = { pending: testHash(1), credited: testHash(2), failed: testHash(3) } as const;

/** Opens them. */
export async function openPlaces(): Promise<Places> {
  const program = await startDev({ environment: { HOST: "127.0.0.1" } });
  const accounts = await openTestPayment();
  const address = known(wallet.address);
  await accounts.credit(address, 1_000n);
  const expiresAt = accounts.clock.now() + 60_000;
  await accounts.credits.approve({
    approvalId: "soon",
    payer: address,
    approved: friend,
    winc: 7n,
    expiresAt,
  });
  await accounts.credits.approve({ approvalId: "ever", payer: address, approved: friend, winc: 5n });
  const gone = await openTestPayment();
  await gone.close();
  const chain = createScriptedChain();
  const tokens = await openTokenFixture([chain]);
  play(chain);
  const silent = createScriptedChain();
  silent.fail("timeout");
  const ignoreRejection = await openTokenFixture([silent]);
  const x402 = await openX402Fixture();
  const blind = await openCardFixture({ feed: {} });
  const reportGuard = createReportGuard(Date.now, 1);
  const served: readonly PaymentServer[] = [
    openPaymentServer(() => accountRoutes(accounts)),
    openPaymentServer(() => [createTokenRoutes({ ...tokens, reportGuard })]),
    openPaymentServer(() => accountRoutes(gone)),
    openPaymentServer(() => [createPriceRoutes({ prices: brokenPrices, promoGuard: createPromoGuard(Date.now, 1) })]),
    openPaymentServer(() => [createTokenRoutes({ ...ignoreRejection, reportGuard })]),
  ];
  const [own, reports, broken, priceless, unanswered] = served.map(({ url }) => url);
  const { payment, gateway } = program.line;
  return {
    program,
    x402,
    origins: {
      program: [payment, `${payment}/v1`, `${gateway}/payment`, `${gateway}/payment/v1`],
      accounts: [own ?? ""],
      tokens: [reports ?? ""],
      x402: [x402.server.url],
      "broken accounts": [broken ?? ""],
      "broken prices": [priceless ?? ""],
      "broken tokens": [unanswered ?? ""],
      "broken top-ups": [blind.server.url],
    },
    close: async () => {
      for (const server of served) await server.close();
      for (const each of [accounts, tokens, ignoreRejection, x402, blind]) await each.close();
      await program.remove();
    },
  };
}

function play(chain: ScriptedChain): void {
  const payer = ethereumAddressOf(0xa11ce);
  chain.send(hashes.credited, { transfers: [transferOf(payer, 100n)] });
  chain.send(hashes.failed, { transfers: [transferOf(payer, 100n)], succeeded: false });
  chain.mine(3);
  chain.send(hashes.pending, { transfers: [transferOf(payer, 100n)] });
}

function accountRoutes({ credits, database, clock }: TestPayment): readonly AnyElysia[] {
  const tokens = createWalletTokens(testKey(99), clock.now);
  const access = createWalletAccess({ database, tokens, clock: clock.now });
  return [createBalanceRoutes({ credits, access, free: () => freeAllowance(0) }), createApprovalRoutes({ credits })];
}

const fail = (code: "fiat_oracle_unavailable" | "pricing_oracle_unavailable") => async (): Promise<never> => {
  throw new Failure(code);
};

const fiat = fail("fiat_oracle_unavailable");
const brokenPrices = {
  bytes: fail("pricing_oracle_unavailable"),
  rates: fiat,
  rate: fiat,
  limits: fiat,
  topUp: fiat,
  fiat,
  token: fiat,
  tokenFor: fiat,
};

function known(text: string): UserAddress {
  const read = readAddress(text);
  if (read === undefined) throw new Error(`${text} is not an address`);
  return read.address;
}
