/**
 * Parses approval tags of a data item: the signer allows another account to spend credits, or revokes this.
 * Source: docs/reference/upload.md#approvals-by-tags.
 * @module
 */
import type { Id } from "../../arweave/id.ts";
import { type Tag, tagValue } from "../../arweave/tags.ts";
import { readWinc } from "../../arweave/winston.ts";
import { Failure } from "../../failures.ts";
import { readAddress, type UserAddress } from "../../payment/addresses.ts";
import type { ApprovalRequest, RevocationRequest } from "../../payment/credits/approvals.ts";

export type ApprovalChange =
  | Readonly<{ kind: "give"; request: ApprovalRequest }>
  | Readonly<{ kind: "revoke"; request: RevocationRequest }>;

/** A longer approval has no end: 100 years. Seconds. */
const secondsMax = 100 * 366 * 86_400;

/**
 * Reads the approval or revocation in an item's tags, if there is one.
 *
 * @param payer - The account of the signer. @param now - Start of the approval. Unix milliseconds.
 * @throws Failure `upload_rejected` for invalid tags, so that nothing is charged for an unintended item.
 */
export function readApprovalChange(
  id: Id,
  tags: readonly Tag[],
  payer: UserAddress,
  now: number,
): ApprovalChange | undefined {
  const given = tagValue(tags, "x-approve-payment");
  const revoked = tagValue(tags, "x-delete-payment-approval");
  if (given !== undefined && revoked !== undefined)
    throw invalidApproval("create", "one item cannot both approve and revoke");
  if (given !== undefined) {
    const approved = addressIn(given);
    if (approved === undefined) throw invalidApproval("create", "Invalid approved address");
    const request = { approvalId: id, payer, approved };
    return { kind: "give", request: { ...request, winc: amountIn(tags), expiresAt: expiryIn(tags, now) } };
  }
  if (revoked === undefined) return undefined;
  const approved = addressIn(revoked);
  if (approved === undefined) throw invalidApproval("revoke", "Invalid approved address");
  return { kind: "revoke", request: { payer, approved, revokeId: id } };
}

function addressIn(text: string): UserAddress | undefined {
  return readAddress(text)?.address;
}

function amountIn(tags: readonly Tag[]): bigint {
  const text = tagValue(tags, "x-amount");
  if (text === undefined)
    throw new Failure("upload_rejected", { reason: "Approval x-amount tag missing a winc value!" });
  const amount = readWinc(text);
  if (amount === undefined || amount === 0n)
    throw invalidApproval("create", "the tag x-amount is not a valid winc amount");
  return amount;
}

function expiryIn(tags: readonly Tag[], now: number): number | undefined {
  const text = tagValue(tags, "x-expires-seconds");
  if (text === undefined) return undefined;
  const seconds = /^\d{1,12}$/.test(text) ? Number(text) : 0;
  if (seconds < 1) throw invalidApproval("create", "the tag x-expires-seconds is not a valid number of seconds");
  return seconds > secondsMax ? undefined : now + seconds * 1_000;
}

/** The failure of a creation or revocation. @param why - Follows ` : `, which the published clients expect. */
export function invalidApproval(what: "create" | "revoke", why: string): Failure {
  return new Failure("upload_rejected", { reason: `Unable to ${what} delegated payment approval : ${why}` });
}
