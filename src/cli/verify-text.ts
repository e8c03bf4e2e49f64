/**
 * What `cairn verify` says: what was shown step by step, what had to be believed, and what is missing.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import type { ProofVerdict } from "../arweave/proof-verify.ts";
import { jsonText } from "../lib/printable.ts";
import type { ByteSpan } from "../lib/range.ts";
import { rowsText } from "./rows.ts";

/** What came of it. */
export type Verification = Readonly<{
  id: Id;
  outcome: ProofVerdict["outcome"] | "unavailable";
  /** Bytes of the whole content, and which of them it is about; absent when not even that is known. */
  size?: number;
  range?: ByteSpan;
  steps: ProofVerdict["steps"];
  fault?: Readonly<{ step: string; reason: string }>;
  trusted: readonly string[];
  open: readonly string[];
}>;

const headlines: Readonly<Record<Verification["outcome"], string>> = {
  proven: "proven",
  signed: "not proven: signed by its owner, but not shown to be in a block",
  placed: "not proven: these bytes are in a block, but not shown to be signed",
  refused: "not proven",
  unavailable: "not proven: the gateway gave no proof",
};

/** As text for people, or as one line of JSON. */
export function printVerification(verification: Verification, json: boolean): string {
  if (json) return `${jsonText(verification)}\n`;
  const { id, outcome, steps, fault, trusted, open } = verification;
  const rows: (readonly [string, string])[] = [
    ...steps.map(({ step, says }) => [step, says] as const),
    ...(fault === undefined ? [] : [["failed at", `${fault.step}: ${fault.reason}`] as const]),
    ...trusted.map((belief) => ["trusted", belief] as const),
    ...open.map((sentence) => ["not shown", sentence] as const),
  ];
  return `${headlines[outcome]}: ${id}${extent(verification)}\n${rowsText(rows, 12)}`;
}

/** A verdict without the fields that are not there. */
export function factsOf({ outcome, steps, fault, trusted, open }: ProofVerdict) {
  return { outcome, steps, trusted, open, ...(fault === undefined ? {} : { fault }) };
}

function extent({ size, range }: Verification): string {
  if (size === undefined || range === undefined) return "";
  const isWhole = range.start === 0 && range.end === size;
  return isWhole ? `, all ${size} bytes` : `, bytes ${range.start} to ${range.end - 1} of ${size}`;
}
