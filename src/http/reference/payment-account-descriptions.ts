/**
 * What the API reference says of accounts: balances, approvals, payments made, and the service's word on itself.
 * Source: docs/reference/payment.md#routes.
 * @module
 */
import { nonceLengthMax } from "../../payment/access/signed-request.ts";
import { requiredParameter } from "../parameter.ts";
import { accountParameters, sampleAccount } from "../payment/parameters.ts";
import {
  type Description,
  inHeader,
  inPath,
  json,
  type Parameter,
  type Responses,
  record,
  ref,
  refusals,
  type Schema,
  text,
  textSchema,
} from "./words.ts";

const winc: Schema = { type: "string", pattern: "^-?[0-9]+$", description: "Winc." };
const date: Schema = { type: "string", format: "date-time" };
const approvals: Schema = { type: "array", items: ref("Approval") };
const maybeText: Schema = { ...textSchema, nullable: true };

const balanceFields = {
  winc,
  controlledWinc: winc,
  effectiveBalance: winc,
  givenApprovals: approvals,
  receivedApprovals: approvals,
};

/** An approval. */
export const approvalSchema: Schema = record({
  approvalDataItemId: textSchema,
  approvedAddress: textSchema,
  payingAddress: textSchema,
  approvedWincAmount: winc,
  usedWincAmount: winc,
  creationDate: date,
  "expirationDate?": date,
});

/** Records that the descriptions below refer to. */
export const paymentAccountRecords: Readonly<Record<string, Schema>> = {
  Health: record({
    status: textSchema,
    uptime: { type: "number" },
    date,
    reasons: { type: "array", items: textSchema },
  }),
  PaymentInfo: record({
    version: textSchema,
    gateway: textSchema,
    freeUploadLimitBytes: { type: "integer" },
    addresses: {
      type: "object",
      additionalProperties: textSchema,
      description: "Where payments go, by every word that names a token.",
    },
  }),
  Approval: approvalSchema,
  Approvals: record({
    approvals,
    amount: winc,
    "expiresBy?": { type: "integer", description: "Soonest expiry, Unix milliseconds." },
  }),
  ApprovalsOfAddress: record({ givenApprovals: approvals, receivedApprovals: approvals }),
  Balance: record(
    balanceFields,
    "`winc` is what the account can spend or share; `controlledWinc` counts what is left of approvals that it gave, " +
      "`effectiveBalance` what is left of those that it received. At most 1,000 approvals are listed.",
  ),
  BalanceOfAddress: record({ ...balanceFields, balance: winc }),
  FreeAllowance: record({
    bytesRemaining: { type: "integer", nullable: true, description: "`null` is without limit." },
    freeUploadLimitBytes: { type: "integer", description: "The largest item that costs nothing." },
  }),
  TokenPaymentMade: record({
    type: { type: "string", enum: ["crypto"] },
    date,
    wincCredited: winc,
    tokenType: textSchema,
    tokenQuantity: textSchema,
    usdEquivalent: textSchema,
    senderAddress: textSchema,
    transactionId: textSchema,
    blockHeight: textSchema,
  }),
  TokenPaymentPending: record({
    type: { type: "string", enum: ["crypto"] },
    date,
    wincPending: winc,
    tokenType: textSchema,
    tokenQuantity: textSchema,
    senderAddress: textSchema,
    transactionId: textSchema,
  }),
  CardPaymentMade: record({
    type: { type: "string", enum: ["fiat"] },
    date,
    wincCredited: winc,
    paymentAmount: textSchema,
    currencyType: textSchema,
    paymentProvider: textSchema,
    receiptId: textSchema,
    giftMessage: maybeText,
  }),
  PaymentsMade: record({
    payments: { type: "array", items: { oneOf: [ref("TokenPaymentMade"), ref("CardPaymentMade")] } },
    "pending?": {
      type: "array",
      items: ref("TokenPaymentPending"),
      description: "On the first page: payments in tokens that wait for confirmations, the newest first; at most 100.",
    },
    hasMore: { type: "boolean" },
    cursor: { ...maybeText, description: "What the next page is asked with; `null` on the last." },
  }),
};

const { address } = accountParameters;
const namedAddress = requiredParameter(address, sampleAccount);

/** The headers of a signed request. */
export const signed: readonly Parameter[] = [
  inHeader("x-signature", textSchema, "Base64url. Over the nonce, or over method, space, path with query and nonce."),
  inHeader("x-nonce", { type: "string", minLength: 1, maxLength: nonceLengthMax }, "Never used before with this key."),
  inHeader("x-public-key", textSchema, "Base64url; of Ethereum keys also hexadecimal after 0x."),
  inHeader("x-signature-type", { type: "integer", enum: [1, 3, 4], default: 1 }, "1 Arweave, 3 Ethereum, 4 Solana."),
];

const accounts = "Accounts";
const unsigned = refusals("invalid_signature", "too_many_requests");
const noLedger = refusals("database_unavailable");
const noUser = { ...refusals("user_not_found"), ...noLedger };

const ofAccounts: readonly Description[] = [
  {
    method: "GET",
    path: "/balance",
    tag: accounts,
    summary: "What an account holds",
    description:
      "Signed, with the token that a signed request was answered with, or with an address. A signed request is " +
      "answered with a token for an hour, in the header `Authorization`.",
    parameters: [address, ...signed],
    responses: { 200: json("The balance.", ref("Balance")), ...unsigned, ...noUser },
  },
  balanceOf("/account/balance", []),
  balanceOf("/account/balance/:token", [
    inPath("token", textSchema, "native", "Any token: the account is the address's."),
  ]),
  {
    method: "GET",
    path: "/account/free",
    tag: accounts,
    summary: "What may be uploaded without paying",
    parameters: [namedAddress],
    responses: { 200: json("The allowance.", ref("FreeAllowance")), ...refusals("invalid_paying_address") },
  },
  {
    method: "GET",
    path: "/account/payments",
    tag: accounts,
    summary: "Payments that an account was credited for",
    description:
      "Of the account that signed, or whose token is shown; newest first. What is paid and not confirmed yet stands " +
      "beside the first page.",
    parameters: [accountParameters.limit, accountParameters.cursor, ...signed],
    responses: {
      200: json("A page.", ref("PaymentsMade")),
      ...refusals("payment_rejected"),
      ...unsigned,
      ...noLedger,
    },
  },
];

function balanceOf(path: string, more: readonly Parameter[]): Description {
  return {
    method: "GET",
    path,
    tag: accounts,
    summary: "What the account of an address holds",
    parameters: [...more, namedAddress],
    responses: {
      200: json("The balance.", ref("BalanceOfAddress")),
      ...refusals("payment_rejected"),
      ...noUser,
    },
  };
}

const noApprovals: Responses = refusals("invalid_paying_address", "approvals_unavailable");

const between: Omit<Description, "path"> = {
  method: "GET",
  tag: "Approvals",
  summary: "What one account may spend of another's",
  parameters: [accountParameters.payingAddress, accountParameters.approvedAddress],
  responses: { 200: json("The approvals, soonest expiry first.", ref("Approvals")), ...noApprovals },
};

const ofApprovals: readonly Description[] = [
  { ...between, path: "/account/approvals" },
  { ...between, path: "/account/approval" },
  {
    method: "GET",
    path: "/account/approvals/get",
    tag: "Approvals",
    summary: "What an account has approved, and what it may spend",
    parameters: [accountParameters.userAddress],
    responses: { 200: json("The approvals.", ref("ApprovalsOfAddress")), ...noApprovals },
  },
];

const information = "Information";

function says(path: string, summary: string, response: Responses[number]): Description {
  return { method: "GET", path, tag: information, summary, responses: { 200: response } };
}

const ofItself: readonly Description[] = [
  says("/", "What this service is", json("The record.", ref("PaymentInfo"))),
  says("/info", "What this service is, and where it is paid", json("The record.", ref("PaymentInfo"))),
  says(
    "/countries",
    "Countries from which cards are taken",
    json("Their names.", { type: "array", items: textSchema }),
  ),
  says("/health", "How it is, with reasons", json("Its health.", ref("Health"))),
  says("/metrics", "Figures", text("The figures, in the exposition format of Prometheus.")),
];

/** Every route of accounts. */
export const paymentAccountDescriptions: readonly Description[] = [...ofAccounts, ...ofApprovals, ...ofItself];
