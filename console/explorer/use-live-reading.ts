/**
 * A hook that reads a value again when the gateway's index changes, and by time while no events arrive.
 * @module
 */
import { useEffect, useRef, useState } from "react";
import { type Reading, useReading } from "../use-reading.ts";

/** Time between two reads: while events arrive, and while none can be had. Milliseconds. */
const everyMs = { following: 60_000, polling: 4_000 } as const;

/** Time from a change to the read, and the shortest time between two such reads. Milliseconds. */
const gatherMs = 300;
const pauseMs = 3_000;

/** Events after which lists differ. */
const changes = ["pending", "mined", "forked", "dropped", "block", "block_forked", "reset"];

type Listener = Readonly<{ onChange: () => void; onState: (isFollowing: boolean) => void }>;

/** One connection for all lists of the page: a browser has six for each host over HTTP/1.1. */
const listeners = new Set<Listener>();
let source: EventSource | undefined;

/** Connects while a list is shown and the page is visible. */
function update(): void {
  const isWanted = listeners.size > 0 && !document.hidden;
  if (isWanted && source === undefined) {
    source = new EventSource("/svc/events");
    const tell = () => {
      for (const { onState } of listeners) onState(source?.readyState === EventSource.OPEN);
    };
    const tellChange = () => {
      for (const { onChange } of listeners) onChange();
    };
    source.addEventListener("open", tell);
    source.addEventListener("error", tell);
    for (const name of changes) source.addEventListener(name, tellChange);
  }
  if (isWanted || source === undefined) return;
  source.close();
  source = undefined;
  for (const { onState } of listeners) onState(false);
}

/**
 * @param readOnce - As of `useReading`.
 * @param isLive - Whether the value is read again.
 */
export function useLiveReading<Value>(
  readOnce: (signal: AbortSignal) => Promise<Value>,
  isLive: boolean,
): Reading<Value> {
  const [isFollowing, setIsFollowing] = useState(false);
  const reading = useReading(readOnce, isLive ? everyMs[isFollowing ? "following" : "polling"] : undefined);
  const { again } = reading;
  const timer = useRef<ReturnType<typeof setTimeout>>();
  useEffect(() => {
    if (!isLive) return;
    let readAt = Number.NEGATIVE_INFINITY;
    const read = () => {
      timer.current = undefined;
      readAt = performance.now();
      again();
    };
    const onChange = () => {
      timer.current ??= setTimeout(read, Math.max(gatherMs, readAt + pauseMs - performance.now()));
    };
    const listener: Listener = { onChange, onState: setIsFollowing };
    listeners.add(listener);
    document.addEventListener("visibilitychange", update);
    update();
    if (source?.readyState === EventSource.OPEN) setIsFollowing(true);
    return () => {
      listeners.delete(listener);
      clearTimeout(timer.current);
      timer.current = undefined;
      update();
      if (listeners.size === 0) document.removeEventListener("visibilitychange", update);
    };
  }, [again, isLive]);
  return reading;
}
