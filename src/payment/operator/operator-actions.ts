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
import { readTime, type Tx } from "../../store/ledger/ledger-database.ts";

/** Kinds of changes that an operator makes to credits. */
type ActionKind = "grant" | "adjust" | "refund" | "promo_add" | "promo_end";

/** An action with its operator, its reason, and the idempotency key. */
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
    /** The changed object: an account, a payment, a promo code. */
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
  const begun = await beginAction(tx, action);
  if (begun === "new") return await completeAction(tx, action.idempotencyKey, await perform());
  assert(begun !== "waiting", "an action without an outside system has its response");
  return begun;
}

/**
 * Begins an action, whose effects another system confirms before it is completed.
 *
 * @returns The response of a completed action; `waiting` for one that was begun before.
 * @throws Failure `idempotency_conflict` when the key was used for another request.
 */
export async function beginAction(tx: Tx, action: OperatorAction): Promise<"new" | "waiting" | JsonObject> {
  const { idempotencyKey, kind, subject, winc, operator, reason, at } = action;
  const claimed = await tx.run(
    "INSERT INTO operator_actions (id, kind, subject, winc, operator, reason, at) VALUES (?, ?, ?, ?, ?, ?, ?) " +
      "ON CONFLICT (id) DO NOTHING",
    ...[idempotencyKey, kind, subject, winc, operator, reason, BigInt(at)],
  );
  return claimed === 0 ? await earlierResponse(tx, action) : "new";
}

/** Stores the response of an action; the first one stays. @returns The stored response. */
export async function completeAction(tx: Tx, idempotencyKey: string, response: JsonObject): Promise<JsonObject> {
  const stored = await tx.run(
    "UPDATE operator_actions SET response = ? WHERE id = ? AND response IS NULL",
    ...[writeJson(response), idempotencyKey],
  );
  if (stored > 0) return response;
  const row = await tx.get<ActionRow>(`SELECT ${columns} FROM operator_actions WHERE id = ?`, idempotencyKey);
  const earlier = responseIn(row);
  assert(earlier !== undefined, "a completed action has its response");
  return earlier;
}

/** Removes an action that an outside system has rejected, so that its key is not used up. */
export async function withdrawAction(tx: Tx, idempotencyKey: string): Promise<void> {
  await tx.run("DELETE FROM operator_actions WHERE id = ? AND response IS NULL", idempotencyKey);
}

/** An action that waits for an outside system. */
export type WaitingAction = ActionOrder & Readonly<{ subject: string; at: number }>;

/** Actions that wait for an outside system, the oldest first. */
export async function waitingActions(tx: Tx, limit: number): Promise<WaitingAction[]> {
  const rows = await tx.all<ActionRow>(
    `SELECT ${columns} FROM operator_actions WHERE response IS NULL ORDER BY at, id LIMIT ?`,
    BigInt(limit),
  );
  return rows.map(({ id, subject, operator, reason, at }) => ({
    idempotencyKey: id,
    subject,
    operator,
    reason,
    at: readTime(at),
  }));
}

/** The note for the transfer of a refund: of the newest refund of a payment that an operator wanted. */
export async function refundNote(tx: Tx, paymentId: string): Promise<string | undefined> {
  const row = await tx.get<ActionRow>(
    `SELECT ${columns} FROM operator_actions WHERE subject = ? AND kind = 'refund' ORDER BY at DESC, id LIMIT 1`,
    paymentId,
  );
  return row && `${actionNote({ ...row, idempotencyKey: row.id })} (${actionChangeId(row.id)})`;
}

const columns = "id, kind, subject, winc, operator, reason, at, response";

type ActionRow = Readonly<{
  id: string;
  at: bigint;
  kind: string;
  subject: string;
  winc: bigint;
  operator: string;
  reason: string;
  response: string | null;
}>;

async function earlierResponse(tx: Tx, action: OperatorAction): Promise<"waiting" | JsonObject> {
  const row = await tx.get<ActionRow>(`SELECT ${columns} FROM operator_actions WHERE id = ?`, action.idempotencyKey);
  assert(row !== undefined, "an action whose key is taken has a row");
  const isSame =
    row.kind === action.kind &&
    row.subject === action.subject &&
    row.winc === action.winc &&
    row.operator === action.operator &&
    row.reason === action.reason;
  if (!isSame) throw new Failure("idempotency_conflict", { idempotencyKey: action.idempotencyKey });
  return responseIn(row) ?? "waiting";
}

function responseIn(row: ActionRow | undefined): JsonObject | undefined {
  if (row === undefined || row.response === null) return undefined;
  const response = readJson(row.response);
  assert(isJsonObject(response), "the response of an action is an object");
  return response;
}
