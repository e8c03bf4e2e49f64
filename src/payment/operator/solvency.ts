/**
 * Proof of solvency: the balances of clients at a moment as a Merkle-sum tree, its signed root, and proofs of
 * inclusion.
 *
 * The root is signed as a data item, so that publishing it is an upload. A ledger only grows: the balances of a past
 * moment are those of today less the later entries, so that a proof for an old root needs no stored tree.
 * Source: docs/reference/payment.md#proof-of-solvency.
 * @module
 */
import { checkItem } from "../../arweave/data-item.ts";
import { decodeBase64url, encodeBase64url } from "../../lib/base64url.ts";
import { concatBytes } from "../../lib/bytes.ts";
import { sha256 } from "../../lib/hash.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, readJson } from "../../lib/json.ts";
import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import { firstIdAt, user } from "../../store/ledger/transfers.ts";
import type { UserAddress } from "../addresses.ts";
import {
  buildTree,
  isSameNode,
  pathLengthMax,
  pathOf,
  rootFrom,
  rootOf,
  type SolvencyLeaf,
  type SolvencyTree,
  type SumNode,
} from "./solvency-tree.ts";

/** Root of the tree of balances at a moment; the payload of its data item. */
export type SolvencyRoot = Readonly<{
  /** The moment of the balances, Unix milliseconds. */
  at: number;
  /** Balances in the tree. */
  accounts: number;
  root: SumNode;
}>;

/** The tags of a root's data item. */
export const rootTags = [
  { name: "Content-Type", value: "application/json" },
  { name: "Type", value: "cairn-solvency" },
] as const;

const version = 1;

/** A root with a proof is small, however many accounts there are. Bytes. */
const itemBytesMax = 64 * 1_024;

/** Rows of one query. */
const rowsPerPage = 10_000;

/** A transfer may be written some seconds after its id was made; older balances no longer change. Milliseconds. */
export const settledMs = 5 * 60_000;

/** Accounts of clients. Those below zero owe, and are owed nothing. */
const clients = ["user", "escrow", "held", "gift"].map((kind) => `a.account LIKE '${kind}:%'`).join(" OR ");

/** The balances of a moment, with their tree. */
export type SolvencyBalances = Readonly<{ at: number; leaves: readonly SolvencyLeaf[]; tree: SolvencyTree }>;

/**
 * Reads the balances of clients above zero before a moment, in the order of their accounts.
 *
 * @param at - Unix milliseconds, at least `settledMs` ago: then balances no longer change between two pages.
 */
export async function readBalances(
  ledger: Pick<LedgerDatabase, "read">,
  at: number,
  secret: Uint8Array,
): Promise<SolvencyBalances> {
  const leaves: SolvencyLeaf[] = [];
  let after = "";
  for (;;) {
    const bounds = [firstIdAt(at), after, BigInt(rowsPerPage)];
    const rows = await ledger.read((tx) =>
      tx.all<{ account: string; winc: bigint }>(
        "SELECT a.account, a.balance - CAST(COALESCE((SELECT SUM(e.amount) FROM entries e " +
          "WHERE e.account = a.account AND e.transfer_id >= ?), 0) AS BIGINT) AS winc FROM accounts a " +
          `WHERE (${clients}) AND a.account > ? ORDER BY a.account LIMIT ?`,
        ...bounds,
      ),
    );
    for (const row of rows) if (row.winc > 0n) leaves.push({ ...row, salt: saltOf(row.account, secret) });
    if (rows.length < rowsPerPage) return balancesOf(at, leaves);
    after = rows.at(-1)?.account ?? "";
  }
}

export function balancesOf(at: number, leaves: readonly SolvencyLeaf[]): SolvencyBalances {
  return { at, leaves, tree: buildTree(leaves) };
}

function saltOf(account: string, secret: Uint8Array): Uint8Array {
  return sha256(concatBytes([secret, new TextEncoder().encode(account)]));
}

/** The root of balances. */
export function solvencyRoot({ at, leaves, tree }: SolvencyBalances): SolvencyRoot {
  return { at, accounts: leaves.length, root: rootOf(tree) };
}

/** The payload of a root's data item. */
export function writeRoot({ at, accounts, root }: SolvencyRoot): string {
  return JSON.stringify({ version, at, accounts, winc: root.winc.toString(), root: encodeBase64url(root.hash) });
}

/** The record of a signed root. @param item - The bytes of its data item. */
export function rootRecord(root: SolvencyRoot, id: string, item: Uint8Array): JsonObject {
  return { id, ...objectOf(writeRoot(root)), item: encodeBase64url(item) };
}

/** The proof that an account is in the tree of a signed root; undefined when it had no credits then. */
export function proveInclusion(
  { leaves, tree }: SolvencyBalances,
  address: UserAddress,
  item: string,
): JsonObject | undefined {
  const index = leaves.findIndex(({ account }) => account === user(address));
  const leaf = leaves[index];
  if (leaf === undefined) return undefined;
  const path = pathOf(tree, index).map(({ hash, winc }) => ({
    hash: encodeBase64url(hash),
    winc: winc.toString(),
  }));
  const { account, winc, salt } = leaf;
  return { version, account, winc: winc.toString(), salt: encodeBase64url(salt), index, path, item };
}

/** A verified root. */
export type VerifiedRoot = SolvencyRoot & Readonly<{ id: string; signer: string }>;

/** The verified root of a record, and the balance that the record proves, if it has a proof; or the fault. */
export type SolvencyVerdict =
  | Readonly<{ fault: string }>
  | Readonly<{
      fault: undefined;
      root: VerifiedRoot;
      included: Readonly<{ account: string; winc: bigint }> | undefined;
    }>;

/** Verifies the signature of a root, and the proof in the record, if it has one. Never throws. */
export function verifySolvency(record: JsonObject): SolvencyVerdict {
  const root = verifyRoot(record["item"]);
  if (typeof root === "string") return { fault: root };
  if (record["path"] === undefined) return { fault: undefined, root, included: undefined };
  const leaf = readLeaf(record);
  const path = isJsonArray(record["path"]) ? record["path"].map(readNode) : [];
  const { index } = record;
  const isPath = path.length <= pathLengthMax && path.every((node) => node !== undefined);
  if (leaf === undefined || !isPath || !isCount(index) || index >= root.accounts)
    return { fault: "the proof is malformed" };
  const computed = rootFrom(
    leaf,
    path.filter((node) => node !== undefined),
    { index, count: root.accounts },
  );
  if (computed === undefined || !isSameNode(computed, root.root))
    return { fault: "the proof does not lead to the signed root" };
  return { fault: undefined, root, included: { account: leaf.account, winc: leaf.winc } };
}

function verifyRoot(text: JsonValue | undefined): VerifiedRoot | string {
  const bytes = typeof text === "string" && text.length <= 2 * itemBytesMax ? decodeBase64url(text) : undefined;
  if (bytes === undefined) return "the record has no data item";
  const item = checkItem(bytes, "strict");
  if (item.kind === "invalid") return `the data item of the root is invalid: ${item.reason}`;
  const { header, data } = item;
  const isOurs = header.tags.some(({ name, value }) => name === "Type" && value === "cairn-solvency");
  const value = objectOf(new TextDecoder().decode(data));
  const hash = bytesIn(value["root"]);
  const winc = wincIn(value["winc"]);
  const { at, accounts } = value;
  if (
    !isOurs ||
    value["version"] !== version ||
    hash === undefined ||
    winc === undefined ||
    !isCount(at) ||
    !isCount(accounts)
  )
    return "the data item is not a root of solvency";
  return { at, accounts, root: { hash, winc }, id: header.id, signer: header.ownerAddress };
}

function readLeaf({ account, winc, salt }: JsonObject): SolvencyLeaf | undefined {
  const [amount, bytes] = [wincIn(winc), bytesIn(salt)];
  return typeof account === "string" && amount !== undefined && bytes !== undefined
    ? { account, winc: amount, salt: bytes }
    : undefined;
}

function readNode(value: JsonValue): SumNode | undefined {
  const { hash, winc } = isJsonObject(value) ? value : {};
  const [bytes, amount] = [bytesIn(hash), wincIn(winc)];
  return bytes !== undefined && amount !== undefined ? { hash: bytes, winc: amount } : undefined;
}

/** 32 bytes in base64url. */
function bytesIn(value: JsonValue | undefined): Uint8Array | undefined {
  const bytes = typeof value === "string" && value.length === 43 ? decodeBase64url(value) : undefined;
  return bytes?.length === 32 ? bytes : undefined;
}

function wincIn(value: JsonValue | undefined): bigint | undefined {
  return typeof value === "string" && /^(0|[1-9]\d{0,49})$/.test(value) ? BigInt(value) : undefined;
}

function isCount(value: JsonValue | undefined): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function objectOf(text: string): JsonObject {
  const value = readJson(text);
  return isJsonObject(value) ? value : {};
}
