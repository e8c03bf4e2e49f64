/**
 * Approvals over HTTP: those between two addresses, and those of one.
 * Source: docs/reference/payment.md#approvals.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import type { Credits } from "../../payment/credits/credits.ts";
import { failureResponses, json, ref } from "../reference/words.ts";
import { jsonResponse } from "../responses.ts";
import { described, type RouteDescription, readQuery } from "../route-schema.ts";
import { approvalRecord } from "./credit-records.ts";
import { accountQuery } from "./payment-schemas.ts";
import { noStore } from "./signer.ts";
import { fromLedger } from "./unavailable.ts";

export type ApprovalRoutesOptions = Readonly<{ credits: Pick<Credits, "approvals" | "balance"> }>;

const pairQuery = {
  payer: accountQuery("payingAddress", "The account that pays."),
  approved: accountQuery("approvedAddress", "The account that may spend."),
};
const addressQuery = { address: accountQuery("userAddress", "The account.") };

const tag = "Approvals";
const invalid = failureResponses("invalid_paying_address", "approvals_unavailable");

const ofPair: RouteDescription = {
  tag,
  summary: "Approvals from one account to another",
  parameters: Object.values(pairQuery),
  responses: { 200: json("The approvals, earliest expiry first.", ref("Approvals")), ...invalid },
};

const ofAddress: RouteDescription = {
  tag,
  summary: "Approvals that an account has given and received",
  parameters: Object.values(addressQuery),
  responses: { 200: json("The approvals.", ref("ApprovalsOfAddress")), ...invalid },
};

export function createApprovalRoutes({ credits }: ApprovalRoutesOptions): AnyElysia {
  async function between(request: Request): Promise<Response> {
    const { approvals, unusedWinc } = await credits.approvals(readQuery(request, pairQuery));
    // The earliest expiry comes first; approvals that never expire come last.
    const expiresBy = approvals[0]?.expiresAt;
    const record = {
      approvals: approvals.map(approvalRecord),
      amount: String(unusedWinc),
      ...(expiresBy === undefined ? {} : { expiresBy }),
    };
    return jsonResponse(record, 200, noStore);
  }

  async function approvalsOf(request: Request): Promise<Response> {
    const { address } = readQuery(request, addressQuery);
    // Every address of an approval, on either side, has a balance.
    const balance = await credits.balance(address);
    const record = {
      givenApprovals: balance?.givenApprovals.map(approvalRecord) ?? [],
      receivedApprovals: balance?.receivedApprovals.map(approvalRecord) ?? [],
    };
    return jsonResponse(record, 200, noStore);
  }

  const guarded = <Result>(response: Promise<Result>) => fromLedger("approvals_unavailable", response);
  return new Elysia({ strictPath: true })
    .get("/account/approvals", ({ request }) => guarded(between(request)), { detail: described(ofPair) })
    .get("/account/approval", ({ request }) => guarded(between(request)), { detail: described(ofPair) })
    .get("/account/approvals/get", ({ request }) => guarded(approvalsOf(request)), { detail: described(ofAddress) });
}
