/**
 * Transactions as clients of Solana send them: the signatures checked, the message read.
 * Source: https://solana.com/docs/core/transactions (legacy messages).
 * @module
 */
import { ed25519 } from "@noble/curves/ed25519.js";
import { encodeBase58 } from "../../../src/lib/base-encodings.ts";
import type { SolanaMove } from "./solana-node.ts";

/** What was sent: its first signature names it. */
export type SignedSolana = Readonly<{
  signature: string;
  payer: string;
  blockhash: string;
  moves: readonly SolanaMove[];
  memo: string | undefined;
}>;

const systemProgram = "1".repeat(32);
const memoProgram = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr";
/** The system program's number for a transfer. */
const transferInstruction = 2;

/** Reads a transaction. @returns Why it is rejected, where it is. */
export function readSignedSolana(bytes: Uint8Array): SignedSolana | string {
  const reader = createReader(bytes);
  const signatures = Array.from({ length: reader.length() }, () => reader.bytes(64));
  const message = reader.rest();
  const [signersCount = 0] = reader.bytes(3);
  const keys = Array.from({ length: reader.length() }, () => reader.bytes(32));
  const blockhash = encodeBase58(reader.bytes(32));
  if (signatures.length !== signersCount) return "it has not the signatures that it says";
  for (const [index, signature] of signatures.entries())
    if (!ed25519.verify(signature, message, keys[index] ?? new Uint8Array(32)))
      return "Transaction signature verification failure";
  const names = keys.map((key) => encodeBase58(key));
  const moves: SolanaMove[] = [];
  let memo: string | undefined;
  for (let left = reader.length(); left > 0; left -= 1) {
    const program = names[reader.byte()];
    const accounts = [...reader.bytes(reader.length())].map((index) => names[index] ?? "");
    const data = reader.bytes(reader.length());
    if (program === memoProgram) memo = new TextDecoder().decode(data);
    else if (program === systemProgram) moves.push(readTransfer(accounts, data));
    else return `the program ${program} is not here`;
  }
  const [first = new Uint8Array()] = signatures;
  return { signature: encodeBase58(first), payer: names[0] ?? "", blockhash, moves, memo };
}

function readTransfer([from = "", to = ""]: readonly string[], data: Uint8Array): SolanaMove {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  if (view.getUint32(0, true) !== transferInstruction) throw new Error("this node knows transfers alone");
  return { from, to, amount: view.getBigUint64(4, true) };
}

function createReader(all: Uint8Array) {
  let at = 0;
  const bytes = (count: number): Uint8Array => {
    if (at + count > all.length) throw new Error("the transaction is cut off");
    at += count;
    return all.slice(at - count, at);
  };
  const byte = (): number => bytes(1)[0] ?? 0;
  return {
    bytes,
    byte,
    rest: () => all.slice(at),
    /** A length in one to three bytes, seven bits each. */
    length: (): number => {
      let value = 0;
      for (let shift = 0; ; shift += 7) {
        const next = byte();
        value |= (next & 0x7f) << shift;
        if (next < 0x80) return value;
      }
    },
  };
}
