/**
 * Numbers as people read them: bytes, durations, credits.
 * @module
 */

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** Bytes with one digit after the point, in the largest unit of which there is one. */
export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1_024 && unit < units.length - 1) {
    value /= 1_024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

/** A duration in the two largest units that say something. @param ms - 0 or more. */
export function durationText(ms: number): string {
  const seconds = Math.ceil(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** An amount of winc, its thousands apart. */
export function wincText(winc: bigint): string {
  return `${winc.toString().replace(/\B(?=(\d{3})+$)/g, ",")} winc`;
}

/** A count of things. */
export function countText(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
