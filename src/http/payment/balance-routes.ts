/**
 * What an account holds: for its wallet, which is given a token for the hour to come, and for whoever names it.
 * Source: docs/reference/payment.md#routes; docs/reference/payment.md#tokens-of-a-session.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import type { WalletAccess } from "../../payment/access/wallet-access.ts";
import type { UserAddress } from "../../payment/addresses.ts";
import type { Credits } from "../../payment/credits/credits.ts";
import type { FreeAllowance } from "../../payment/prices/price-types.ts";
import { contextOf } from "../context.ts";
import { jsonResponse } from "../responses.ts";
import { balanceRecord } from "./credit-records.ts";
import { accountParameters } from "./parameters.ts";
import { noStore, signedRequestOf } from "./signer.ts";
import { fromLedger } from "./unavailable.ts";

/** What the routes ask. */
export type BalanceRoutesOptions = Readonly<{
  credits: Pick<Credits, "balance">;
  access: WalletAccess;
  free: (address: UserAddress) => FreeAllowance;
}>;

const { address: parameter } = accountParameters;

/** Creates the routes. */
export function createBalanceRoutes({ credits, access, free }: BalanceRoutesOptions): AnyElysia {
  const balanceOf = async (address: UserAddress | undefined) => {
    const balance = address === undefined ? undefined : await credits.balance(address);
    if (balance === undefined) throw new Failure("user_not_found", { address });
    return balance;
  };

  async function balanceForWallet(request: Request): Promise<Response> {
    const wallet = await access.admit(signedRequestOf(request));
    const named = queryOf(request).get(parameter.name);
    if (wallet === undefined && named === null)
      throw new Failure("invalid_signature", { reason: "neither a signature nor an address" });
    const balance = await balanceOf(wallet?.address ?? parameter.read(named ?? ""));
    const token = wallet?.by === "signature" ? access.issue(wallet.address) : undefined;
    const authorization = token === undefined ? {} : { Authorization: `Bearer ${token}` };
    return jsonResponse(balanceRecord(balance), 200, { ...noStore, ...authorization });
  }

  /** What clients ask before an upload; some read the sum by its old name. */
  async function balanceOfAddress(request: Request): Promise<Response> {
    const balance = await balanceOf(parameter.read(namedAddress(request)));
    const record = balanceRecord(balance);
    return jsonResponse({ ...record, balance: record.winc }, 200, noStore);
  }

  function freeOfAddress(request: Request): Response {
    const address = parameter.read(namedAddress(request));
    if (address === undefined) throw new Failure("invalid_paying_address", {});
    const { bytesRemaining, itemBytesMax } = free(address);
    return jsonResponse({ bytesRemaining, freeUploadLimitBytes: itemBytesMax }, 200, noStore);
  }

  const inWords = <Result>(response: Promise<Result>) => fromLedger("database_unavailable", response);
  return new Elysia({ strictPath: true })
    .get("/balance", ({ request }) => inWords(balanceForWallet(request)))
    .get("/account/balance", ({ request }) => inWords(balanceOfAddress(request)))
    .get("/account/balance/:token", ({ request }) => inWords(balanceOfAddress(request)))
    .get("/account/free", ({ request }) => freeOfAddress(request));
}

function namedAddress(request: Request): string {
  const address = queryOf(request).get(parameter.name);
  if (address === null) throw new Failure("payment_rejected", { reason: "Missing address in query parameters" });
  return address;
}

function queryOf(request: Request): URLSearchParams {
  return new URLSearchParams(contextOf(request).target.query);
}
