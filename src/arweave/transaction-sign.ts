/**
 * Creates signed transactions, as the JSON of nodes.
 * @module
 */
import { decodeBase64url, encodeBase64url } from "../lib/base64url.ts";
import { writeJson } from "../lib/json.ts";
import { idOfSignature } from "./id.ts";
import { dataRootOf, type TailRule } from "./merkle.ts";
import { encodeTags, type Tag } from "./tags.ts";
import { readTransaction, type SignedFields, type Transaction, transactionMessage } from "./transaction.ts";
import type { Wallet } from "./wallet.ts";
import { malformed } from "./wire.ts";

/** The fields of a transaction to sign; omitted fields are empty. */
export type UnsignedTransaction = Readonly<{
  format: 1 | 2;
  /** The anchor, base64url. */
  lastTx: string;
  reward: bigint;
  tags?: readonly Tag[];
  target?: string;
  quantity?: bigint;
  denomination?: bigint;
  /** The data itself, carried in the transaction; format 2 may state size and root instead. */
  data?: Uint8Array;
  /** Size and root of data that is posted as chunks. */
  stated?: Readonly<{ dataSize: number; dataRoot: Uint8Array }>;
  /** How `data` is split; for data in a transaction nodes accept only the plain rule. */
  tailRule?: TailRule;
}>;

/**
 * Signs a transaction.
 *
 * @returns The transaction as parsed from its JSON (`text`).
 * @throws Failure `malformed_input` when a field is invalid.
 */
export function signTransaction(unsigned: UnsignedTransaction, wallet: Wallet): Transaction {
  const data = unsigned.data ?? new Uint8Array(0);
  const fields = fieldsOf(unsigned, data, wallet);
  const signature = wallet.sign(transactionMessage(fields, data));
  return readTransaction(writeTransaction(fields, data, signature));
}

/** Writes signed fields as the JSON of a node, keys in its order. */
function writeTransaction(fields: SignedFields, data: Uint8Array, signature: Uint8Array): string {
  const tags = fields.tags.map(({ name, value }) => ({
    name: encodeBase64url(name),
    value: encodeBase64url(value),
  }));
  return writeJson({
    format: fields.format,
    id: idOfSignature(signature),
    last_tx: encodeBase64url(fields.lastTx),
    owner: fields.signatureType === "rsa" ? encodeBase64url(fields.owner) : "",
    tags,
    target: encodeBase64url(fields.target),
    quantity: fields.quantity.toString(),
    data: encodeBase64url(data),
    data_size: fields.dataSize.toString(),
    data_tree: [],
    data_root: encodeBase64url(fields.dataRoot),
    reward: fields.reward.toString(),
    signature: encodeBase64url(signature),
    ...(fields.denomination > 0n ? { denomination: fields.denomination.toString() } : {}),
  });
}

function fieldsOf(unsigned: UnsignedTransaction, data: Uint8Array, wallet: Wallet): SignedFields {
  const stated = unsigned.stated ?? { dataSize: data.length, dataRoot: rootOf(unsigned, data) };
  return {
    format: unsigned.format,
    signatureType: wallet.type,
    owner: wallet.owner,
    target: textBytes("target", unsigned.target ?? ""),
    quantity: unsigned.quantity ?? 0n,
    reward: unsigned.reward,
    lastTx: textBytes("last_tx", unsigned.lastTx),
    tags: encodeTags(unsigned.tags ?? []),
    dataSize: stated.dataSize,
    dataRoot: stated.dataRoot,
    denomination: unsigned.denomination ?? 0n,
  };
}

function rootOf(unsigned: UnsignedTransaction, data: Uint8Array): Uint8Array {
  if (unsigned.format === 1 || data.length === 0) return new Uint8Array(0);
  return dataRootOf(data, unsigned.tailRule ?? "plain");
}

function textBytes(name: string, text: string): Uint8Array {
  const bytes = decodeBase64url(text);
  if (bytes === undefined) throw malformed(`${name} is not canonical base64url`);
  return bytes;
}
