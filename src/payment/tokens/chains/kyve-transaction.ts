/**
 * A KYVE transaction as a node's REST API gives it: what its messages sent, by whom, and its memo.
 *
 * Only the messages of the transaction itself count (`MsgSend`, and `MsgMultiSend` with one input). What a module or
 * an authorization sends within another message is not a payment of the signer.
 * Source: the Cosmos SDK's cosmos.bank.v1beta1 and cosmos.tx.v1beta1.
 * @module
 */
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../../../lib/json.ts";
import { readCount } from "../../../store/ledger/ledger-database.ts";
import { readAddress, type UserAddress } from "../../addresses.ts";
import { destinationInText } from "../destinations.ts";
import { bySender, type MinedSight, type Outline } from "../sight.ts";

/** A transaction in a block. */
export type KyveTransaction = Readonly<{
  /** Upper case. */
  id: string;
  height: number;
  succeeded: boolean;
  moves: readonly KyveMove[];
  memo: string;
}>;

/** Coins of one denomination from one account to another. */
export type KyveMove = Readonly<{ from: string; to: string; denom: string; amount: bigint }>;

/** Messages of one transaction; a block's gas admits fewer. */
const messagesMax = 1_000;

/** Reads a transaction; `undefined` when it cannot be read. */
export function readKyveTransaction(
  tx: JsonValue | undefined,
  response: JsonValue | undefined,
): KyveTransaction | undefined {
  const { txhash, height: heightText, code } = objectOf(response);
  const { messages, memo } = objectOf(objectOf(tx)["body"]);
  const height = heightOf(heightText);
  if (typeof txhash !== "string" || height === undefined || typeof code !== "number") return undefined;
  if (!isJsonArray(messages) || messages.length > messagesMax) return undefined;
  return {
    id: txhash.toUpperCase(),
    height,
    succeeded: code === 0,
    moves: messages.flatMap(movesOf),
    memo: textOf(memo),
  };
}

/** Reads a height or a count, which are written as decimal text. */
export function heightOf(value: JsonValue | undefined): number | undefined {
  return typeof value === "string" && /^\d{1,15}$/.test(value) ? readCount(BigInt(value)) : undefined;
}

/** What a transaction pays an address. @param denom - Name of the coin's smallest unit. */
export function kyvePaid(
  { moves, memo }: KyveTransaction,
  address: UserAddress,
  denom: string,
): Pick<MinedSight, "transfers" | "outline"> {
  const received = moves.filter((move) => move.denom === denom && accountOf(move.to) === address);
  const shown = received[0] ?? moves.find((move) => move.denom === denom);
  const outline: Outline = { target: shown?.to ?? "", amount: shown?.amount ?? 0n };
  const sent = received.flatMap(({ from, amount }) => {
    const sender = accountOf(from);
    return sender === undefined ? [] : { sender, amount };
  });
  return { transfers: bySender(sent, destinationInText(memo)), outline };
}

function accountOf(text: string): UserAddress | undefined {
  return readAddress(text, "kyve")?.address;
}

function movesOf(message: JsonValue): readonly KyveMove[] {
  const { "@type": type, from_address, to_address, amount, inputs, outputs } = objectOf(message);
  if (type === "/cosmos.bank.v1beta1.MsgSend") return coinsOf(textOf(from_address), textOf(to_address), amount);
  if (type !== "/cosmos.bank.v1beta1.MsgMultiSend") return [];
  const senders = listOf(inputs).map((input) => textOf(objectOf(input)["address"]));
  const [sender] = senders;
  if (sender === undefined || senders.length > 1) return [];
  return listOf(outputs).flatMap((output) => {
    const { address, coins } = objectOf(output);
    return coinsOf(sender, textOf(address), coins);
  });
}

function coinsOf(from: string, to: string, coins: JsonValue | undefined): readonly KyveMove[] {
  return listOf(coins).map((coin) => {
    const { denom, amount } = objectOf(coin);
    return { from, to, denom: textOf(denom), amount: amountOf(amount) };
  });
}

/** Amounts are written as decimal text, of at most 256 bits. */
function amountOf(value: JsonValue | undefined): bigint {
  return typeof value === "string" && /^\d{1,78}$/.test(value) ? BigInt(value) : 0n;
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return isJsonArray(value) ? value : [];
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}
