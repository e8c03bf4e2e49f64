/**
 * Headers of uploads: payers (`x-paid-by` and `x-payment-directive`), tags of bytes that the service signs, and sizes.
 * Source: docs/reference/upload.md#posting-an-item; docs/reference/upload.md#paying-with-the-request.
 * @module
 */
import { type Tag, tagsFault } from "../../arweave/tags.ts";
import { Failure } from "../../failures.ts";
import { isJsonObject, type JsonValue, readJson } from "../../lib/json.ts";
import { readAddress, type UserAddress } from "../../payment/addresses.ts";
import { type PaymentDirective, paidByMax } from "../../payment/credits/reservations.ts";

/** Accounts whose approvals pay, in this order, and whether the signer pays after them. */
type Payers = Readonly<{ paidBy: readonly UserAddress[]; directive: PaymentDirective }>;

/** @throws Failure `upload_rejected` {reason} for an invalid list of addresses. */
export function payersOf(request: Request): Payers {
  return { paidBy: listedPayers(request), directive: directiveOf(request) };
}

function listedPayers(request: Request): UserAddress[] {
  const texts = (request.headers.get("x-paid-by") ?? "").split(",").map((text) => text.trim());
  const payers = texts.filter((text) => text !== "");
  if (payers.length > paidByMax)
    throw new Failure("upload_rejected", { reason: `x-paid-by lists more than ${paidByMax} addresses` });
  return payers.map((text) => {
    const read = readAddress(text);
    if (read === undefined) throw new Failure("upload_rejected", { reason: "x-paid-by contains an invalid address" });
    return read.address;
  });
}

function directiveOf(request: Request): PaymentDirective {
  return request.headers.get("x-payment-directive") === "list-only" ? "list-only" : "list-or-signer";
}

/**
 * Tags that only the service may write. The service signs the item, so approval tags would spend its own credits.
 * Compared in lower case.
 */
const reserved: ReadonlySet<string> = new Set([
  "data-item-authority",
  "x402-payer-address",
  "x-approve-payment",
  "x-amount",
  "x-expires-seconds",
  "x-delete-payment-approval",
]);

const defaultType = "application/octet-stream";

/** The tags of an item that the service signs. @throws Failure `upload_rejected` {reason}. */
export function dataTagsOf(request: Request): readonly Tag[] {
  const named = namedTags(request.headers.get("x-data-item-tags"));
  const type = request.headers.get("content-type") || defaultType;
  const typed = named.some(({ name }) => name === "Content-Type")
    ? named
    : [{ name: "Content-Type", value: type }, ...named];
  const tags = [...typed, { name: "Data-Item-Authority", value: "Cairn" }];
  const fault = tagsFault(tags);
  if (fault !== undefined) throw invalidTags(fault);
  return tags;
}

function namedTags(header: string | null): readonly Tag[] {
  if (header === null || header === "") return [];
  const list = readList(header);
  if (list === undefined) throw invalidTags("expected a JSON list of objects with name and value");
  const taken = list.find(({ name }) => reserved.has(name.toLowerCase()));
  if (taken !== undefined) throw invalidTags(`the tag ${JSON.stringify(taken.name)} is reserved for the service`);
  return list;
}

function readList(text: string): readonly Tag[] | undefined {
  const value = readJson(text);
  if (!Array.isArray(value)) return undefined;
  const tags = value.map(readTag).filter((tag) => tag !== undefined);
  return tags.length === value.length ? tags : undefined;
}

function readTag(value: JsonValue): Tag | undefined {
  if (!isJsonObject(value)) return undefined;
  const { name, value: text } = value;
  return typeof name === "string" && typeof text === "string" ? { name, value: text } : undefined;
}

function invalidTags(why: string): Failure {
  return new Failure("upload_rejected", { reason: `Invalid tags: ${why}` });
}

/** More digits than the size of any item, exact as a JavaScript number. */
const countPattern = /^\d{1,15}$/;

/** Reads a number of bytes. @returns Undefined for an invalid number. */
export function readCount(text: string | null | undefined): number | undefined {
  return text !== null && text !== undefined && countPattern.test(text) ? Number(text) : undefined;
}
