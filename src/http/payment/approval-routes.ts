/**
 * Approvals as they stand: between two addresses, and of one.
 * Source: docs/reference/payment.md#approvals.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import type { UserAddress } from "../../payment/addresses.ts";
import type { Credits } from "../../payment/credits/credits.ts";
import { contextOf } from "../context.ts";
import { jsonResponse } from "../responses.ts";
import { approvalRecord } from "./credit-records.ts";
import { accountParameters } from "./parameters.ts";
import { noStore } from "./signer.ts";
import { fromLedger } from "./unavailable.ts";

/** What the routes ask. */
export type ApprovalRoutesOptions = Readonly<{ credits: Pick<Credits, "approvals" | "balance"> }>;

/** Creates the routes. */
export function createApprovalRoutes({ credits }: ApprovalRoutesOptions): AnyElysia {
  async function between(request: Request): Promise<Response> {
    const payer = readNamed(request, accountParameters.payingAddress);
    const approved = readNamed(request, accountParameters.approvedAddress);
    const { approvals, unusedWinc } = await credits.approvals({ payer, approved });
    // The soonest expiry comes first, and what never expires last.
    const expiresBy = approvals[0]?.expiresAt;
    const record = {
      approvals: approvals.map(approvalRecord),
      amount: String(unusedWinc),
      ...(expiresBy === undefined ? {} : { expiresBy }),
    };
    return jsonResponse(record, 200, noStore);
  }

  async function ofOne(request: Request): Promise<Response> {
    // An address that is in an approval, on either side, has a balance.
    const balance = await credits.balance(readNamed(request, accountParameters.userAddress));
    const record = {
      givenApprovals: balance?.givenApprovals.map(approvalRecord) ?? [],
      receivedApprovals: balance?.receivedApprovals.map(approvalRecord) ?? [],
    };
    return jsonResponse(record, 200, noStore);
  }

  const inWords = <Result>(response: Promise<Result>) => fromLedger("approvals_unavailable", response);
  return new Elysia({ strictPath: true })
    .get("/account/approvals", ({ request }) => inWords(between(request)))
    .get("/account/approval", ({ request }) => inWords(between(request)))
    .get("/account/approvals/get", ({ request }) => inWords(ofOne(request)));
}

function readNamed(
  request: Request,
  { name, read }: Pick<typeof accountParameters.address, "name" | "read">,
): UserAddress {
  const text = new URLSearchParams(contextOf(request).target.query).get(name);
  const address = text === null ? undefined : read(text);
  if (address === undefined) throw new Failure("invalid_paying_address", { name });
  return address;
}
