/**
 * All defences whose removal `bun run mutate` tries.
 * @module
 */
import type { Defence } from "./defence.ts";
import { formatDefences } from "./format-defences.ts";
import { operationDefences } from "./operation-defences.ts";
import { paymentDefences } from "./payment-defences.ts";
import { proofDefences } from "./proof-defences.ts";
import { readingDefences } from "./reading-defences.ts";
import { uploadDefences } from "./upload-defences.ts";

export const defences: readonly Defence[] = [
  ...formatDefences,
  ...proofDefences,
  ...readingDefences,
  ...operationDefences,
  ...paymentDefences,
  ...uploadDefences,
];
