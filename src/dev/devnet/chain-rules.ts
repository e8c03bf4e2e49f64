/**
 * The rules that accept or reject a transaction, in the order of a node and with its error codes, and the fees.
 *
 * All faults of the transaction itself are collected; then its anchor is checked. Fees follow the chain's formula at a
 * constant price, so that tests know them. A byte costs about 820 winston, close to the main net; the smallest
 * transaction with data costs about 0.00022 AR.
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

/** The node's error codes of a transaction. */
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

export type Fault = Readonly<{ code: FaultCode; detail: string }>;

/** The node's error codes of an anchor. */
export type AnchorFault = "last_tx_in_mempool" | "tx_bad_anchor" | "tx_already_in_weave" | "tx_already_in_mempool";

/** The state of the chain that the rules depend on. */
export type RulesView = Readonly<{
  accounts: AccountView;
  isRecentBlock: (hash: string) => boolean; // one of the last 50
  isRecentTransaction: (id: string) => boolean; // in one of the last 50 blocks
  isPending: (id: string) => boolean;
}>;

/** The result of the expensive checks of signature and data, which run once. */
export type Finding = Readonly<{
  idIsHash: boolean;
  signatureIsValid: boolean;
  /** Whether data of format 1 ends with an ASCII digit. */
  endsWithDigit: boolean;
}>;

/** The finding of every accepted transaction. */
export const soundFinding: Finding = { idIsHash: true, signatureIsValid: true, endsWithDigit: false };

/** The only denomination of the chain; transactions may omit it. */
const denomination = 1;

/** Maximum number of tags of a transaction. */
export const tagsCountMax = 2_048;

/** Maximum size of all tag names and values of a transaction. Bytes. */
export const tagsBytesMax = 2_048;

const amountDigitsMax = 30;

/** Maximum data of a format 1 transaction, and of all of them in one block. Bytes. */
export const inlineDataBytesMax = 10 * 2 ** 20;

/**
 * Collects the faults of a transaction, in the order of a node; a valid transaction has none.
 *
 * @param accounts - The accounts before the transaction.
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

/** Checks the anchor of a transaction, and whether the transaction is known, in the order of a node. */
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
  return fault(reward >= least, "tx_too_cheap", `reward ${reward} winston, expected at least ${least}`);
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

/** Format 1 signs its fields without separators, so a byte must not be able to belong to the next field. */
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
  return fault(!ambiguous, "tx_malleable", "the reward without its first digit would still be sufficient");
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

/** The price in every block of the devnet. */
export const devnetPrice: StoragePrice = { pricePerGibMinute: 400n, kryderPlusRateMultiplier: 1n };

/**
 * The minimum fee of a transaction.
 *
 * @param dataSize - Bytes, 0 or more.
 * @param recipient - Whether the target has an account; "none" without a target.
 */
export function devnetFee(dataSize: bigint, recipient: "none" | "known" | "new"): Winston {
  return transactionFee(devnetPrice, dataSize, recipient);
}

/** The miner's share of a fee: a twentieth of the remainder, which goes to the endowment. */
export function minerShare(fee: bigint): bigint {
  return fee / 21n;
}
