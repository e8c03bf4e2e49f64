/**
 * What the gateway is short of, in sentences: a disk, nodes that answer, threads that are free.
 * Source: docs/reference/gateway.md#information-and-health.
 * @module
 */
import type { Nodes } from "../chain/nodes.ts";
import type { Extents } from "../store/extents/extents.ts";
import type { Pool } from "../threads/pool.ts";
import type { HealthCheck } from "./health.ts";

/** What is looked at. */
export type ConcernParts = Readonly<{
  nodes: Pick<Nodes, "all" | "standing">;
  extents: Pick<Extents, "hasSpace" | "stats">;
  /** By the name of what they do. */
  pools: Readonly<Record<string, Pick<Pool<unknown>, "load">>>;
}>;

/** A node of which fewer answers came than this is in trouble; one that failed once is not. Share of the latest. */
const responsesShareMin = 0.5;

/** Jobs that wait for threads: more than any burst of requests makes of itself. */
const jobsMax = 512;

/** Creates the check. */
export function createConcerns({ nodes, extents, pools }: ConcernParts): HealthCheck {
  const nodesSay = (): string[] => {
    const shares = new Map(nodes.standing().map(({ url, successShare }) => [url, successShare]));
    const isSilent = nodes.all.every(({ url }) => (shares.get(url) ?? 1) < responsesShareMin);
    return isSilent ? [`no node of the chain answers: ${nodes.all.map(({ url }) => url).join(", ")}`] : [];
  };
  const diskSays = (): string[] => {
    if (extents.hasSpace()) return [];
    const { bytes, freeBytes } = extents.stats();
    return [`the disk has no room for content, which takes ${bytes} bytes; ${freeBytes ?? 0} are free`];
  };
  const threadsSay = (): string[] =>
    Object.entries(pools).flatMap(([name, pool]) => {
      const { open } = pool.load();
      return open > jobsMax ? [`${open} jobs are open in the threads of ${name}`] : [];
    });
  return () => [...nodesSay(), ...diskSays(), ...threadsSay()];
}
