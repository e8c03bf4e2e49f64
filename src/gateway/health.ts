/**
 * Whether the gateway is well, and whether it should be sent requests.
 * Source: docs/reference/gateway.md#information-and-health.
 * @module
 */
import type { Clock } from "../lib/clock.ts";

/** Something that may be wrong; each answers with sentences, none while all is well. */
export type HealthCheck = () => readonly string[];

/** The health record. */
export type HealthRecord = Readonly<{
  status: "ok" | "unhealthy";
  /** Seconds since the start. */
  uptime: number;
  date: string;
  reasons: readonly string[];
}>;

/** The gateway's health. */
export type Health = Readonly<{
  record: () => HealthRecord;
  /** Whether requests should be sent here: not before the start is complete, not while stopping. */
  isReady: () => boolean;
  /** From now on not ready: for a stop that lets others take over first. */
  stop: () => void;
}>;

/** What health is made of. */
export type HealthOptions = Readonly<{
  clock: Clock;
  /** What makes the gateway unhealthy. */
  checks: readonly HealthCheck[];
  /** What an operator should know though nothing is broken, such as one origin for all content. */
  notes: readonly HealthCheck[];
  /** What must be there before requests make sense; also unhealthy while it is not. */
  readiness: readonly HealthCheck[];
}>;

/** Creates the view on health; it keeps nothing but whether it was told to stop. */
export function createHealth({ clock, checks, notes, readiness }: HealthOptions): Health {
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
      };
    },
    isReady: () => waiting().length === 0,
    stop: () => {
      stopping = true;
    },
  };
}

/** A check that fails, on a damaged database for instance, is itself a reason. */
function sentencesOf(check: HealthCheck): readonly string[] {
  try {
    return check();
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}
