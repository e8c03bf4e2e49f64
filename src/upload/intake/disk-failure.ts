/**
 * What is made of it when the system does not write or read what belongs to an upload: want of room is one thing, which
 * an operator or time will end; a disk that fails is another.
 * @module
 */
import { Failure } from "../../failures.ts";

/** What the system says where there is no more room, for anybody or for us. */
const fullCodes: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

/** What it says where too much is open at once. */
const crowdedCodes: ReadonlySet<string> = new Set(["EMFILE", "ENFILE"]);

/**
 * The failure for an error of the system.
 *
 * @param code - Its name: `ENOSPC`. @param reason - What the system said, for the log.
 * @returns `no_room`, `busy` where too many files are open, else `disk_failed`.
 */
export function diskFailure(code: string, reason: string, cause?: unknown): Failure {
  if (fullCodes.has(code)) return new Failure("no_space", { reason }, cause);
  if (crowdedCodes.has(code)) return new Failure("busy", { reason }, cause);
  return new Failure("disk_failed", { reason }, cause);
}
