/**
 * Accounts in the admin API: the list, one account with its history, grants and adjustments.
 *
 * A page ends with `next`, the cursor of the page after it; null for the last page.
 * Source: docs/reference/payment.md#actions-of-operators.
 * @module
 */
import { Failure } from "../../failures.ts";
import { digitsSchema, lineSchema, stringSchema } from "../../lib/value-schema.ts";
import { readAddress, type UserAddress } from "../../payment/addresses.ts";
import { accountsPageMax, type OperatorAccounts } from "../../payment/operator/operator-accounts.ts";
import { idempotencyKeyPattern } from "../../payment/operator/operator-actions.ts";
import { amountMax } from "../../store/ledger/ledger-database.ts";
import { transferKinds } from "../../store/ledger/transfers.ts";
import { type AdminDescription, type AdminEndpoint, adminFields, get, post } from "../admin-endpoints.ts";
import { bodyOf, type Fields, needed } from "../body-fields.ts";
import { type Parameter, pathParameter, queryParameter } from "../parameter.ts";
import { failureResponses, json, record, type Schema, textSchema } from "../reference/openapi-types.ts";
import { contextOf } from "../request-context.ts";
import { jsonResponse } from "../responses.ts";
import { signedWinc } from "./payment-common.ts";
import { approvalSchema, balanceRecord } from "./payment-records.ts";

/** Rows of a page without a limit in the request. */
const pageDefault = 100;

/** An Ethereum address without an owner. */
export const sampleAddress = "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A";

export const unixMs: Schema = { type: "integer", description: "Unix milliseconds." };
export const nullableText: Schema = { type: "string", nullable: true };
export const nextCursor: Schema = { ...nullableText, description: "Cursor of the next page." };

const limitFormat = digitsSchema(1, accountsPageMax);
export const limitParameter: Parameter = queryParameter("limit", limitFormat, "Rows of the page.", pageDefault);
const cursorFormat = lineSchema(1, 400);
export const afterParameter: Parameter = queryParameter("after", cursorFormat, "`next` of the page before.");

const addressParameter = pathParameter("address", { schema: textSchema }, sampleAddress, "Address of the account.");

/** The fields of every action, which its response repeats. */
export const actionFields = {
  operator: needed(lineSchema(1, 100), "malformed_input"),
  reason: needed(lineSchema(1, 1_000), "malformed_input"),
  idempotencyKey: needed(stringSchema({ pattern: idempotencyKeyPattern }), "malformed_input"),
} as const;
export const sampleAction = { operator: "ada", reason: "an example", idempotencyKey: "an-example" };
export const actionRecord = { at: unixMs, operator: textSchema, reason: textSchema, idempotencyKey: textSchema };

const movementBody = bodyOf({
  winc: needed(stringSchema({ pattern: "^-?[1-9][0-9]{0,18}$" }), "malformed_input"),
  ...actionFields,
});
const grantBody = bodyOf({
  winc: needed(stringSchema({ pattern: "^[1-9][0-9]{0,18}$" }), "malformed_input"),
  ...actionFields,
});
const example = { winc: "1", ...sampleAction };

const movementResponses = {
  200: json(
    "What was done; the same for every repetition with the key.",
    record({
      kind: { type: "string", enum: ["grant", "adjust"] },
      address: textSchema,
      winc: signedWinc,
      balance: { ...signedWinc, description: "Of the account, right after the transfer." },
      transferId: textSchema,
      ...actionRecord,
    }),
  ),
  ...failureResponses("malformed_input", "payment_rejected", "invalid_paying_address", "idempotency_conflict"),
  ...failureResponses("busy", "database_unavailable"),
};

const approvals: Schema = { type: "array", items: approvalSchema };

const descriptions = {
  list: {
    summary: "List the accounts with their credits",
    parameters: [limitParameter, afterParameter],
    responses: {
      200: json(
        "A page, by address.",
        record({
          accounts: { type: "array", items: record({ address: textSchema, winc: signedWinc }) },
          next: nextCursor,
        }),
      ),
      ...failureResponses("malformed_input", "busy", "database_unavailable"),
    },
  },
  show: {
    summary: "Show an account: balance, approvals and history, newest first",
    parameters: [addressParameter, limitParameter, afterParameter],
    responses: {
      200: json(
        "The account.",
        record({
          address: textSchema,
          winc: signedWinc,
          controlledWinc: signedWinc,
          effectiveBalance: signedWinc,
          givenApprovals: approvals,
          receivedApprovals: approvals,
          history: {
            type: "array",
            items: record({
              transferId: textSchema,
              kind: { type: "string", enum: transferKinds },
              at: unixMs,
              winc: { ...signedWinc, description: "Into the account; below 0 out of it." },
              changeId: { ...nullableText, description: "The item, payment, approval or action that caused it." },
              note: nullableText,
            }),
          },
          next: nextCursor,
        }),
      ),
      ...failureResponses("malformed_input", "invalid_paying_address"),
      ...failureResponses("user_not_found", "busy", "database_unavailable"),
    },
  },
  grant: {
    summary: "Give an account unpaid credits",
    description: "One transfer from the account of promotions. A repeated key with the same body changes nothing.",
    parameters: [addressParameter],
    body: grantBody,
    example,
    responses: movementResponses,
  },
  adjust: {
    summary: "Correct an account; below 0 takes credits from it, but never more than it has",
    description: "One transfer from the account of adjustments. A repeated key with the same body changes nothing.",
    parameters: [addressParameter],
    body: movementBody,
    example,
    responses: movementResponses,
  },
} as const satisfies Readonly<Record<string, AdminDescription>>;

/** The endpoints of accounts. */
export function createAccountEndpoints(accounts: OperatorAccounts): AdminEndpoint[] {
  const move = (kind: "grant" | "adjust", body: typeof movementBody) => async (request: Request, address: string) => {
    const { winc, ...order } = body.read(await adminFields(request));
    return jsonResponse(await accounts.move({ kind, address: addressIn(address), winc: wincIn(winc), ...order }));
  };
  const grant = move("grant", grantBody);
  const adjust = move("adjust", movementBody);
  return [
    get("/accounts", descriptions.list, async (request) => {
      const { limit, after } = readCreditPage(request);
      const rows = await accounts.list({ after, limit: limit + 1 });
      const page = rows.slice(0, limit);
      return jsonResponse({
        accounts: page.map(({ address, winc }) => ({ address, winc: winc.toString() })),
        next: rows.length > limit ? (page.at(-1)?.address ?? null) : null,
      });
    }),
    get("/accounts/:address", descriptions.show, (request, { address = "" }) => show(accounts, request, address)),
    post("/accounts/:address/grant", descriptions.grant, (request, { address = "" }) => grant(request, address)),
    post("/accounts/:address/adjust", descriptions.adjust, (request, { address = "" }) => adjust(request, address)),
  ];
}

async function show(accounts: OperatorAccounts, request: Request, text: string): Promise<Response> {
  const { limit, after } = readCreditPage(request);
  const address = addressIn(text);
  const found = await accounts.show(address, { before: after, limit: limit + 1 });
  if (found === undefined) throw new Failure("user_not_found", { address });
  const page = found.history.slice(0, limit);
  return jsonResponse({
    address,
    ...balanceRecord(found.balance),
    history: page.map(({ transferId, kind, at, amount, changeId, note }) => ({
      transferId,
      kind,
      at,
      winc: amount.toString(),
      changeId: changeId ?? null,
      note: note ?? null,
    })),
    next: found.history.length > limit ? (page.at(-1)?.transferId ?? null) : null,
  });
}

/** The page of a list. @throws Failure `malformed_input`. */
export function readCreditPage(request: Request): Readonly<{ limit: number; after: string | undefined }> {
  const query: Fields = Object.fromEntries(new URLSearchParams(contextOf(request).target.query));
  const { limit = String(pageDefault), after } = query;
  if (!limitFormat.is(limit)) throw new Failure("malformed_input", { limit });
  if (after !== undefined && !cursorFormat.is(after)) throw new Failure("malformed_input", { after });
  return { limit: Number(limit), after };
}

export function addressIn(text: string): UserAddress {
  const read = readAddress(text);
  if (read === undefined) throw new Failure("invalid_paying_address", { text });
  return read.address;
}

function wincIn(text: string): bigint {
  const winc = BigInt(text);
  if (winc > amountMax || winc < -amountMax) throw new Failure("malformed_input", { winc: text });
  return winc;
}
