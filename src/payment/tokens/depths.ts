/**
 * How deep a transaction must lie: to be credited, and to be left alone afterwards.
 *
 * The first is a rule that an operator can replace. The second is how far back each chain has ever gone, or says that
 * it can go: nodes of the native chain keep 50 blocks in consensus; Ethereum is final after two epochs of 32; Polygon
 * has gone back 157 blocks; Base is as final as the Ethereum blocks that hold its batches, some 15 minutes.
 * Source: docs/reference/payment.md#confirmations.
 * @module
 */
import { atLeast } from "../../lib/bounds.ts";
import { readCount } from "../../store/ledger/ledger-database.ts";
import { type Chain, chainOf, type Token } from "../addresses.ts";
import type { PriceRules } from "../prices/rules.ts";

const finalConfirmations: Readonly<Record<Chain, number>> = {
  native: 50,
  ethereum: 96,
  polygon: 300,
  base: 900,
  solana: 1,
  kyve: 1,
};

/** Blocks on top that a token needs of which the rules say nothing. */
const blocksOnTopOtherwise = 18n;

/**
 * The depths of a token in confirmations, 1 for a transaction in the newest block.
 *
 * @param blocksOnTop - In place of what the rules say.
 */
export function depthsOf(
  token: Token,
  rules: Pick<PriceRules, "tokens">,
  blocksOnTop?: number,
): Readonly<{ confirmations: number; finalConfirmations: number }> {
  const ruled = readCount(rules.tokens.get(token)?.confirmations ?? blocksOnTopOtherwise);
  const confirmations = (blocksOnTop ?? ruled) + 1;
  const final = finalConfirmations[chainOf(token)];
  return { confirmations, finalConfirmations: atLeast(final, confirmations) };
}
