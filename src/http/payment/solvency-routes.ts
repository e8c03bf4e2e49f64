/**
 * Statements and the proof of solvency: for the operator in the admin API, and the proof of its own balance for each
 * account.
 * Source: docs/reference/payment.md#statements; docs/reference/payment.md#proof-of-solvency.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { JsonObject } from "../../lib/json.ts";
import { stringSchema } from "../../lib/value-schema.ts";
import type { WalletAccess } from "../../payment/access/wallet-access.ts";
import type { LedgerReports } from "../../payment/operator/ledger-reports.ts";
import { verifySolvency } from "../../payment/operator/solvency.ts";
import { newestRoots, type StoredRoot } from "../../payment/operator/solvency-roots.ts";
import { readMonth } from "../../payment/operator/statement.ts";
import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import { type AdminDescription, type AdminEndpoint, get } from "../admin-endpoints.ts";
import { queryParameter, requiredParameter } from "../parameter.ts";
import { failureResponses, json, record, ref, type Schema, textSchema } from "../reference/openapi-types.ts";
import { contextOf } from "../request-context.ts";
import { jsonResponse, noStore, withBodySize } from "../responses.ts";
import { described, type RouteDescription } from "../route-schema.ts";
import { addressIn, sampleAddress, unixMs } from "./operator-account-routes.ts";
import { fromLedger, signatureHeaders, signedRequestOf, winc } from "./payment-common.ts";

type ReportEndpointParts = Readonly<{
  ledger: Pick<LedgerDatabase, "read">;
  reports: Pick<LedgerReports, "statement" | "currentRoot" | "prove">;
  /** Interval of publication, milliseconds; 0: the program publishes no root. */
  everyMs: number;
  clock: Clock;
}>;

/** Published roots of one response. */
const rootsMax = 30;

const monthFormat = stringSchema({ pattern: "^20[0-9]{2}-(0[1-9]|1[0-2])$" });
const monthParameter = requiredParameter(queryParameter("month", monthFormat, "A month in UTC."), "2026-01");
const accountParameter = requiredParameter(
  queryParameter("account", { schema: textSchema }, "Address of the account."),
  sampleAddress,
);

const hash: Schema = { ...textSchema, description: "Base64url of 32 bytes." };
const count: Schema = { type: "integer", minimum: 0 };
const rootFields: Readonly<Record<string, Schema>> = {
  at: { ...unixMs, description: "Moment of the balances, Unix milliseconds." },
  accounts: { ...count, description: "Balances in the sum." },
  winc: { ...winc, description: "Sum of the balances." },
  root: hash,
};

/** The record of a proof, as a component of the API reference. */
export const solvencySchemas: Readonly<Record<string, Schema>> = {
  SolvencyProof: record(
    {
      version: { type: "integer", enum: [1] },
      account: { ...textSchema, description: "`user:` and the address." },
      winc,
      salt: hash,
      index: { ...count, description: "Place of the leaf." },
      path: {
        type: "array",
        items: record({ hash, winc }),
        description: "Siblings from the leaf to the root.",
      },
      item: { ...textSchema, description: "The signed data item of the root, base64url." },
    },
    "`cairn solvency verify` checks it.",
  ),
};

const noProof = failureResponses("not_found", "user_not_found");

const descriptions = {
  statement: {
    summary: "The ledger's statement of a month, as CSV",
    description: "Of a month that has begun, up to now. Its closing balances sum to zero.",
    parameters: [monthParameter],
    responses: {
      200: { description: "`month,account,line,entries,winc`.", content: { "text/csv": { schema: textSchema } } },
      ...failureResponses("malformed_input", "busy", "database_unavailable"),
    },
  },
  solvency: {
    summary: "What is owed to clients: the root of all balances now, and the roots that the program signed",
    parameters: [],
    responses: {
      200: json(
        "The roots, the newest first.",
        record({
          everyMs: { ...count, nullable: true, description: "Interval of publication; null: off." },
          current: record(rootFields, "Of five minutes ago, unsigned. Younger balances may still change."),
          roots: {
            type: "array",
            items: record({
              id: { ...textSchema, description: "Of the data item." },
              ...rootFields,
              publishedAt: { ...unixMs, nullable: true, description: "Null while it waits for its upload." },
            }),
          },
        }),
      ),
      ...failureResponses("busy", "database_unavailable"),
    },
  },
  proof: {
    summary: "The proof that an account is in the newest published root",
    parameters: [accountParameter],
    responses: {
      200: json("The proof.", solvencySchemas["SolvencyProof"] ?? {}),
      ...failureResponses("invalid_paying_address", "busy", "database_unavailable"),
      ...noProof,
    },
  },
} as const satisfies Readonly<Record<string, AdminDescription>>;

/** The endpoints of the admin API. */
export function createReportEndpoints({ ledger, reports, everyMs, clock }: ReportEndpointParts): AdminEndpoint[] {
  return [
    get("/statement", descriptions.statement, async (request) => {
      const name = queryOf(request, "month");
      const month = readMonth(name);
      if (month === undefined || month.from > clock()) throw new Failure("malformed_input", { month: name });
      const text = await reports.statement(month, request.signal);
      const headers = {
        "Content-Type": "text/csv; charset=utf-8",
        "Content-Disposition": `attachment; filename="statement-${month.name}.csv"`,
      };
      return withBodySize(new Response(text, { headers }), text.length);
    }),
    get("/solvency", descriptions.solvency, async (request) => {
      const [{ version: _version, ...current }, roots] = await Promise.all([
        reports.currentRoot(request.signal),
        ledger.read((tx) => newestRoots(tx, rootsMax)),
      ]);
      return jsonResponse({ everyMs: everyMs === 0 ? null : everyMs, current, roots: roots.map(rootRecord) });
    }),
    get("/solvency/proof", descriptions.proof, async (request) => {
      const address = addressIn(queryOf(request, "account"));
      return jsonResponse(await reports.prove(address, request.signal));
    }),
  ];
}

/** The root in the data item. */
function rootRecord({ id, item, publishedAt }: StoredRoot): JsonObject {
  const verdict = verifySolvency({ item });
  if (verdict.fault !== undefined) throw new Error(`the stored root ${id} is damaged: ${verdict.fault}`);
  const { at, accounts, root } = verdict.root;
  const sum = { winc: root.winc.toString(), root: root.hash.toBase64({ alphabet: "base64url", omitPadding: true }) };
  return { id, at, accounts, ...sum, publishedAt: publishedAt ?? null };
}

function queryOf(request: Request, name: string): string {
  return new URLSearchParams(contextOf(request).target.query).get(name) ?? "";
}

const ofProof: RouteDescription = {
  tag: "Accounts",
  summary: "The proof that an account's credits are in the newest published root of solvency",
  description: "Of the account that signed, or whose token is sent.",
  parameters: signatureHeaders,
  responses: {
    200: json("The proof.", ref("SolvencyProof")),
    ...failureResponses("invalid_signature", "too_many_requests", "busy", "database_unavailable"),
    ...noProof,
  },
};

/** The route for the owner of an account. */
export function createSolvencyRoutes({
  access,
  prove,
}: Readonly<{ access: WalletAccess; prove: LedgerReports["prove"] }>): AnyElysia {
  async function ownProof(request: Request): Promise<Response> {
    const wallet = await access.admit(signedRequestOf(request));
    if (wallet === undefined) throw new Failure("invalid_signature", { reason: "the request is not signed" });
    // Keys cost nothing, and a proof opens the ledger in a thread.
    if (!wallet.hasAccount) throw new Failure("user_not_found", { account: wallet.address });
    return jsonResponse(await prove(wallet.address, request.signal), 200, noStore);
  }

  return new Elysia({ strictPath: true }).get(
    "/svc/account/solvency-proof",
    ({ request }) => fromLedger("database_unavailable", ownProof(request)),
    { detail: described(ofProof) },
  );
}
