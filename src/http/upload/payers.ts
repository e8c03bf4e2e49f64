/**
 * Who pays for an upload, as its headers say: `x-paid-by`, in any letter case, and `x-payment-directive`.
 * Source: docs/reference/upload.md#posting-an-item.
 * @module
 */
import { Failure } from "../../failures.ts";
import { readAddress, type UserAddress } from "../../payment/addresses.ts";
import { type PaymentDirective, paidByMax } from "../../payment/credits/reservations.ts";

/** Whose approvals pay, in this order, and whether the signer pays after them. */
export type Payers = Readonly<{ paidBy: readonly UserAddress[]; directive: PaymentDirective }>;

/** Reads who pays. @throws Failure `upload_rejected` {reason} for what is no list of addresses. */
export function payersOf(request: Request): Payers {
  return { paidBy: listedPayers(request), directive: directiveOf(request) };
}

function listedPayers(request: Request): UserAddress[] {
  const texts = (request.headers.get("x-paid-by") ?? "").split(",").map((text) => text.trim());
  const named = texts.filter((text) => text !== "");
  if (named.length > paidByMax)
    throw new Failure("upload_rejected", { reason: `x-paid-by names more than ${paidByMax} payers` });
  return named.map((text) => {
    const read = readAddress(text);
    if (read === undefined) throw new Failure("upload_rejected", { reason: "x-paid-by names no address" });
    return read.address;
  });
}

function directiveOf(request: Request): PaymentDirective {
  return request.headers.get("x-payment-directive") === "list-only" ? "list-only" : "list-or-signer";
}
