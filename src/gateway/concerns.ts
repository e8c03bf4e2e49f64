/**
 * Reasons for bad health, in sentences: free disk space, responding nodes, free threads.
 * Source: docs/reference/gateway.md#information-and-health.
 * @module
 */
import type { Nodes } from "../chain/nodes.ts";
import type { Extents } from "../store/extents/extents.ts";
import type { Pool } from "../threads/pool.ts";
import type { HealthCheck } from "./health.ts";

export type ConcernParts = Readonly<{
  nodes: Pick<Nodes, "all" | "sourceStatus">;
  extents: Pick<Extents, "hasSpace" | "stats">;
  /** Keyed by the name of their task. */
  pools: Readonly<Record<string, Pick<Pool<unknown>, "load">>>;
}>;

/** A node with a lower share of successful recent requests counts as failing; one failure alone does not suffice. */
const responsesShareMin = 0.5;

/** Jobs waiting for threads: more than a burst of requests causes. */
const jobsMax = 512;

export function createConcerns({ nodes, extents, pools }: ConcernParts): HealthCheck {
  const nodesSay = (): string[] => {
    const shares = new Map(nodes.sourceStatus().map(({ url, successShare }) => [url, successShare]));
    const isSilent = nodes.all.every(({ url }) => (shares.get(url) ?? 1) < responsesShareMin);
    return isSilent ? [`no node of the chain responds: ${nodes.all.map(({ url }) => url).join(", ")}`] : [];
  };
  const diskSays = (): string[] => {
    if (extents.hasSpace()) return [];
    const { bytes, freeBytes } = extents.stats();
    return [`the disk has no space for content, which takes ${bytes} bytes; ${freeBytes ?? 0} are free`];
  };
  const threadsSay = (): string[] =>
    Object.entries(pools).flatMap(([name, pool]) => {
      const { open } = pool.load();
      return open > jobsMax ? [`${open} jobs are open in the threads of ${name}`] : [];
    });
  return () => [...nodesSay(), ...diskSays(), ...threadsSay()];
}
