/**
 * The chain's clockwork between blocks: hashes that can only be computed one after the other.
 *
 * On the main net a step takes a second; here its difficulty is 1, so that a step is 25 hashes. The block's fields are
 * those of the chain, and the steps of successive blocks continue each other.
 * Source: ArweaveTeam/arweave, ar_vdf (step_number_to_salt_number, compute).
 * @module
 */
import { createHash } from "node:crypto";
import { writeUnsignedFixed } from "../../lib/bytes.ts";

/** Hashes in a row that are published within a step. */
const checkpointsPerStep = 25;

/** One step. */
export type DelayStep = Readonly<{
  output: Uint8Array; // 32 bytes, the last checkpoint
  checkpoints: readonly Uint8Array[]; // newest first
}>;

/**
 * Computes a step from the one before.
 *
 * @param step - Number of the step to compute, 1 or more.
 * @param previousOutput - 32 bytes.
 */
export function delayStep(step: number, previousOutput: Uint8Array): DelayStep {
  const firstSalt = step === 1 ? 0 : (step - 2) * checkpointsPerStep + 1;
  const checkpoints: Uint8Array[] = [];
  let output = previousOutput;
  for (let index = 0; index < checkpointsPerStep; index += 1) {
    const salt = writeUnsignedFixed(BigInt(firstSalt + index), 32);
    output = createHash("sha256").update(salt).update(output).digest();
    checkpoints.unshift(output);
  }
  return { output, checkpoints };
}
