/**
 * Reads an environment by the table of settings, and reports every invalid value at once.
 * @module
 */
import { nearestName } from "../lib/nearest-name.ts";
import { invalidValue, printable } from "../lib/printable.ts";
import { type CarriedOver, carryOver, foreignWarnings, type Translation } from "./foreign-names.ts";
import type { Setting } from "./setting-readers.ts";
import { type Config, type SettingName, settings } from "./settings.ts";

/** The command that reads the settings; some defaults differ. */
export type Mode = "dev" | "serve";

type Environment = Readonly<Record<string, string | undefined>>;

/** The values of the settings, with warnings about other names. */
export type ReadConfig = Readonly<{
  config: Config;
  /** The same with defaults in place of invalid values, only for finding more complaints. */
  filled: Config;
  /** The names of the environment that set each setting; a setting with its default is absent. */
  origins: ReadonlyMap<string, readonly string[]>;
  warnings: readonly string[];
  complaints: readonly string[];
}>;

type Row = Setting<unknown> & { fallback?: unknown };

const rows = Object.entries(settings) as readonly [SettingName, Row][];

/**
 * Reads the settings from an environment.
 *
 * @param environment - Names and texts; secrets are already read from their files.
 * @returns The values and all complaints; the values may be used only when there are no complaints.
 */
export function readConfig(environment: Environment, mode: Mode): ReadConfig {
  const complaints: string[] = [];
  const config: Record<string, unknown> = {};
  const filled: Record<string, unknown> = {};
  const carried = carryOver(environment, knownNames);
  // The name that the user set: the setting's own or an alias.
  const givenNames = new Map<string, string>();
  for (const [name, row] of rows) {
    const given = givenName(carried.values, name, row);
    if (given !== undefined) givenNames.set(name, given);
    const text = given === undefined ? undefined : carried.values[given];
    config[name] =
      given === undefined || text === undefined ? defaultOf(row, mode) : readOne(given, row, text, complaints);
    filled[name] = config[name] ?? defaultOf(row, mode);
  }
  // Each value comes from the reader of its own row, as in Config.
  const read = config as Config;
  return {
    config: read,
    filled: filled as Config,
    origins: new Map([...givenNames].map(([name, given]) => [name, translatedFrom(name, carried) ?? [given]])),
    warnings: [...foreignWarnings(carried.foreign), ...unknownNames(environment, carried)],
    complaints: [...complaints, ...mismatches(read, mode), ...sharedPorts(read, mode, givenNames)],
  };
}

/** The foreign names from which a setting was translated. */
function translatedFrom(name: string, { translations }: CarriedOver): readonly string[] | undefined {
  return translations.find((translation) => translation.name === name && translation.value !== undefined)?.from;
}

/** How one name of an environment is treated. */
export type ExplainedName = Readonly<{
  name: string;
  kind: "taken" | "translated" | "same" | "foreign" | "unknown";
  /** Explanation for the operator; may be empty. */
  note: string;
}>;

/** Explains how each name of an environment is treated, in the order of the environment. */
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

/** The setting that an alias sets. */
function aliasNote(name: string): string {
  const row = rows.find(([, { aliases = [] }]) => aliases.includes(name));
  return row === undefined ? "" : `as ${row[0]}`;
}

/** Complaints about settings that contradict each other. */
function mismatches(config: Config, mode: Mode): string[] {
  const { TLS_CERT_FILE, TLS_KEY_FILE } = config;
  const faults: string[] = [];
  if ((TLS_CERT_FILE === undefined) !== (TLS_KEY_FILE === undefined))
    faults.push("TLS_CERT_FILE and TLS_KEY_FILE must be set together");
  if (config.METRICS_ON_ADMIN_LISTEN && config.ADMIN_LISTEN === undefined)
    faults.push("METRICS_ON_ADMIN_LISTEN requires ADMIN_LISTEN: otherwise metrics are not served");
  if (config.SERVICES?.length === 0) faults.push("SERVICES must name at least one of gateway, payment, upload");
  else if (mode === "dev" && config.SERVICES !== undefined && !config.SERVICES.includes("gateway"))
    faults.push("SERVICES must include gateway under dev: its sample site and its addresses are the gateway's");
  if (config.COLUMNAR_STORE === "clickhouse" && config.CLICKHOUSE_URL === undefined)
    faults.push("COLUMNAR_STORE=clickhouse requires CLICKHOUSE_URL");
  return faults;
}

/** Complaints about listeners on the same port. An invalid port already has its own complaint. */
function sharedPorts(config: Config, mode: Mode, givenNames: ReadonlyMap<string, string>): string[] {
  const { SERVICES: services = [] } = config;
  const names = [
    ...(services.includes("gateway") ? ["GATEWAY_PORT" as const] : []),
    ...(services.includes("payment") ? ["PAYMENT_PORT" as const] : []),
    ...(services.includes("upload") ? ["UPLOAD_PORT" as const] : []),
  ];
  const taken = mode === "dev" ? ([...names, "DEVNET_PORT", "SANDBOX_PORT"] as const) : names;
  return taken.flatMap((name, index) => {
    const before = taken.slice(0, index).find((each) => config[each] === config[name]);
    if (before === undefined || config[name] === undefined || config[name] === 0) return [];
    const [own, other] = [name, before].map((each) => givenNames.get(each) ?? each);
    return [invalidValue(`${own}`, String(config[name]), `a port other than ${other}`)];
  });
}

/** The names of secret settings, for which `NAME_FILE` is read. */
export const secretNames: readonly SettingName[] = rows.filter(([, row]) => row.secret).map(([name]) => name);

/** One setting as documentation shows it. */
export type SettingDescription = Readonly<{ name: string; unit: string; usual: string; effect: string }>;

/**
 * Describes a setting for docs/settings.md; the effect names its aliases and its secret's file.
 * @internal
 */
export function describeSetting(name: SettingName): SettingDescription {
  const row: Row = settings[name];
  return { name, unit: row.unit, usual: defaultText(row), effect: `${row.effect}${also(row)}` };
}

/** The settings as lines for `--help`. */
export function settingsHelp(): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  const lines = rows.map(([name, row]) => `  ${name.padEnd(width)}  ${row.effect} [${row.unit}; ${defaultText(row)}]`);
  return lines.join("\n").replaceAll("`", "");
}

/** The settings in force as lines `NAME=value`, secrets hidden. */
export function printConfig(config: Config): string {
  return rows.map(([name, row]) => `${name}=${shownValue(row, config[name])}`).join("\n");
}

/** A setting in force; an unset one has the text "". `from`: where it was set, absent for a default. */
export type ShownSetting = Readonly<{ value: string; from?: readonly string[] }>;

/** The settings in force with their origins, secrets hidden. */
export function configRecord({
  config,
  origins,
}: Pick<ReadConfig, "config" | "origins">): Record<string, ShownSetting> {
  return Object.fromEntries(
    rows.map(([name, row]) => {
      const from = origins.get(name);
      return [name, { value: shownValue(row, config[name]), ...(from === undefined ? {} : { from }) }];
    }),
  );
}

function shownValue(row: Row, value: unknown): string {
  return row.secret && value !== undefined ? "(hidden)" : printValue(row, value);
}

/** The first of a setting's names that has a text; an empty text counts as unset. */
function givenName(environment: Environment, name: string, { aliases = [] }: Row): string | undefined {
  return [name, ...aliases].find((each) => (environment[each] ?? "") !== "");
}

function defaultOf(row: Row, mode: Mode): unknown {
  return mode === "dev" && row.dev !== undefined ? row.dev : row.fallback;
}

function readOne(name: string, row: Row, text: string, complaints: string[]): unknown {
  try {
    return row.read(text);
  } catch (error) {
    // The reader's message says which values are valid.
    const expected = error instanceof Error ? error.message : String(error);
    complaints.push(invalidValue(name, row.secret ? undefined : text, expected));
    return undefined;
  }
}

function defaultText(row: Row): string {
  const usual = row.fallback === undefined ? "unset" : `\`${printValue(row, row.fallback)}\``;
  return row.dev === undefined ? usual : `${usual}; dev \`${printValue(row, row.dev)}\``;
}

function printValue(row: Row, value: unknown): string {
  if (value === undefined) return "";
  if (row.write !== undefined) return row.write(value);
  return Array.isArray(value) ? value.join(",") : String(value);
}

function also(row: Row): string {
  const aliases = row.aliases ?? [];
  const file = row.secret ? " The name with `_FILE` is the path of a file with the value." : "";
  return aliases.length === 0 ? file : ` Also \`${aliases.join("`, `")}\`.${file}`;
}

/** Prefixes that only this program and ar-io-node use; an unknown name with one of them is reported. */
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
    "COLUMNAR",
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
  const explained = new Set([...knownNames, ...named]);
  return Object.keys(environment)
    .filter((name) => !explained.has(name) && (ourPrefixes.test(name) || nearest(name, knownNames) !== undefined))
    .map((name) => {
      const meant = nearest(name, knownNames);
      const hint = meant === undefined ? "" : `; did you mean ${meant}?`;
      return `${printable(name)} is not a setting of this version${hint}`;
    });
}

/** A name within this edit distance of a known name is a typing error; beyond it, another program may use the name. */
const editsMax = 2;
const nameLengthMin = 8;

function nearest(name: string, known: ReadonlySet<string>): string | undefined {
  if (name.length < nameLengthMin) return undefined;
  // Few typos are in the first character; OpenSSL's SSL_CERT_FILE, of many environments, is near TLS_CERT_FILE.
  return nearestName(
    name,
    [...known].filter((each) => each[0] === name[0]),
    editsMax,
  );
}
