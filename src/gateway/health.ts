/**
 * Health and readiness of the gateway.
 * Source: docs/reference/gateway.md#information-and-health.
 * @module
 */
import type { Clock } from "../lib/clock.ts";

/** A check; returns the faults as sentences, none while healthy. */
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
}>;

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

/** A check that throws, for instance on a damaged database, counts as a fault. */
function sentencesOf(check: HealthCheck): readonly string[] {
  try {
    return check();
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}
