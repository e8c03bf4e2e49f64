/**
 * Transactions: parses their JSON within limits, and verifies id, signature and the limits of nodes. Balance, fee and
 * anchor depend on the state of the chain and are not checked here.
 *
 * Format 1 signs its concatenated fields and its data. Format 2 signs a deep hash, which covers the data by its root. A
 * denomination above 0 comes first, and makes the message of format 1 a deep hash too. ECDSA omits the owner, which is
 * recovered from the signature.
 * Source: docs/reference/formats.md#transactions.
 * @module
 */
import { assert } from "../lib/assert.ts";
import { decodeBase64url, encodeBase64url } from "../lib/base64url.ts";
import { concatBytes, utf8Bytes } from "../lib/bytes.ts";
import { sha256 } from "../lib/hash.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../lib/json.ts";
import { createRsaPssCheck } from "../lib/rsa.ts";
import { compressPoint, hasLowS, secp256k1 } from "../lib/secp256k1.ts";
import { createBlobHash, type DeepHashChunk, deepHash, deepHashList } from "./deep-hash.ts";
import { type Address, addressFromBytes, addressOf, type Id, idFromBytes, idOfSignature, isAddress } from "./id.ts";
import { dataRootOf } from "./merkle.ts";
import { invalid, type Verdict, valid } from "./signers/scheme.ts";
import { decodeTags, type RawTag, type Tag } from "./tags.ts";
import { type Winston, winston } from "./winston.ts";
import {
  bytesField,
  exactBytesField,
  integerField,
  listField,
  malformed,
  readBytes,
  readFields,
  textField,
} from "./wire.ts";

/** A transaction, parsed but not verified (`verifyTransaction`). Texts are canonical base64url unless noted. */
export type Transaction = Readonly<{
  format: 1 | 2;
  id: Id;
  /** The anchor: a transaction id, a block hash, or "". */
  lastTx: string;
  /** The public key; for ECDSA the 33 bytes recovered from the signature. */
  owner: string;
  ownerAddress: Address;
  signatureType: "rsa" | "ecdsa";
  tags: readonly Tag[];
  rawTags: readonly RawTag[];
  /** The recipient: an address or "". Without a quantity the chain accepts other texts of up to 32 bytes. */
  target: string;
  quantity: Winston;
  reward: Winston;
  /** Bytes of data; of format 1 the size of the data itself, not the stated size. */
  dataSize: number;
  /** "" without data, and always for format 1 (`treeRootOf`). */
  dataRoot: string;
  /** The data itself: of format 1 always (but see `readTransactionHeader`), of format 2 in some posts; else "". */
  data: string;
  signature: string;
  /** Decimal; "" when absent, which means 0. */
  denomination: string;
  /** The original JSON. */
  text: string;
}>;

/** Most bytes of data inside a transaction. */
export const transactionDataSizeMax = 10 * 2 ** 20;

/** Most characters of a transaction's JSON: the data as base64url, and all other fields. */
export const transactionTextSizeMax = 15 * 2 ** 20;

/** Bytes of an ECDSA signature: r, s and the recovery number. */
export const ecdsaSignatureSize = 65;

const anchorSizeMax = 48;
const keySizeMax = 512;
const addressSize = 32;
/** Most bytes of all names and values; also the most tags, because a tag may be empty. */
const tagsSizeMax = 2_048;
const amountDigitsMax = 120;
const dataSizeDigitsMax = 21;
const denominationDigitsMax = 8;
const noBytes = new Uint8Array(0);

/**
 * Reads a transaction's JSON.
 *
 * @param text - At most `transactionTextSizeMax` characters.
 * @throws Failure `malformed_input` with `context.reason`.
 */
export function readTransaction(text: string): Transaction {
  return readWith(text, sizeOfOwnData);
}

/**
 * Reads a transaction without its data: its JSON has `"data":""`, and states the data's size also in format 1.
 * Verification needs the data (`createSignatureCheck`).
 *
 * @param text - At most `transactionTextSizeMax` characters.
 * @throws Failure `malformed_input` with `context.reason`.
 */
export function readTransactionHeader(text: string): Transaction {
  return readWith(text, (fields, data) => (data.length === 0 ? readDataSize(fields) : sizeOfOwnData(fields, data)));
}

function readWith(text: string, firstFormatSize: (fields: JsonObject, data: Uint8Array) => number): Transaction {
  const fields = readFields(text, transactionTextSizeMax);
  const format = readFormat(fields["format"]);
  const signature = bytesField(fields, "signature", keySizeMax);
  const owner = bytesField(fields, "owner", keySizeMax);
  const data = bytesField(fields, "data", transactionDataSizeMax);
  const signed: SignedFields = {
    format,
    signatureType: owner.length === 0 ? "ecdsa" : "rsa",
    owner,
    target: readTarget(fields),
    quantity: integerField(fields, "quantity", amountDigitsMax),
    reward: integerField(fields, "reward", amountDigitsMax),
    lastTx: bytesField(fields, "last_tx", anchorSizeMax),
    tags: readTags(fields),
    dataSize: format === 1 ? firstFormatSize(fields, data) : readDataSize(fields),
    dataRoot: format === 1 ? noBytes : bytesField(fields, "data_root", addressSize),
    denomination: readDenomination(fields),
  };
  const key = signed.signatureType === "rsa" ? owner : recoverOwner(signed, signature);
  return {
    format,
    id: idFromBytes(exactBytesField(fields, "id", addressSize)),
    lastTx: textField(fields, "last_tx"),
    owner: encodeBase64url(key),
    ownerAddress: transactionOwnerAddress(key),
    signatureType: signed.signatureType,
    tags: decodeTags(signed.tags),
    rawTags: signed.tags,
    target: textField(fields, "target"),
    quantity: winston(signed.quantity),
    reward: winston(signed.reward),
    dataSize: signed.dataSize,
    dataRoot: encodeBase64url(signed.dataRoot),
    data: textField(fields, "data"),
    signature: textField(fields, "signature"),
    denomination: signed.denomination === 0n ? "" : signed.denomination.toString(),
    text,
  };
}

/** The fields that a transaction's signature covers, as bytes, except the data of format 1. */
export function signedFieldsOf(transaction: Transaction): SignedFields {
  return {
    format: transaction.format,
    signatureType: transaction.signatureType,
    owner: bytesOf(transaction.owner),
    target: targetBytes(transaction.target),
    quantity: transaction.quantity,
    reward: transaction.reward,
    lastTx: bytesOf(transaction.lastTx),
    tags: transaction.rawTags,
    dataSize: transaction.dataSize,
    dataRoot: bytesOf(transaction.dataRoot),
    denomination: transaction.denomination === "" ? 0n : BigInt(transaction.denomination),
  };
}

/**
 * The data root of a transaction in its block's tree, as base64url: computed for format 1 (also without data), the
 * stated one for format 2. Hashes all data of format 1.
 */
export function treeRootOf(transaction: Transaction): string {
  return transaction.format === 1
    ? encodeBase64url(dataRootOf(bytesOf(transaction.data), "plain"))
    : transaction.dataRoot;
}

/** The address of a transaction's owner. A key of 32 bytes is its own address, a rule from the first blocks. */
export function transactionOwnerAddress(owner: Uint8Array): Address {
  return owner.length === addressSize ? addressFromBytes(owner) : addressOf(owner);
}

/** An address may have any last character: a signature covers its 32 bytes, and accounts are compared as text. */
function readTarget(fields: JsonObject): Uint8Array {
  const { target } = fields;
  return typeof target === "string" && isAddress(target)
    ? targetBytes(target)
    : bytesField(fields, "target", addressSize);
}

function targetBytes(target: string): Uint8Array {
  return Buffer.from(target, "base64url");
}

function readFormat(value: JsonValue | undefined): 1 | 2 {
  if (value === undefined || value === 1 || value === "1") return 1;
  if (value === 2 || value === "2") return 2;
  throw malformed("format is neither 1 nor 2");
}

function readTags(fields: JsonObject): RawTag[] {
  let quota = tagsSizeMax;
  return listField(fields, "tags", tagsSizeMax).map((tag) => {
    if (!isJsonObject(tag) || Object.keys(tag).length !== 2) throw malformed("a tag is not a name and a value");
    const name = readBytes(tag["name"], "a tag's name", quota);
    const value = readBytes(tag["value"], "a tag's value", quota - name.length);
    quota -= name.length + value.length;
    return { name, value };
  });
}

function readDataSize(fields: JsonObject): number {
  const size = integerField(fields, "data_size", dataSizeDigitsMax);
  if (size > BigInt(Number.MAX_SAFE_INTEGER)) throw malformed("data_size is above 2^53 - 1");
  return Number(size);
}

/** Clients state the size of format 1 as 0, and old files omit it; any other wrong size is invalid. */
function sizeOfOwnData(fields: JsonObject, data: Uint8Array): number {
  const stated = fields["data_size"] === undefined ? 0 : readDataSize(fields);
  if (stated !== 0 && stated !== data.length) throw malformed("data_size is not the size of data");
  return data.length;
}

function readDenomination(fields: JsonObject): bigint {
  if (fields["denomination"] === undefined) return 0n;
  const denomination = integerField(fields, "denomination", denominationDigitsMax);
  if (denomination === 0n) throw malformed("denomination is 0: expected 1 or more, or no denomination");
  return denomination;
}

/** The compressed key that made the signature. */
function recoverOwner(fields: SignedFields, signature: Uint8Array): Uint8Array {
  if (fields.format === 1) throw malformed("owner is empty, and format 1 has no ECDSA signatures");
  if (signature.length !== ecdsaSignatureSize) {
    throw malformed("owner is empty and signature is not the 65 bytes from which an owner can be recovered");
  }
  const hash = sha256(transactionMessage(fields, noBytes));
  const key = secp256k1.recover(signature.subarray(0, 64), signature[64] ?? 0, hash);
  if (key === undefined) throw malformed("owner is empty and cannot be recovered from signature");
  return compressPoint(key);
}

function bytesOf(text: string): Uint8Array {
  return decodeBase64url(text) ?? noBytes;
}

/** The signed fields, as bytes, except the data of format 1. */
export type SignedFields = Readonly<{
  format: 1 | 2;
  signatureType: "rsa" | "ecdsa";
  owner: Uint8Array;
  target: Uint8Array;
  quantity: bigint;
  reward: bigint;
  lastTx: Uint8Array;
  tags: readonly RawTag[];
  /** Of format 1 the size of the signed data. */
  dataSize: number;
  dataRoot: Uint8Array;
  denomination: bigint;
}>;

/** A message with data that arrives in pieces. */
export type MessageStream = Readonly<{
  /** Adds the next bytes of data; not called for format 2, which signs the data root. */
  update(piece: Uint8Array): void;
  /** Passes the rest on. Call it once, after exactly `dataSize` bytes. */
  finish(): void;
}>;

/**
 * The signed message. Signing hashes it once more (SHA-256).
 *
 * @param data - Of format 1; ignored for format 2.
 */
export function transactionMessage(fields: SignedFields, data: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [];
  const stream = streamMessage(fields, (part) => parts.push(part));
  if (fields.format === 1) stream.update(data);
  stream.finish();
  return concatBytes(parts);
}

/**
 * Creates the message in pieces.
 *
 * @param take - Called with the pieces in order.
 */
export function streamMessage(fields: SignedFields, take: (part: Uint8Array) => void): MessageStream {
  if (fields.format === 2) return secondFormat(fields, take);
  return fields.denomination > 0n ? hashedFirstFormat(fields, take) : joinedFirstFormat(fields, take);
}

function joinedFirstFormat(fields: SignedFields, take: (part: Uint8Array) => void): MessageStream {
  let come = 0;
  take(fields.owner);
  take(fields.target);
  return {
    update: (piece) => {
      come += piece.length;
      take(piece);
    },
    finish: () => {
      assert(come === fields.dataSize, "a message gets as much data as its transaction states");
      for (const part of [decimal(fields.quantity), decimal(fields.reward), fields.lastTx]) take(part);
      for (const { name, value } of fields.tags) {
        take(name);
        take(value);
      }
    },
  };
}

function hashedFirstFormat(fields: SignedFields, take: (part: Uint8Array) => void): MessageStream {
  const data = createBlobHash(fields.dataSize);
  return {
    update: data.update,
    finish: () => {
      const { denomination, owner, target, quantity, reward, lastTx, tags } = fields;
      const before = [decimal(denomination), owner, target].map(deepHash);
      const after = [decimal(quantity), decimal(reward), lastTx, pairs(tags)].map(deepHash);
      take(deepHashList([...before, data.digest(), ...after]));
    },
  };
}

function secondFormat(fields: SignedFields, take: (part: Uint8Array) => void): MessageStream {
  return {
    update: () => assert(false, "the data of format 2 is signed by its root"),
    finish: () => take(deepHash(secondFormatParts(fields))),
  };
}

function secondFormatParts(fields: SignedFields): DeepHashChunk[] {
  return [
    ...(fields.denomination > 0n ? [decimal(fields.denomination)] : []),
    utf8Bytes("2"),
    ...(fields.signatureType === "rsa" ? [fields.owner] : []),
    fields.target,
    decimal(fields.quantity),
    decimal(fields.reward),
    fields.lastTx,
    pairs(fields.tags),
    decimal(fields.dataSize),
    fields.dataRoot,
  ];
}

function pairs(tags: readonly RawTag[]): Uint8Array[][] {
  return tags.map(({ name, value }) => [name, value]);
}

function decimal(value: bigint | number): Uint8Array {
  return utf8Bytes(value.toString());
}

/** Verifies the signature of a transaction with data that arrives in pieces. */
export type SignatureCheck = Readonly<{
  /** Adds the next bytes of the data of format 1. */
  update(piece: Uint8Array): void;
  /** Returns the verdict on the signature alone. Call it once, after exactly `dataSize` bytes. */
  finish(): Verdict;
}>;

/** Digits of an amount in the first denomination; each later one adds three. */
const denominatedDigitsMax = 30;
const digitsPerDenomination = 3;

/** Characters of 32 bytes in base64url. */
const addressLength = 43;

const unsigned = invalid("signature is not the owner's over these fields");

/**
 * Verifies a transaction. One of format 1 must contain its data, which its signature covers.
 *
 * @returns Valid only when the id is the hash of the signature and the owner signed every field,
 *   for format 1 over the data too. About 70 µs for a key of 4,096 bits.
 */
export function verifyTransaction(transaction: Transaction): Verdict {
  const broken = brokenRule(transaction);
  if (broken !== undefined) return invalid(broken);
  if (!isNamedByItsSignature(transaction)) return invalid("id is not the SHA-256 of signature");
  const check = createSignatureCheck(transaction);
  if (transaction.format === 1) check.update(decodeBase64url(transaction.data) ?? noBytes);
  return check.finish();
}

/** Whether a transaction's id is the hash of its signature. */
export function isNamedByItsSignature({ id, signature }: Transaction): boolean {
  return idOfSignature(decodeBase64url(signature) ?? noBytes) === id;
}

/** Begins to verify a signature; only the data of format 1 is needed. */
export function createSignatureCheck(transaction: Transaction): SignatureCheck {
  return transaction.signatureType === "rsa" ? rsaCheck(transaction) : ecdsaCheck(transaction);
}

function brokenRule(transaction: Transaction): string | undefined {
  const { quantity, reward, target, format, dataSize, dataRoot } = transaction;
  const denomination = transaction.denomination === "" ? 0 : Number(transaction.denomination);
  const digitsMax = denominatedDigitsMax + digitsPerDenomination * denomination;
  if (quantity.toString().length > digitsMax) return "quantity has too many digits";
  if (reward.toString().length > digitsMax) return "reward has too many digits";
  if (quantity > 0n && target.length !== addressLength) return "quantity has no target address of 32 bytes";
  if (target === transaction.ownerAddress) return "target is the owner";
  if (format === 2 && (dataSize === 0) !== (dataRoot === "")) {
    return "data_root is given without data_size, or data_size without data_root";
  }
  return undefined;
}

function rsaCheck(transaction: Transaction): SignatureCheck {
  const fields = signedFieldsOf(transaction);
  const check = createRsaPssCheck(fields.owner);
  const message = streamMessage(fields, check.update);
  return {
    update: message.update,
    finish: () => {
      message.finish();
      return check.matches(decodeBase64url(transaction.signature) ?? noBytes) ? valid : unsigned;
    },
  };
}

function ecdsaCheck(transaction: Transaction): SignatureCheck {
  const fields = signedFieldsOf(transaction);
  const hash = new Bun.SHA256();
  const message = streamMessage(fields, (part) => hash.update(part));
  return {
    update: message.update,
    finish: () => {
      message.finish();
      const signature = decodeBase64url(transaction.signature) ?? noBytes;
      if (signature.length !== ecdsaSignatureSize) return invalid("signature does not have 65 bytes");
      if (!hasLowS(signature)) return invalid("signature has a high S");
      const digest = new Uint8Array(32);
      hash.digest(digest);
      return secp256k1.verify(signature.subarray(0, 64), digest, fields.owner) ? valid : unsigned;
    },
  };
}
