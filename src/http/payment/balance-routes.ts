/**
 * Balances over HTTP: for the wallet that signs, which gets a token for an hour, and for any address.
 * Source: docs/reference/payment.md#routes; docs/reference/payment.md#tokens-of-a-session.
 * @module
 */
import { type AnyElysia, Elysia, t } from "elysia";
import { Failure } from "../../failures.ts";
import type { WalletAccess } from "../../payment/access/wallet-access.ts";
import { accountText, type UserAddress } from "../../payment/addresses.ts";
import type { Credits } from "../../payment/credits/credits.ts";
import type { FreeAllowance } from "../../payment/prices/price-types.ts";
import { queryParameter } from "../parameter.ts";
import { failureResponses, json, ref } from "../reference/words.ts";
import { contextOf } from "../request-context.ts";
import { jsonResponse } from "../responses.ts";
import { described, plainText, type RouteDescription, readQuery } from "../route-schema.ts";
import { balanceRecord } from "./credit-records.ts";
import { accountQuery, signatureHeaders } from "./payment-schemas.ts";
import { noStore, signedRequestOf } from "./signer.ts";
import { fromLedger } from "./unavailable.ts";

export type BalanceRoutesOptions = Readonly<{
  credits: Pick<Credits, "balance">;
  access: WalletAccess;
  free: (address: UserAddress) => FreeAllowance;
}>;

/** Validated after the signature, so that only an authentic request learns which addresses have an account. */
const parameter = queryParameter("address", accountText, "The account.");

const missingAddress = () => new Failure("payment_rejected", { reason: "Missing address in query parameters" });
const balanceQuery = { address: accountQuery("address", "The account.", "user_not_found", missingAddress) };
const freeQuery = { address: accountQuery("address", "The account.", "invalid_paying_address", missingAddress) };

const tag = "Accounts";
const notFound = failureResponses("user_not_found", "database_unavailable");

const ofWallet: RouteDescription = {
  tag,
  summary: "Balance of a wallet",
  description:
    "Signed, with the token that the response to a signed request carries, or with an address. The response to a " +
    "signed request carries a token for an hour in the header `Authorization`.",
  parameters: [parameter, ...signatureHeaders],
  responses: {
    200: json("The balance.", ref("Balance")),
    ...failureResponses("invalid_signature", "too_many_requests"),
    ...notFound,
  },
};

const ofAddress: RouteDescription = {
  tag,
  summary: "Balance of an address",
  parameters: Object.values(balanceQuery),
  responses: {
    200: json("The balance.", ref("BalanceOfAddress")),
    ...failureResponses("payment_rejected"),
    ...notFound,
  },
};

const ofFree: RouteDescription = {
  tag,
  summary: "Bytes that an address can upload free of charge",
  parameters: Object.values(freeQuery),
  responses: {
    200: json("The allowance.", ref("FreeAllowance")),
    ...failureResponses("payment_rejected", "invalid_paying_address"),
  },
};

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

  /** Some clients read the sum as `balance`. */
  async function balanceOfAddress(request: Request): Promise<Response> {
    const { address } = readQuery(request, balanceQuery);
    const balance = await balanceOf(address);
    const record = balanceRecord(balance);
    return jsonResponse({ ...record, balance: record.winc }, 200, noStore);
  }

  function freeOfAddress(request: Request): Response {
    const { address } = readQuery(request, freeQuery);
    const { bytesRemaining, itemBytesMax } = free(address);
    return jsonResponse({ bytesRemaining, freeUploadLimitBytes: itemBytesMax }, 200, noStore);
  }

  const guarded = <Result>(response: Promise<Result>) => fromLedger("database_unavailable", response);
  return new Elysia({ strictPath: true })
    .get("/balance", ({ request }) => guarded(balanceForWallet(request)), { detail: described(ofWallet) })
    .get("/account/balance", ({ request }) => guarded(balanceOfAddress(request)), {
      detail: described(ofAddress),
    })
    .get("/account/balance/:token", ({ request }) => guarded(balanceOfAddress(request)), {
      params: t.Object({
        token: plainText({ description: "Any token: the balance is the address's.", example: "native" }),
      }),
      detail: described(ofAddress),
    })
    .get("/account/free", ({ request }) => freeOfAddress(request), {
      detail: described(ofFree),
    });
}

function queryOf(request: Request): URLSearchParams {
  return new URLSearchParams(contextOf(request).target.query);
}
