/**
 * Damaged databases: what an operator is told when one is met at the start, and later while the program runs.
 * @module
 */

import type { Config } from "../config/settings.ts";
import type { HealthCheck } from "../gateway/health.ts";
import type { Log, LogFields } from "../lib/log.ts";
import { misuse } from "./complaints.ts";
import type { DataFolder } from "./data-folder.ts";
import { judgeDatabase, type KnownDatabase, knownDatabases } from "./known-databases.ts";

type Settings = Pick<Config, "LEDGER_URL" | "WEBHOOK_TARGET_SERVERS">;

/** SQLite's words for damage; errors that come from threads have their message, and no code. */
const damagePattern = /database disk image is malformed|file is not a database|SQLITE_(CORRUPT|NOTADB)/;

/** Causes that are looked at. */
const causesMax = 8;

/** An error of a damaged database as one sentence for an operator; other errors as they are. */
export function explainDamage(error: unknown, folder: DataFolder, settings: Settings): unknown {
  const damage = damageIn(error, knownDatabases(folder, settings));
  return damage === undefined ? error : misuse(damage.sentence);
}

/** A log that notes what it is told of damage, for health. */
export type DamageWatch = Readonly<{ log: Log; check: HealthCheck }>;

/** Watches a log. The first damage of each database is also written as an error of its own. */
export function watchDamage(log: Log, folder: DataFolder, settings: Settings): DamageWatch {
  const known = knownDatabases(folder, settings);
  const sentences = new Map<string, string>();
  const note = (fields: LogFields | undefined): void => {
    for (const value of Object.values(fields ?? {})) {
      const damage = damageIn(value, known);
      if (damage === undefined || sentences.has(damage.name)) continue;
      sentences.set(damage.name, damage.sentence);
      log.error(damage.sentence);
    }
  };
  return { log: watched(log, note), check: () => [...sentences.values()] };
}

function watched(log: Log, note: (fields: LogFields | undefined) => void): Log {
  const noting = (write: Log["info"]) => (message: string, fields?: LogFields) => {
    write(message, fields);
    note(fields);
  };
  return {
    ...log,
    warn: noting(log.warn),
    error: noting(log.error),
    with: (fields) => watched(log.with(fields), note),
  };
}

type Damage = Readonly<{ name: string; sentence: string }>;

function damageIn(error: unknown, known: readonly KnownDatabase[]): Damage | undefined {
  const messages = messagesOf(error);
  const reason = messages.map((message) => damagePattern.exec(message)?.[0]).find((found) => found !== undefined);
  if (reason === undefined) return undefined;
  const database = known.find(({ path }) => messages.some((message) => message.includes(path)));
  if (database === undefined)
    return { name: "", sentence: `a database is damaged (${reason}): cairn doctor tells which` };
  const finding = judgeDatabase(database, undefined, { kind: "damaged", reason });
  return { name: database.name, sentence: finding?.sentence ?? reason };
}

function messagesOf(error: unknown): readonly string[] {
  const messages: string[] = [];
  let each: unknown = error;
  while (each instanceof Error && messages.length < causesMax) {
    messages.push("code" in each ? `${each.message} ${each.code}` : each.message);
    each = each.cause;
  }
  return messages;
}
