/**
 * Finds and undoes double charges: uploads of one act of signing that were charged under two ids.
 *
 * Only versions before signing ids could make double charges. Rows of those versions have no signing id. Candidates
 * with the same owner, type, sizes and payload are compared by their signatures.
 * Source: docs/reference/signatures.md.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { signatureSchemes } from "../arweave/signature.ts";
import { isMalleable } from "../arweave/signing.ts";
import { assert } from "../lib/assert.ts";
import type { UserAddress } from "../payment/addresses.ts";
import type { Step } from "../payment/credits/approvals.ts";
import { partsOf, refundReservation } from "../payment/credits/reservations.ts";
import type { LedgerDatabase, Tx } from "../store/ledger/ledger-database.ts";
import { adjustment, escrow, type Leg, transfer, user } from "../store/ledger/transfers.ts";
import { findUpload, type Upload } from "./upload-rows.ts";

/** Reads the signing id of an upload from its bytes, or returns why they cannot be read. */
export type ReadSigning = (upload: Upload, signal: AbortSignal) => Promise<Id | Readonly<{ unread: string }>>;

/** An upload that repeats an earlier one. */
export type DoubleCharge = Readonly<{
  id: Id;
  firstId: Id;
  signingId: Id;
  /** Transfers that undo the charge. */
  transfers: readonly PlannedTransfer[];
  /** Reasons why it cannot be undone now, and effects that remain; sentences. */
  notes: readonly string[];
}>;

/** A transfer that undoes a part of a double charge. */
export type PlannedTransfer = Readonly<{
  reason: "charge" | "approval: unused" | "approval: spent";
  to: string;
  winc: bigint;
}>;

export type DoubleCharges = Readonly<{
  doubles: readonly DoubleCharge[];
  /** Signing ids that were read, by upload; the rows do not have them yet. */
  signings: ReadonlyMap<Id, Id>;
  /** Uploads that could not be compared, with the reason. */
  unread: readonly Readonly<{ id: Id; reason: string }>[];
}>;

const malleableTypes = signatureSchemes
  .map(({ type }) => type)
  .filter(isMalleable)
  .join(", ");

/** Candidates: rows of older versions that may be repetitions, and rows that only their content identifies (type 6). */
const candidates =
  "SELECT id FROM uploads WHERE failed_reason IS NULL AND double_of IS NULL AND " +
  `signature_type IN (${malleableTypes}) AND (signature_type = 6 AND signing_id IS NULL OR ` +
  "(signature_type, owner_address, header_size, size, digest) IN (" +
  "SELECT signature_type, owner_address, header_size, size, digest FROM uploads " +
  `WHERE failed_reason IS NULL AND double_of IS NULL AND signature_type IN (${malleableTypes}) ` +
  "GROUP BY signature_type, owner_address, header_size, size, digest " +
  "HAVING COUNT(*) > 1 AND COUNT(*) > COUNT(signing_id))) AND id > ? ORDER BY id LIMIT ?";

/** Rows that are read at once. */
const pageRows = 500n;

/** Finds double charges. Writes nothing. */
export async function findDoubleCharges(
  ledger: Pick<LedgerDatabase, "read">,
  readSigning: ReadSigning,
  signal: AbortSignal,
): Promise<DoubleCharges> {
  const signings = new Map<Id, Id>();
  const unread: { id: Id; reason: string }[] = [];
  const bySigning = new Map<Id, Upload[]>();
  for await (const upload of candidateUploads(ledger)) {
    const signing = upload.signingId ?? (await readSigning(upload, signal));
    if (typeof signing !== "string") {
      unread.push({ id: upload.id, reason: signing.unread });
      continue;
    }
    if (upload.signingId === undefined) signings.set(upload.id, signing);
    bySigning.set(signing, [...(bySigning.get(signing) ?? []), upload]);
  }
  const doubles: DoubleCharge[] = [];
  for (const [signingId, uploads] of bySigning) {
    const [first, ...others] = uploads.toSorted((left, right) => left.receivedAt - right.receivedAt);
    assert(first !== undefined, "a signing was read of an upload");
    for (const upload of others) doubles.push(await ledger.read((tx) => planUndo(tx, upload, first.id, signingId)));
  }
  return { doubles, signings, unread };
}

async function* candidateUploads(ledger: Pick<LedgerDatabase, "read">): AsyncGenerator<Upload> {
  for (let after = ""; ; ) {
    const rows = await ledger.read((tx) => tx.all<{ id: string }>(candidates, after, pageRows));
    for (const { id } of rows) {
      const upload = await ledger.read((tx) => findUpload(tx, id));
      if (upload !== undefined) yield upload;
    }
    const last = rows.at(-1);
    if (last === undefined) return;
    after = last.id;
  }
}

type GivenApproval = {
  paying_address: string;
  winc: bigint;
  pending: bigint;
  posted: bigint;
  state: string;
};

async function planUndo(tx: Tx, upload: Upload, firstId: Id, signingId: Id): Promise<DoubleCharge> {
  const transfers: PlannedTransfer[] = [];
  const notes: string[] = [];
  const paid = await tx.get<{ id: string; payer: UserAddress; winc: bigint }>(
    "SELECT id, payer, winc FROM reservations WHERE id = ? AND state = 'posted'",
    upload.reservationId ?? "",
  );
  for (const { payer, winc } of paid === undefined ? [] : await partsOf(tx, paid))
    transfers.push({ reason: "charge", to: payer, winc });
  const approval = await givenBy(tx, upload.id);
  if (approval !== undefined) {
    const { paying_address: to, winc, pending, posted, state } = approval;
    const unused = winc - pending - posted;
    if (pending > 0n) notes.push(`its approval holds ${pending} winc for uploads in progress: try again later`);
    if (state === "active" && unused > 0n) transfers.push({ reason: "approval: unused", to, winc: unused });
    if (posted > 0n) transfers.push({ reason: "approval: spent", to, winc: posted });
  }
  const revoked = await tx.all<{ id: string }>("SELECT id FROM approvals WHERE revoke_id = ?", upload.id);
  for (const { id } of revoked)
    notes.push(`it revoked approval ${id}: its owner must create it again if it should remain`);
  return { id: upload.id, firstId, signingId, transfers, notes };
}

async function givenBy(tx: Tx, id: string): Promise<GivenApproval | undefined> {
  return await tx.get<GivenApproval>(
    "SELECT paying_address, winc, pending, posted, state FROM approvals WHERE id = ?",
    id,
  );
}

/** Stores signing ids, so that no other encoding of these items is charged. */
export async function writeSignings(ledger: LedgerDatabase, signings: ReadonlyMap<Id, Id>): Promise<void> {
  for (const [id, signingId] of signings)
    await ledger.write((tx) =>
      tx.run("UPDATE uploads SET signing_id = ? WHERE id = ? AND signing_id IS NULL", signingId, id),
    );
}

/**
 * Undoes a double charge in one transaction: refunds the payers, and returns the unused part of the item's approval
 * to its owner. The spent part of the approval is returned too, at the operator's cost.
 *
 * @returns Whether the charge was undone: not twice, and not while its approval holds credits for uploads in progress.
 */
export async function undoDoubleCharge(
  ledger: LedgerDatabase,
  { id, firstId, signingId }: DoubleCharge,
  step: Step,
): Promise<boolean> {
  return await ledger.write(async (tx) => {
    const upload = await findUpload(tx, id);
    const approval = await givenBy(tx, id);
    if (upload === undefined || upload.state === "failed" || (approval?.pending ?? 0n) > 0n) return false;
    const changed = await tx.run(
      "UPDATE uploads SET winc = 0, reservation_id = NULL, signing_id = ?, double_of = ? " +
        "WHERE id = ? AND double_of IS NULL",
      ...[signingId, firstId, id],
    );
    if (changed === 0) return false;
    if (upload.reservationId !== undefined) await refundReservation(tx, upload.reservationId, step);
    if (approval !== undefined) await undoApproval(tx, id, approval, step);
    return true;
  });
}

async function undoApproval(tx: Tx, id: string, approval: GivenApproval, step: Step): Promise<void> {
  const { paying_address: payer, winc, posted, state } = approval;
  const at = step.now;
  const note = "given by another encoding of one signature";
  const back = async (kind: "approval_revoked" | "adjustment", from: Leg["account"], amount: bigint) => {
    if (amount === 0n) return;
    const legs = [
      { account: from, amount: -amount },
      { account: user(payer), amount },
    ];
    await transfer(tx, { id: step.makeId(), kind, at, changeId: id, note, legs });
  };
  if (state === "active") {
    await tx.run(
      "UPDATE approvals SET state = 'revoked', ended_at = ?, revoke_id = ? WHERE id = ?",
      BigInt(at),
      id,
      id,
    );
    await back("approval_revoked", escrow(id), winc - posted);
  }
  await back("adjustment", adjustment, posted);
}
