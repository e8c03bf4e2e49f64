/**
 * A hook that reads a value of the gateway, once or again and again.
 * @module
 */
import { useCallback, useEffect, useRef, useState } from "react";

export type Reading<Value> = Readonly<{
  /** The last one that was read. */
  value: Value | undefined;
  /** Why the last read failed; undefined when it did not. */
  error: Error | undefined;
  /** Reads again now. */
  again: () => void;
}>;

/**
 * @param readOnce - Another function begins anew; the same one must be given while nothing changes.
 * @param everyMs - Time between two reads while the page is visible; undefined: one read.
 */
export function useReading<Value>(readOnce: (signal: AbortSignal) => Promise<Value>, everyMs?: number): Reading<Value> {
  const [value, setValue] = useState<Value>();
  const [error, setError] = useState<Error>();
  const readNow = useRef<() => void>();
  useEffect(() => {
    const stop = new AbortController();
    const { signal } = stop;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let reads = 0;
    const note = (own: number, found: Value | undefined, fault: Error | undefined) => {
      if (signal.aborted || own !== reads) return; // a later read has begun
      if (fault === undefined) setValue(found);
      setError(fault);
      if (everyMs !== undefined) timer = setTimeout(() => void read(), everyMs);
    };
    const read = async () => {
      if (document.hidden || signal.aborted) return;
      clearTimeout(timer);
      reads += 1;
      const own = reads;
      try {
        note(own, await readOnce(signal), undefined);
      } catch (fault) {
        note(own, undefined, fault instanceof Error ? fault : new Error(String(fault)));
      }
    };
    const begin = () => void read();
    readNow.current = begin;
    document.addEventListener("visibilitychange", begin);
    begin();
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", begin);
    };
  }, [readOnce, everyMs]);
  return { value, error, again: useCallback(() => readNow.current?.(), []) };
}
