/**
 * Quantities as text, for the terminal and for pages.
 * @module
 */

const units: readonly string[] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Bytes with one digit after the point, in the largest unit below the value. */
export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1_024 && unit < units.length - 1) {
    value /= 1_024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

/** Bytes exactly, in the largest unit of which they are a whole number: `10GiB`, or `1500`. */
export function sizeText(bytes: number): string {
  let unit = 0;
  while (bytes > 0 && unit < units.length - 1 && bytes % 1_024 ** (unit + 1) === 0) unit += 1;
  return unit === 0 ? String(bytes) : `${bytes / 1_024 ** unit}${units[unit]}`;
}

/** Reads bytes: `1048576`, `10GiB` or `1.5 MiB`; `undefined` for other texts, and above 2^53 − 1. */
export function readBytes(text: string): number | undefined {
  const [, digits = "", unit = "B"] = /^(\d{1,16}(?:\.\d{1,6})?) ?([KMGTP]iB|B)?$/.exec(text) ?? [];
  const bytes = Number(digits) * 1_024 ** units.indexOf(unit);
  return digits !== "" && Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** A duration in its two largest units. @param ms - 0 or more. */
export function durationText(ms: number): string {
  const seconds = Math.ceil(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** An amount of winc with thousands separators. */
export function wincText(winc: bigint): string {
  return `${grouped(winc.toString())} winc`;
}

/** A count with its noun. */
export function countText(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** Winston as AR, or winc as credits, with four digits after the point, rounded towards zero. */
export function arText(winston: bigint): string {
  const digits = (winston < 0n ? -winston : winston).toString().padStart(13, "0");
  const text = `${grouped(digits.slice(0, -12))}.${digits.slice(-12, -8)}`;
  return winston < 0n && /[1-9]/.test(text) ? `-${text}` : text;
}

/** An amount of a smallest unit in whole ones, with all its places. @param amount - 0 or more. */
export function decimalText(amount: bigint, placesOf: number | bigint): string {
  const places = Number(placesOf);
  const digits = amount.toString().padStart(places + 1, "0");
  return places === 0 ? digits : `${digits.slice(0, -places)}.${digits.slice(-places)}`;
}

/** Digits with thousands separators. */
export function grouped(digits: string): string {
  return digits.replace(/\B(?=(\d{3})+$)/g, ",");
}
