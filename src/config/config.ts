/**
 * The environment read against the table of settings: values, or every complaint at once.
 * @module
 */
import { printable } from "../lib/printable.ts";
import { type CarriedOver, carryOver, foreignWarnings, type Translation } from "./foreign-names.ts";
import type { Setting } from "./setting-readers.ts";
import { type Config, type SettingName, settings } from "./settings.ts";

/** Which command reads the settings; some defaults differ. */
export type Mode = "dev" | "serve";

type Environment = Readonly<Record<string, string | undefined>>;

/** Settings that were read, and what an operator should know about the rest. */
export type ReadConfig = Readonly<{
  config: Config;
  /** The same with defaults where a text could not be read: for finding what else is wrong, and nothing else. */
  filled: Config;
  warnings: readonly string[];
  complaints: readonly string[];
}>;

const rows = Object.entries(settings) as readonly [SettingName, Setting<unknown> & { fallback?: unknown }][];

/**
 * Reads the settings from an environment.
 *
 * @param environment - Names and texts, secrets already read from their files.
 * @returns The values, with every complaint; while there is one, the values are not to be used.
 */
export function readConfig(environment: Environment, mode: Mode): ReadConfig {
  const complaints: string[] = [];
  const config: Record<string, unknown> = {};
  const filled: Record<string, unknown> = {};
  const carried = carryOver(environment, knownNames);
  for (const [name, row] of rows) {
    const given = givenText(carried.values, name, row);
    config[name] = given === undefined ? defaultOf(row, mode) : readOne(name, row, given, complaints);
    filled[name] = config[name] ?? defaultOf(row, mode);
  }
  // Each name was read by its own row's reader, which is what Config says.
  const read = config as Config;
  return {
    config: read,
    filled: filled as Config,
    warnings: [...foreignWarnings(carried.foreign), ...unknownNames(environment, carried)],
    complaints: [...complaints, ...mismatches(read), ...sharedPorts(read, mode)],
  };
}

/** What becomes of one name of an environment. */
export type ExplainedName = Readonly<{
  name: string;
  kind: "taken" | "translated" | "same" | "foreign" | "unknown";
  /** What an operator should know of it; may be empty. */
  note: string;
}>;

/** Says of each name of an environment what becomes of it, in the order of the environment. */
export function explainEnvironment(environment: Environment): readonly ExplainedName[] {
  const { translations, foreign } = carryOver(environment, knownNames);
  return Object.keys(environment).map((name) => {
    const translation = translations.find(({ from }) => from.includes(name));
    if (translation !== undefined) return { name, kind: "translated", note: translationNote(translation) };
    if (knownNames.has(name)) return { name, kind: "taken", note: aliasNote(name) };
    const stranger = foreign.find((each) => each.name === name);
    if (stranger !== undefined) return { name, kind: stranger.isSame ? "same" : "foreign", note: stranger.instead };
    const meant = nearest(name, knownNames);
    return { name, kind: "unknown", note: meant === undefined ? "" : `did you mean ${meant}?` };
  });
}

function translationNote({ name, value }: Translation): string {
  return value === undefined ? `${name} is unset` : `${name}=${value}`;
}

/** Under which name a setting of another name is read. */
function aliasNote(name: string): string {
  const row = rows.find(([, { aliases = [] }]) => aliases.includes(name));
  return row === undefined ? "" : `as ${row[0]}`;
}

/** What is wrong with settings only beside each other. */
function mismatches(config: Config): string[] {
  const { TLS_CERT_FILE, TLS_KEY_FILE } = config;
  const faults: string[] = [];
  if ((TLS_CERT_FILE === undefined) !== (TLS_KEY_FILE === undefined))
    faults.push("TLS_CERT_FILE and TLS_KEY_FILE must both be set, or neither: one is of no use without the other");
  if (config.METRICS_ON_ADMIN_LISTEN && config.ADMIN_LISTEN === undefined)
    faults.push("METRICS_ON_ADMIN_LISTEN needs ADMIN_LISTEN: without it metrics would be served nowhere");
  return faults;
}

/** Listeners that would stand at one port. A setting that could not be read has a complaint already. */
function sharedPorts(config: Config, mode: Mode): string[] {
  const names = ["GATEWAY_PORT", "PAYMENT_PORT", "UPLOAD_PORT"] as const;
  const taken = mode === "dev" ? ([...names, "DEVNET_PORT", "SANDBOX_PORT"] as const) : names;
  return taken.flatMap((name, index) => {
    const before = taken.slice(0, index).find((each) => config[each] === config[name]);
    const isShared = before !== undefined && config[name] !== undefined && config[name] !== 0;
    return isShared ? [`${name} must be another port than ${before}, got ${config[name]} for both`] : [];
  });
}

/** The names of settings that hold secrets, for which `NAME_FILE` is read. */
export const secretNames: readonly SettingName[] = rows.filter(([, row]) => row.secret).map(([name]) => name);

/** The table of settings as Markdown, for README. */
export function settingsTable(): string {
  const lines = rows.map(
    ([name, row]) => `| \`${name}\` | ${defaultText(row)} | ${row.unit} | ${row.effect}${also(row)} |`,
  );
  return ["| Setting | Default | Unit | Effect |", "|---|---|---|---|", ...lines].join("\n");
}

/** The settings as lines for a terminal. */
export function settingsHelp(): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  const lines = rows.map(([name, row]) => `  ${name.padEnd(width)}  ${row.effect} [${row.unit}; ${defaultText(row)}]`);
  return lines.join("\n").replaceAll("`", "");
}

/** The settings in force as lines `NAME=value`, secrets hidden. */
export function printConfig(config: Config): string {
  return rows
    .map(
      ([name, row]) =>
        `${name}=${row.secret && config[name] !== undefined ? "(hidden)" : printValue(row, config[name])}`,
    )
    .join("\n");
}

function givenText(environment: Environment, name: string, row: Setting<unknown>): string | undefined {
  for (const each of [name, ...(row.aliases ?? [])]) {
    const text = environment[each];
    if (text !== undefined && text !== "") return text;
  }
  return undefined;
}

function defaultOf(row: Setting<unknown> & { fallback?: unknown }, mode: Mode): unknown {
  return mode === "dev" && row.dev !== undefined ? row.dev : row.fallback;
}

function readOne(name: string, row: Setting<unknown>, text: string, complaints: string[]): unknown {
  try {
    return row.read(text);
  } catch (error) {
    // The reader's message is for the operator: it becomes one line of the complaint.
    const reason = error instanceof Error ? error.message : String(error);
    complaints.push(`${name} ${reason}, got ${row.secret ? "(hidden)" : JSON.stringify(text)}`);
    return undefined;
  }
}

function defaultText(row: Setting<unknown> & { fallback?: unknown }): string {
  const usual = row.fallback === undefined ? "unset" : `\`${printValue(row, row.fallback)}\``;
  return row.dev === undefined ? usual : `${usual}; dev \`${printValue(row, row.dev)}\``;
}

function printValue(row: Setting<unknown>, value: unknown): string {
  if (value === undefined) return "";
  if (row.write !== undefined) return row.write(value);
  return Array.isArray(value) ? value.join(",") : String(value);
}

function also(row: Setting<unknown>): string {
  const aliases = row.aliases ?? [];
  const file = row.secret ? " The name with `_FILE` names a file that holds it." : "";
  return aliases.length === 0 ? file : ` Also \`${aliases.join("`, `")}\`.${file}`;
}

/** Beginnings that only this program and its peers use; a name with one of them was meant for us. */
const ourPrefixes = new RegExp(
  `^(${[
    "ANS104",
    "ARNS",
    "AR_IO",
    "TRUSTED",
    "DEVNET",
    "CACHE",
    "X402",
    "STRIPE",
    "PAYMENT",
    "UPLOAD",
    "TOP_UP",
    "CLICKHOUSE",
    "GRAPHQL",
    "QUERY",
    "SANDBOX",
    "WEBHOOK",
    "RATE_LIMITER",
  ].join("|")})_`,
);

const knownNames: ReadonlySet<string> = new Set(
  rows.flatMap(([name, row]) => [name, ...(row.aliases ?? []), ...(row.secret ? [`${name}_FILE`] : [])]),
);

function unknownNames(environment: Environment, { foreign, translations }: CarriedOver): string[] {
  const named = [...foreign.map(({ name }) => name), ...translations.flatMap(({ from }) => from)];
  const told = new Set([...knownNames, ...named]);
  return Object.keys(environment)
    .filter((name) => !told.has(name) && (ourPrefixes.test(name) || nearest(name, knownNames) !== undefined))
    .map((name) => {
      const meant = nearest(name, knownNames);
      const hint = meant === undefined ? "" : `; did you mean ${meant}?`;
      return `${printable(name)} is not a setting of this version${hint}`;
    });
}

/** Two slips of the pen are still the same name; three may be another program's. */
const slipsMax = 2;
const nameLengthMin = 8;

function nearest(name: string, known: ReadonlySet<string>): string | undefined {
  if (name.length < nameLengthMin) return undefined;
  return [...known].find((each) => editDistance(name, each) <= slipsMax);
}

function editDistance(left: string, right: string): number {
  if (Math.abs(left.length - right.length) > slipsMax) return slipsMax + 1;
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= right.length; column += 1) {
      const same = left[row - 1] === right[column - 1] ? 0 : 1;
      current.push(
        Math.min((previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, (previous[column - 1] ?? 0) + same),
      );
    }
    previous = current;
  }
  return previous[right.length] ?? 0;
}
