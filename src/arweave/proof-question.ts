/**
 * What a proof is checked with, and what is noted on the way.
 * @module
 */
import type { Address, BlockHash, Id } from "./id.ts";
import type { Proof } from "./proof.ts";

/** What the asker believes: a block, given by hand; or nothing but that the block shown is the chain's. */
export type Anchor = Readonly<
  | { kind: "none" }
  | { kind: "hash"; hash: BlockHash }
  /** The JSON of a block, instead of the one shown. */
  | { kind: "block"; text: string }
  /** 32 bytes. */
  | { kind: "tx root"; txRoot: Uint8Array }
>;

/** All of the content where only a part was asked for: itself, or of an item the 48 bytes that are signed. */
export type WholeContent = Readonly<{ kind: "bytes"; bytes: Uint8Array } | { kind: "message"; message: Uint8Array }>;

/** A proof, and what it is to be checked with. */
export type ProofQuestion = Readonly<{
  id: Id;
  proof: Proof;
  anchor: Anchor;
  /** The bytes of `proof.range`. */
  bytes: Uint8Array;
  /**
   * Who must have signed. An ECDSA transaction does not state its owner, so that its signature fits any header, as
   * somebody else's: without this its content is never signed.
   */
  owner?: Address;
  /**
   * Needed beside a part of an item, or of a transaction of format 1, whose signatures are over all of it. A message
   * is the deep hash over the very header that the proof shows (`provenHeader`, `createItemHash`).
   */
  whole?: WholeContent;
}>;

/** What a step is about. */
export type ProofStepName = "subject" | "block" | "transaction" | "place" | "chunks" | "bundles" | "signature";

/** What was shown, in a sentence. */
export type ProofStep = Readonly<{ step: ProofStepName; says: string }>;

/** What is noted while a proof is checked; a step that fails throws Failure `malformed_input` with `context.reason`. */
export type ProofNotes = Readonly<{ steps: ProofStep[]; trusted: string[]; open: string[] }> & {
  /** The step that is under way. */
  step: ProofStepName;
};

/** All of the content, when it is at hand. */
export function wholeOf({ proof, bytes, whole }: ProofQuestion): Uint8Array | undefined {
  if (whole?.kind === "bytes") return whole.bytes;
  return bytes.length === proof.size ? bytes : undefined;
}
