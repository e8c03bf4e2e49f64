/**
 * The chain of the processes that are killed: the same payments at every start, the first of them mined.
 * @module
 */
import { readAddress, type UserAddress } from "../../../src/payment/addresses.ts";
import { createScriptedChain, type ScriptedChain, testHash, transferOf } from "./scripted-chain.ts";

/** Makes it. @param mined - How many of the payments are in a block that is deep enough. */
export function killedChain(count: number, mined: number): ScriptedChain & Readonly<{ ids: readonly string[] }> {
  const chain = createScriptedChain({ confirmations: 2, finalConfirmations: 1_000 });
  const ids = Array.from({ length: count }, (_, index) => testHash(index + 1));
  for (const [index, id] of ids.entries())
    chain.send(id, { transfers: [transferOf(killedSender(index), BigInt(index + 1))] });
  chain.mine(1, ids.slice(0, mined));
  chain.mine(3, []);
  return { ...chain, ids };
}

/** Who sent the payment of that number. */
export function killedSender(index: number): UserAddress {
  const read = readAddress(`0x${(index + 4_096).toString(16).padStart(40, "0")}`, "ethereum");
  if (read === undefined) throw new Error("a number makes an address");
  return read.address;
}
