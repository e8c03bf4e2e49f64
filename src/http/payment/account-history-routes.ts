/**
 * The movements of credits of the account that signed: payments, uploads, approvals, refunds, newest first.
 *
 * The response to a signed request carries a token for an hour, also for a wallet that never had credits, so that a
 * page asks its wallet for one signature only. Notes stay with the operator: they name persons.
 * Source: docs/reference/payment.md#routes; docs/reference/payment.md#tokens-of-a-session.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure, rejected } from "../../failures.ts";
import { stringSchema } from "../../lib/value-schema.ts";
import type { WalletAccess } from "../../payment/access/wallet-access.ts";
import type { UserAddress } from "../../payment/addresses.ts";
import { type HistoryEntry, transferKinds } from "../../store/ledger/transfers.ts";
import { failureResponses, json, record, ref, type Schema, textSchema } from "../reference/openapi-types.ts";
import { jsonResponse, noStore } from "../responses.ts";
import { described, optionalQuery, type RouteDescription, readQuery } from "../route-schema.ts";
import { pageLimit } from "./account-routes.ts";
import { dateTime, fromLedger, signatureHeaders, signedRequestOf, signedWinc } from "./payment-common.ts";
import { isoDate } from "./payment-records.ts";

export type AccountHistoryOptions = Readonly<{
  access: WalletAccess;
  /** Returns a page of an account's movements, newest first (`historyOf`). */
  history: (
    address: UserAddress,
    page: Readonly<{ before: string | undefined; limit: number }>,
  ) => Promise<readonly HistoryEntry[]>;
}>;

/** An id of a transfer (`createTransferIds`). */
const cursor = stringSchema({ pattern: "^[0-9a-hjkmnp-tv-z]{26}$" });

const query = {
  limit: pageLimit,
  before: optionalQuery(
    "cursor",
    { description: "The `cursor` of the page before." },
    {
      schema: cursor.schema,
      parse: (text) => (cursor.is(text) ? text : undefined),
      invalid: () => rejected("Invalid cursor"),
    },
    undefined,
  ),
};

/** The record of a page, as a component of the API reference. */
export const accountHistorySchemas: Readonly<Record<string, Schema>> = {
  AccountHistory: record({
    address: textSchema,
    entries: {
      type: "array",
      items: record({
        id: { ...textSchema, description: "Of the transfer." },
        kind: { type: "string", enum: transferKinds },
        date: dateTime,
        winc: { ...signedWinc, description: "Into the account; below 0 out of it." },
        changeId: {
          type: "string",
          nullable: true,
          description: "The item, payment, approval or action that caused it.",
        },
      }),
    },
    hasMore: { type: "boolean" },
    cursor: { type: "string", nullable: true, description: "The cursor of the next page; `null` on the last." },
  }),
};

const ofHistory: RouteDescription = {
  tag: "Accounts",
  summary: "Movements of an account's credits",
  description:
    "Of the account that signed, or whose token is sent; newest first. The response to a signed request carries a " +
    "token for an hour in the header `Authorization`.",
  parameters: [...Object.values(query), ...signatureHeaders],
  responses: {
    200: json("A page; empty for a wallet without an account.", ref("AccountHistory")),
    ...failureResponses("payment_rejected", "invalid_signature", "too_many_requests", "database_unavailable"),
  },
};

export function createAccountHistoryRoutes({ access, history }: AccountHistoryOptions): AnyElysia {
  async function page(request: Request): Promise<Response> {
    const { limit, before } = readQuery(request, query);
    // After validation: an invalid request does not use up the nonce of its signature.
    const wallet = await access.admit(signedRequestOf(request));
    if (wallet === undefined) throw new Failure("invalid_signature", { reason: "the request is not signed" });
    const { address, by } = wallet;
    const found = await history(address, { before, limit: limit + 1 });
    const shown = found.slice(0, limit);
    const hasMore = found.length > limit;
    const token = by === "signature" ? { Authorization: `Bearer ${access.issue(address)}` } : {};
    return jsonResponse(
      {
        address,
        entries: shown.map(entryRecord),
        hasMore,
        cursor: hasMore ? (shown.at(-1)?.transferId ?? null) : null,
      },
      200,
      { ...noStore, ...token },
    );
  }

  return new Elysia({ strictPath: true }).get(
    "/svc/account/history",
    ({ request }) => fromLedger("database_unavailable", page(request)),
    { detail: described(ofHistory) },
  );
}

function entryRecord({ transferId, kind, at, amount, changeId }: HistoryEntry) {
  return { id: transferId, kind, date: isoDate(at), winc: amount.toString(), changeId: changeId ?? null };
}
