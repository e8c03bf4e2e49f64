/**
 * Health and readiness of the gateway, and the usual reasons for bad health: disk space, nodes, threads.
 * Source: docs/reference/gateway.md#information-and-health.
 * @module
 */
import type { Nodes } from "../chain/nodes.ts";
import type { Clock } from "../lib/clock.ts";
import type { Extents } from "../store/extents/extents.ts";
import type { Pool } from "../threads/pool.ts";

/** A check; returns the faults as sentences, none while healthy. */
export type HealthCheck = () => readonly string[];

/** The health record. */
export type HealthRecord = Readonly<{
  status: "ok" | "unhealthy";
  /** Seconds since the start. */
  uptime: number;
  date: string;
  reasons: readonly string[];
  /** Absent for services that follow no chain. */
  chain?: ChainProgress;
}>;

/** How far the chain was followed; null while unknown. */
export type ChainProgress = Readonly<{
  height: number | null;
  /** Height of the nodes' chain. */
  tip: number | null;
  /** Blocks between them. */
  lag: number | null;
}>;

/** The gateway's health. */
export type Health = Readonly<{
  record: () => HealthRecord;
  /** Readiness: false until the start is complete, and while stopping. */
  isReady: () => boolean;
  /** Ends readiness, so that load balancers stop sending requests before the gateway stops. */
  stop: () => void;
}>;

export type HealthOptions = Readonly<{
  clock: Clock;
  /** Faults that make the gateway unhealthy. */
  checks: readonly HealthCheck[];
  /** Warnings that do not affect health, such as one origin for all content. */
  notes: readonly HealthCheck[];
  /** Conditions of readiness; the gateway is also unhealthy while one fails. */
  readiness: readonly HealthCheck[];
  /** Absent for services that follow no chain. */
  chain?: () => ChainProgress;
}>;

export function createHealth({ clock, checks, notes, readiness, chain }: HealthOptions): Health {
  const startedAt = clock();
  let stopping = false;
  const say = (list: readonly HealthCheck[]) => list.flatMap(sentencesOf);
  const waiting = () => [...(stopping ? ["The gateway is stopping."] : []), ...say(readiness)];
  return {
    record: () => {
      const wrong = [...waiting(), ...say(checks)];
      return {
        status: wrong.length === 0 ? "ok" : "unhealthy",
        uptime: (clock() - startedAt) / 1_000,
        date: new Date(clock()).toISOString(),
        reasons: [...new Set([...wrong, ...say(notes)])],
        ...(chain && { chain: progressOf(chain) }),
      };
    },
    isReady: () => waiting().length === 0,
    stop: () => {
      stopping = true;
    },
  };
}

/** Of a damaged index nothing is known: the checks say why. */
function progressOf(chain: () => ChainProgress): ChainProgress {
  try {
    return chain();
  } catch {
    return { height: null, tip: null, lag: null }; // a check reads the index too, and reports the fault
  }
}

/** A check that throws, for instance on a damaged database, counts as a fault. */
function sentencesOf(check: HealthCheck): readonly string[] {
  try {
    return check();
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

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
