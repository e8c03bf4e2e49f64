/**
 * Resolves names: blocked names fail; others come from the operator's file, or else from trusted gateways.
 * Source: docs/reference/gateway.md#names-of-the-registry.
 * @module
 */
import type { NameRecord } from "../../chain/name-gateways.ts";
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { BlockList } from "../../store/block-list.ts";
import { type Name, readName } from "./name.ts";
import type { StoredName, StoredNames } from "./name-cache.ts";
import type { NamesFile } from "./names-file.ts";

export type ResolvedName = Readonly<{
  name: Name;
  record: NameRecord;
  /** Milliseconds since the epoch. */
  resolvedAt: number;
  /** Remaining time to live for caches; 0 when expired. Seconds. */
  keepSeconds: number;
  /** Whether it is an undername beyond the limit of its base name. */
  isOverLimit: boolean;
}>;

export type NameMeaning =
  | Readonly<{ kind: "resolved"; resolved: ResolvedName }>
  | Readonly<{ kind: "absent" }>
  | Readonly<{ kind: "over limit" }>; // reported by a gateway without the target

export type Names = Readonly<{
  /**
   * @param text - From a host or a path; may be invalid.
   * @param hops - Number of gateways that forwarded the request.
   * @throws Failure `blocked`; `source_failed`, `source_timeout`, `busy` when no gateway responds.
   */
  resolve: (text: string, hops: number, signal: AbortSignal) => Promise<NameMeaning>;
}>;

export type NamesOptions = Readonly<{
  blockList: Pick<BlockList, "isBlockedName">;
  file: NamesFile | undefined;
  gateways: StoredNames | undefined;
  /** Whether undernames beyond the limit of their base name are distinguished. */
  isLimitEnforced: boolean;
  clock: Clock;
}>;

export function createNames({ blockList, file, gateways, isLimitEnforced, clock }: NamesOptions): Names {
  const meaningOf = (name: Name, { response, resolvedAt }: StoredName): NameMeaning => {
    if (response.kind === "rejected") throw new Failure("blocked", { name: name.text, by: "a trusted gateway" });
    if (response.kind !== "resolved") return response;
    const { record } = response;
    const { ttlSeconds, index, limit } = record;
    const isOverLimit = isLimitEnforced && index !== undefined && limit !== undefined && index > limit;
    const isOld = clock() >= resolvedAt + ttlSeconds * 1_000;
    const keepSeconds = isOld ? 0 : ttlSeconds;
    return { kind: "resolved", resolved: { name, record, resolvedAt, keepSeconds, isOverLimit } };
  };

  return {
    resolve: async (text, hops, signal) => {
      const name = readName(text);
      if (name === undefined) return { kind: "absent" };
      const blocked = [name.text, name.base].find((each) => blockList.isBlockedName(each));
      if (blocked !== undefined) throw new Failure("blocked", { name: name.text, blocked });
      // The file is checked on each request, so its records are never stale.
      const given = file?.find(name);
      if (given !== undefined) return meaningOf(name, { response: given, resolvedAt: clock() });
      if (gateways === undefined) return { kind: "absent" };
      return meaningOf(name, await gateways.find(name.text, hops, signal));
    },
  };
}
