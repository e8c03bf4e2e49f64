/**
 * Actions of operators: who did what to credits, why, and once for each idempotency key.
 *
 * The row of an action is written in the transaction of its effects. A key that is sent again with the same request
 * returns the stored response; with another request it fails, and nothing changes.
 * Source: docs/reference/payment.md#actions-of-operators.
 * @module
 */
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import { isJsonObject, type JsonObject, readJson, writeJson } from "../../lib/json.ts";
import type { Tx } from "../../store/ledger/ledger-database.ts";

/** What an operator does to credits. */
type ActionKind = "grant" | "adjust";

/** Who acts, why, and the key under which the action happens once. */
export type ActionOrder = Readonly<{
  /** 1 to 100 characters of `idempotencyKeyPattern`. */
  idempotencyKey: string;
  operator: string;
  reason: string;
}>;

/** An action as it is stored. */
export type OperatorAction = ActionOrder &
  Readonly<{
    kind: ActionKind;
    /** The account that it changes. */
    subject: string;
    /** Winc that its own transfer moves into the account; 0 without one. */
    winc: bigint;
    /** Unix milliseconds. */
    at: number;
  }>;

export const idempotencyKeyPattern = "^[0-9A-Za-z_.-]{1,100}$";

/** The `change_id` of an action's transfer: no id of a payment or an item begins so. */
export function actionChangeId(idempotencyKey: string): string {
  return `operator/${idempotencyKey}`;
}

/** The note of an action's transfer. */
export function actionNote({ operator, reason }: ActionOrder): string {
  return `${operator}: ${reason}`;
}

/**
 * Performs an action, once for its key.
 *
 * @param perform - Its effects, in the same transaction. @returns The response, as JSON.
 * @throws Failure `idempotency_conflict` when the key was used for another request; what `perform` throws.
 */
export async function performOnce(
  tx: Tx,
  action: OperatorAction,
  perform: () => Promise<JsonObject>,
): Promise<JsonObject> {
  const { idempotencyKey, kind, subject, winc, operator, reason, at } = action;
  const claimed = await tx.run(
    "INSERT INTO operator_actions (id, kind, subject, winc, operator, reason, at) VALUES (?, ?, ?, ?, ?, ?, ?) " +
      "ON CONFLICT (id) DO NOTHING",
    ...[idempotencyKey, kind, subject, winc, operator, reason, BigInt(at)],
  );
  if (claimed === 0) return await earlierResponse(tx, action);
  const response = await perform();
  await tx.run("UPDATE operator_actions SET response = ? WHERE id = ?", writeJson(response), idempotencyKey);
  return response;
}

type ActionRow = Readonly<{
  kind: string;
  subject: string;
  winc: bigint;
  operator: string;
  reason: string;
  response: string | null;
}>;

async function earlierResponse(tx: Tx, action: OperatorAction): Promise<JsonObject> {
  const row = await tx.get<ActionRow>(
    "SELECT kind, subject, winc, operator, reason, response FROM operator_actions WHERE id = ?",
    action.idempotencyKey,
  );
  assert(row !== undefined, "an action whose key is taken has a row");
  const isSame =
    row.kind === action.kind &&
    row.subject === action.subject &&
    row.winc === action.winc &&
    row.operator === action.operator &&
    row.reason === action.reason;
  if (!isSame) throw new Failure("idempotency_conflict", { idempotencyKey: action.idempotencyKey });
  const response = row.response === null ? undefined : readJson(row.response);
  assert(isJsonObject(response), "a completed action has its response");
  return response;
}
