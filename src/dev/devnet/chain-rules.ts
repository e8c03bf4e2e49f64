/**
 * The rules that accept or reject a transaction, in the node's order and with the node's names.
 *
 * First everything that is wrong with the transaction itself is collected; then its anchor is checked.
 *
 * Fees of the devnet: the chain's own formula at a price that never moves, so that a test knows what it pays.
 *
 * A byte costs about 820 winston, near the main net's; the smallest transaction with data about 0.00022 AR.
 * Source: ArweaveTeam/arweave, ar_tx (do_verify_v1, do_verify_v2), ar_tx_replay_pool (verify_anchor);
 * ArweaveTeam/arweave, ar_pricing (distribution of fees).
 * @module
 */
import { readAddress } from "../../arweave/id.ts";
import { type StoragePrice, transactionFee } from "../../arweave/pricing.ts";
import type { Transaction } from "../../arweave/transaction.ts";
import type { Winston } from "../../arweave/winston.ts";
import { decodedSize } from "../../lib/base64url.ts";
import { type AccountView, applyTransaction, createAccountOverlay } from "./accounts.ts";

/** The node's names for what can be wrong with a transaction by itself. */
export type FaultCode =
  | "invalid_denomination"
  | "quantity_negative"
  | "same_owner_as_target"
  | "tx_too_cheap"
  | "tx_fields_too_large"
  | "tx_id_not_valid"
  | "overspend"
  | "tx_signature_not_valid"
  | "tx_malleable"
  | "tx_data_size_negative"
  | "tx_data_size_data_root_mismatch"
  | "invalid_target_length";

/** One thing that is wrong, and in numbers how. */
export type Fault = Readonly<{ code: FaultCode; detail: string }>;

/** The node's names for what can be wrong with an anchor. */
export type AnchorFault = "last_tx_in_mempool" | "tx_bad_anchor" | "tx_already_in_weave" | "tx_already_in_mempool";

/** What the rules ask of the chain. */
export type RulesView = Readonly<{
  accounts: AccountView;
  isRecentBlock: (hash: string) => boolean; // one of the last 50
  isRecentTransaction: (id: string) => boolean; // in one of the last 50 blocks
  isPending: (id: string) => boolean;
}>;

/** What a walk over a transaction's signature and data found; made once, because it is the costly part. */
export type Finding = Readonly<{
  idIsHash: boolean;
  signatureIsValid: boolean;
  /** Of the data of format 1. */
  endsWithDigit: boolean;
}>;

/** What was found of each transaction that was taken. */
export const soundFinding: Finding = { idIsHash: true, signatureIsValid: true, endsWithDigit: false };

/** The chain's one denomination; transactions may leave it out or name it. */
const denomination = 1;

/** Tags of one transaction. */
export const tagsCountMax = 2_048;

/** Names and values of a transaction's tags together. */
export const tagsBytesMax = 2_048;

const amountDigitsMax = 30;

/** Data in the body of a format 1 transaction, and of all of them in one block. */
export const inlineDataBytesMax = 10 * 2 ** 20;

/**
 * Collects what is wrong with a transaction by itself, in the node's order. None means valid.
 *
 * @param accounts - As they are before the transaction.
 */
export function transactionFaults(transaction: Transaction, finding: Finding, accounts: AccountView): Fault[] {
  const given = transaction.denomination === "" ? 0 : Number(transaction.denomination);
  if (given > denomination) {
    return [{ code: "invalid_denomination", detail: `denomination ${given}, at most ${denomination}` }];
  }
  const { format } = transaction;
  const faults = [
    ownTargetFault(transaction),
    feeFault(transaction, accounts),
    amountFault(transaction),
    fault(finding.idIsHash, "tx_id_not_valid", "the id is not the SHA-256 of the signature"),
    overspendFault(transaction, accounts),
    fault(finding.signatureIsValid, "tx_signature_not_valid", "the owner did not sign these fields"),
    format === 1 ? malleabilityFault(transaction, finding, accounts) : undefined,
    format === 2 ? dataRootFault(transaction) : undefined,
    targetLengthFault(transaction),
  ];
  return faults.filter((found) => found !== undefined);
}

/** Checks a transaction's anchor and whether it is known already, in the node's order. */
export function anchorFault(transaction: Transaction, view: RulesView): AnchorFault | undefined {
  const { id, lastTx, ownerAddress } = transaction;
  if (lastTx !== "" && view.isPending(lastTx)) return "last_tx_in_mempool";
  if (view.accounts.get(ownerAddress)?.lastTx === lastTx) return undefined;
  if (!view.isRecentBlock(lastTx)) return "tx_bad_anchor";
  if (view.isRecentTransaction(id)) return "tx_already_in_weave";
  return view.isPending(id) ? "tx_already_in_mempool" : undefined;
}

function fault(holds: boolean, code: FaultCode, detail: string): Fault | undefined {
  return holds ? undefined : { code, detail };
}

function ownTargetFault({ ownerAddress, target }: Transaction): Fault | undefined {
  return fault(ownerAddress !== target, "same_owner_as_target", "owner and target are the same address");
}

function feeFault(transaction: Transaction, accounts: AccountView): Fault | undefined {
  const least = leastFee(transaction, accounts);
  const { reward } = transaction;
  return fault(reward >= least, "tx_too_cheap", `reward ${reward} winston, at least ${least} wanted`);
}

function leastFee({ dataSize, target }: Transaction, accounts: AccountView): bigint {
  if (target === "") return devnetFee(BigInt(dataSize), "none");
  const address = readAddress(target);
  const known = address !== undefined && accounts.get(address) !== undefined;
  return devnetFee(BigInt(dataSize), known ? "known" : "new");
}

/** The sizes of the other fields are checked when they are parsed. */
function amountFault({ quantity, reward }: Transaction): Fault | undefined {
  const digits = Math.max(`${quantity}`.length, `${reward}`.length);
  const detail = `an amount of ${digits} digits, at most ${amountDigitsMax}`;
  return fault(digits <= amountDigitsMax, "tx_fields_too_large", detail);
}

function overspendFault(transaction: Transaction, accounts: AccountView): Fault | undefined {
  const { ownerAddress, target, quantity, reward } = transaction;
  const after = createAccountOverlay(accounts);
  applyTransaction(after, transaction);
  const sender = after.get(ownerAddress);
  if (sender === undefined) return { code: "overspend", detail: `${ownerAddress} has no account` };
  if (sender.balance < 0n) {
    const held = accounts.get(ownerAddress)?.balance ?? 0n;
    return {
      code: "overspend",
      detail: `${ownerAddress} has ${held} winston and spends ${quantity + reward}`,
    };
  }
  if (target === "") return undefined;
  const address = readAddress(target);
  const recipient = address === undefined ? undefined : after.get(address);
  const exists = recipient !== undefined && (recipient.balance > 0n || recipient.lastTx !== "");
  return fault(exists, "overspend", `the target ${target} would be left without an account`);
}

/** Format 1 signs its fields run together, so that bytes must not be able to move from one field to the next. */
function malleabilityFault(
  transaction: Transaction,
  { endsWithDigit }: Finding,
  accounts: AccountView,
): Fault | undefined {
  const { target, quantity, reward } = transaction;
  if (transaction.denomination !== "" && transaction.denomination !== "0") return undefined;
  const targetSize = decodedSize(target);
  if (targetSize !== (quantity > 0n ? 32 : 0)) {
    return { code: "tx_malleable", detail: "a target without a quantity, or a quantity without a target" };
  }
  if (endsWithDigit) return { code: "tx_malleable", detail: "the data ends with an ASCII digit" };
  const shortened = BigInt(`${reward}`.slice(1) || "0");
  const ambiguous = reward >= 10n && shortened >= leastFee(transaction, accounts);
  return fault(!ambiguous, "tx_malleable", "the reward without its first digit would still suffice");
}

function dataRootFault({ dataSize, dataRoot }: Transaction): Fault | undefined {
  const matches = (dataSize === 0) === (dataRoot === "");
  return fault(matches, "tx_data_size_data_root_mismatch", `data_size ${dataSize}, data_root "${dataRoot}"`);
}

function targetLengthFault({ quantity, target }: Transaction): Fault | undefined {
  const size = decodedSize(target);
  const fits = size === 32 || (quantity === 0n && size < 32);
  return fault(fits, "invalid_target_length", `target of ${size} bytes`);
}

/** What every block of the devnet states. */
export const devnetPrice: StoragePrice = { pricePerGibMinute: 400n, kryderPlusRateMultiplier: 1n };

/**
 * The least that a transaction has to pay.
 *
 * @param dataSize - Bytes, 0 or more.
 * @param recipient - Whether the target has an account; "none" when there is no target.
 */
export function devnetFee(dataSize: bigint, recipient: "none" | "known" | "new"): Winston {
  return transactionFee(devnetPrice, dataSize, recipient);
}

/** The miner's part of a fee, which is a twentieth of the rest; the rest goes to the endowment. */
export function minerShare(fee: bigint): bigint {
  return fee / 21n;
}
