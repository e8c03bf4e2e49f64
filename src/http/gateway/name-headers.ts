/**
 * Response headers of names.
 * Source: docs/reference/gateway.md#names-of-the-registry.
 * @module
 */
import type { ResolvedName } from "../../gateway/names/names.ts";

/** The headers of a name, for programs that follow it. */
export function nameHeaders({ name, record, resolvedAt }: ResolvedName): Record<string, string> {
  const { id, ttlSeconds, processId, index, limit } = record;
  return {
    "X-ArNS-Name": name.text,
    "X-ArNS-Basename": name.base,
    "X-ArNS-Record": name.record,
    "X-ArNS-Resolved-Id": id,
    "X-ArNS-TTL-Seconds": String(ttlSeconds),
    "X-ArNS-Resolved-At": String(resolvedAt),
    ...(processId === undefined ? {} : { "X-ArNS-Process-Id": processId }),
    ...(limit === undefined ? {} : { "X-ArNS-Undername-Limit": String(limit) }),
    ...(index === undefined ? {} : { "X-ArNS-Record-Index": String(index) }),
  };
}

/** @param secondsMax - Limit by the response itself. */
export function nameCacheControl({ keepSeconds }: ResolvedName, secondsMax = keepSeconds): string {
  return `public, max-age=${Math.min(keepSeconds, secondsMax)}`;
}
