/**
 * A listener opened at the port of a setting, or the operator told which setting cannot be had and why.
 * @module
 */
import { misuse } from "./complaints.ts";

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program listens there",
  EACCES: "this user may not listen there",
  EADDRNOTAVAIL: "this machine has no such address",
};

/**
 * Opens a listener.
 *
 * @param setting - Name of the setting that says the port.
 * @param place - Where it listens, as the setting has it.
 * @throws Misuse when the port cannot be had.
 */
export function claimPort<Opened>(setting: string, place: string | number, open: () => Opened): Opened {
  try {
    return open();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    const reason = reasons[code];
    if (reason === undefined) throw error;
    throw misuse(`${setting} ${place} cannot be used: ${reason}`);
  }
}
