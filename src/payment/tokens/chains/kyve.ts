/**
 * Payments in KYVE.
 *
 * A block of the chain is final when it is made, so a credited payment is not watched afterwards. Payments that nobody
 * reported are found by the node's index of recipients. The index follows blocks with a delay, so the newest heights
 * are searched again.
 * Source: docs/decisions/074-token-payments.md.
 * @module
 */

import { atLeast, atMost } from "../../../lib/bounds.ts";
import type { Fault } from "../../../lib/http-client.ts";
import { isJsonObject, readJson, writeJson } from "../../../lib/json.ts";
import type { UserAddress } from "../../addresses.ts";
import type { Found, Sight, TokenChain } from "../sight.ts";
import { beginningOf } from "./beginning.ts";
import type { Depths } from "./evm-range.ts";
import type { KyveServer } from "./kyve-server.ts";
import { kyvePaid } from "./kyve-transaction.ts";

/** What payments in KYVE are read from. */
export type KyveChainOptions = Depths &
  Readonly<{
    address: UserAddress;
    /** Name of the coin's smallest unit. */
    denom: string;
    server: KyveServer;
  }>;

/** Heights searched again: a node's index is some blocks behind, and of several nodes one may be further behind. */
const blocksRepeated = 32;

/** Heights searched in one step. */
const blocksSearchedMax = 50_000;

/** Creates the chain. */
export function createKyveChain({ address, denom, server, ...depths }: KyveChainOptions): TokenChain {
  return {
    token: "kyve",
    addressType: "kyve",
    address,
    ...depths,
    look: (id, signal) => look(server, { address, denom }, id, signal),
    // Final blocks are not replaced.
    standing: () => Promise.resolve({ kind: "stands", confirmations: depths.finalConfirmations }),
    beginsAt: beginningOf,
    scan: (cursor, signal) => scan(server, address, cursor, signal),
  };
}

async function look(
  server: KyveServer,
  { address, denom }: Pick<KyveChainOptions, "address" | "denom">,
  id: string,
  signal: AbortSignal,
): Promise<Sight | Fault> {
  const found = await server.transaction(id, signal);
  if (found.kind === "trouble") return found;
  if (found.value === undefined) return { kind: "absent" };
  const latest = await server.height(signal);
  if (latest.kind === "trouble") return latest;
  const { height, succeeded } = found.value;
  return {
    kind: "mined",
    block: { height, hash: "" },
    // Of several nodes behind one address, the next one may be behind.
    confirmations: atLeast(latest.value - height + 1, 1),
    succeeded,
    ...kyvePaid(found.value, address, denom),
  };
}

/** Heights up to `height` are done. `page`, where present, is the next page of those up to `last`. */
type Mark = Readonly<{ from: number; height: number; last?: number; page?: number }>;

async function scan(
  server: KyveServer,
  recipient: UserAddress,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<Found | Fault> {
  const latest = await server.height(signal);
  if (latest.kind === "trouble") return latest;
  const mark = readMark(cursor);
  if (cursor === undefined || mark === undefined) {
    const begun: Mark = { from: latest.value + 1, height: latest.value };
    return { kind: "found", ids: [], cursor: writeJson(begun), hasMore: false };
  }
  const { from, height, page = 1 } = mark;
  const last = mark.last ?? atMost(latest.value, height + blocksSearchedMax);
  const first = atLeast(height + 1 - blocksRepeated, from);
  if (last < first) return { kind: "found", ids: [], cursor, hasMore: false };
  const found = await server.search({ recipient, first, last, page }, signal);
  if (found.kind === "trouble") return found;
  const { ids, hasMore: hasPage } = found.value;
  const next: Mark = hasPage ? { from, height, last, page: page + 1 } : { from, height: atLeast(last, height) };
  return {
    kind: "found",
    ids: [...new Set(ids)],
    cursor: writeJson(next),
    hasMore: hasPage || last < latest.value,
  };
}

function readMark(cursor: string | undefined): Mark | undefined {
  const mark = cursor === undefined ? undefined : readJson(cursor);
  if (!isJsonObject(mark)) return undefined;
  const { from, height, last, page } = mark;
  if (typeof from !== "number" || typeof height !== "number") return undefined;
  return typeof last === "number" && typeof page === "number" ? { from, height, last, page } : { from, height };
}
