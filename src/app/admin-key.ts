/**
 * The key of administration: the one that was set, or a random one that is shown once.
 * @module
 */
import { randomBytes } from "node:crypto";
import type { Config } from "../config/settings.ts";

/** A key, and what of it may be printed: nothing of one that the operator knows already. */
export type AdminKey = Readonly<{ key: string; shown: Readonly<{ adminKey?: string }> }>;

/** The key in force. An unset or empty setting never opens a door. */
export function adminKeyOf(config: Config): AdminKey {
  if (config.ADMIN_API_KEY !== undefined) return { key: config.ADMIN_API_KEY, shown: {} };
  const key = randomBytes(32).toString("base64url");
  return { key, shown: { adminKey: key } };
}
