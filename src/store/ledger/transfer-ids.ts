/**
 * Ids of transfers: texts that sort by the time at which they were made.
 *
 * 10 characters of Unix milliseconds, 4 that count within one of them, 12 by chance; lower-case base 32.
 * @module
 */
import type { Clock } from "../../lib/clock.ts";

/** Makes ids; each is greater than the one before. */
export type MakeId = () => string;

/** Crockford's digits: they sort as their values do, in every collation. */
const digits = "0123456789abcdefghjkmnpqrstvwxyz";
const timeDigits = 10;
const countDigits = 4;
const chanceDigits = 12;
/** As many ids have room in one millisecond; the next one takes the millisecond after. */
const perMillisecondMax = 32 ** countDigits;

/**
 * Creates a maker of ids.
 *
 * @param random - Numbers in [0, 1); they keep ids of several processes apart.
 */
export function createTransferIds(clock: Clock, random: () => number): MakeId {
  let last = 0;
  let count = 0;
  return () => {
    const now = clock();
    // A clock that is set back must not make ids that sort before older ones.
    if (now > last) {
      last = now;
      count = 0;
    } else if (count + 1 < perMillisecondMax) {
      count += 1;
    } else {
      last += 1;
      count = 0;
    }
    const chance = Array.from({ length: chanceDigits }, () => digits.charAt(Math.floor(random() * 32)));
    return `${inDigits(last, timeDigits)}${inDigits(count, countDigits)}${chance.join("")}`;
  };
}

function inDigits(value: number, length: number): string {
  let rest = value;
  let text = "";
  for (let place = 0; place < length; place += 1) {
    text = digits.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}
