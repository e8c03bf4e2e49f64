/**
 * Opens a listener at the port of a setting, or reports which setting cannot be used and why.
 * @module
 */
import { badSettings, misuse } from "./complaints.ts";

/** A setting that tells where to listen, as the operator wrote it. */
export type PlaceSetting = Readonly<{ name: string; value: string | number }>;

/** What may be wrong with the port. */
const portReasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program listens there",
  EACCES: "this user may not listen there",
};

/**
 * Opens a listener.
 *
 * @param port - What tells its port.
 * @param host - What tells its address; the same where one setting tells both.
 * @throws Misuse when the port or the address cannot be had.
 */
export function claimPort<Opened>(port: PlaceSetting, host: PlaceSetting, open: () => Opened): Opened {
  try {
    return open();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    const reason = portReasons[code];
    if (reason !== undefined) throw misuse(`${port.name} ${port.value} cannot be used: ${reason}`);
    if (!isOfAddress(error, code)) throw error;
    throw misuse(`${host.name} ${host.value} cannot be used: this machine has no such address`);
  }
}

/**
 * Looks whether this machine has an address, by listening there for a moment at a free port.
 *
 * @param value - The setting as it was written.
 * @throws Misuse as a bad setting.
 */
export function checkHost(name: string, value: string, host: string): void {
  try {
    Bun.listen({ hostname: host, port: 0, socket: { data() {} } }).stop(true);
  } catch {
    // Whatever the code: at this address nothing can be listened to.
    throw badSettings([`${name} ${value} cannot be used: this machine has no such address`]);
  }
}

/** For a name that nobody knows the runtime has several codes, and for some none (Bun 1.4.5, measured). */
function isOfAddress(error: unknown, code: string): boolean {
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") return true;
  return error instanceof Error && /\blisten$|^Failed to listen at /.test(error.message);
}
