/**
 * Readers of settings: text from the environment in, a value out.
 *
 * A reader throws an Error whose message is a noun phrase for the valid values ("0–65535"); config.ts completes the
 * sentence with the value and the setting's name.
 * @module
 */
import ipaddr from "ipaddr.js";
import { decodeBase64url } from "../lib/base64url.ts";
import { readBytes } from "../lib/quantity-text.ts";

/** One row of the table of settings. */
export type Setting<Value> = Readonly<{
  /** Throws an Error whose message says which values are valid. */
  read: (text: string) => Value;
  unit: string;
  /** One sentence. */
  effect: string;
  /** Other names under which the setting is read. */
  aliases?: readonly string[];
  /** Writes a value in the form that `read` accepts; unset is `String(value)`, or a list's texts with commas. */
  write?(value: Value): string;
  /** Never printed; `NAME_FILE` names a file that holds it. */
  secret?: true;
  /** Default of `cairn dev`, where it differs. */
  dev?: Value;
}>;

type Read = (text: string) => unknown;

type Row<Reader extends Read> = Omit<Setting<ReturnType<Reader>>, "read"> & Readonly<{ read: Reader }>;

/** A setting that always has a value. */
export function setting<Reader extends Read>(
  row: Row<Reader> & { fallback: NoInfer<ReturnType<Reader>> },
): Row<Reader> & { fallback: ReturnType<Reader> };
/** A setting that may be absent. */
export function setting<Reader extends Read>(row: Row<Reader>): Row<Reader>;
export function setting<Reader extends Read>(row: Row<Reader>): Row<Reader> {
  return row;
}

/** Any text but the empty one. */
export function text(value: string): string {
  if (value === "") throw new Error("text that is not empty");
  return value;
}

/** A key that a header can carry: printable ASCII without spaces. */
export function headerKey(value: string): string {
  if (!/^[\x21-\x7e]+$/.test(value)) throw new Error("printable ASCII characters without spaces");
  return value;
}

/** A secret of at least 32 characters. */
export function secretText(value: string): string {
  if (value.length < secretLengthMin) throw new Error(`at least ${secretLengthMin} characters`);
  return value;
}

/** Source: RFC 7518 §3.2: a key has at least the bits of its hash. */
const secretLengthMin = 32;

/** A whole number from 0 to 2^53 − 1. */
export function count(value: string): number {
  return wholeNumber(value, 0, "a whole number, 0 or more");
}

/** A whole number from 1 to 2^53 − 1. */
export function positive(value: string): number {
  return wholeNumber(value, 1, "a whole number, 1 or more");
}

/** Bytes, 0 or more: a whole number, or with a unit. */
export function size(value: string): number {
  const bytes = readBytes(value);
  if (bytes === undefined) throw new Error("a size such as 1048576, 10MiB or 1.5GiB");
  return bytes;
}

/** Bytes, 1 or more. */
export function positiveSize(value: string): number {
  const bytes = size(value);
  if (bytes === 0) throw new Error("a size above 0 such as 1048576, 10MiB or 1.5GiB");
  return bytes;
}

/**
 * The longest time, 23 days. The runtime ends a timer of 2^31 milliseconds and more after one; some timers are seconds
 * longer than the setting.
 */
const durationMsMax = 2_000_000_000;

/** A whole number of milliseconds, 1 or more. */
export function duration(value: string): number {
  return wholeNumber(value, 1, `a whole number of milliseconds, 1 to ${durationMsMax}`, durationMsMax);
}

/** A whole number of milliseconds, or 0. */
export function durationOrNone(value: string): number {
  return wholeNumber(value, 0, `a whole number of milliseconds, 0 to ${durationMsMax}`, durationMsMax);
}

/** Milliseconds from an hour to a week, or 0. */
export function hourToWeekOrNone(value: string): number {
  const [hourMs, weekMs] = [3_600_000, 604_800_000];
  const expected = `0, or milliseconds from an hour (${hourMs}) to a week (${weekMs})`;
  return value === "0" ? 0 : wholeNumber(value, hourMs, expected, weekMs);
}

/** Far above the processors of a machine. Each pool of so many threads is made at the start. */
const threadsMax = 1_024;

/** Threads of a pool. */
export function threadCount(value: string): number {
  return wholeNumber(value, 0, `0–${threadsMax}`, threadsMax);
}

/** A TCP port; 0 picks a free port. */
export function port(value: string): number {
  return wholeNumber(value, 0, "0–65535", 65_535);
}

function wholeNumber(text: string, min: number, expected: string, max = Number.MAX_SAFE_INTEGER): number {
  const number = Number(text);
  if (!/^\d+$/.test(text) || number < min || number > max) throw new Error(expected);
  return number;
}

/** A URL of PostgreSQL; other schemes are other databases. */
export function postgresUrl(value: string): string {
  if (!/^postgres(ql)?:\/\//.test(value)) throw new Error("a URL that starts with postgres:// or postgresql://");
  return value;
}

/** A key of webhooks: any text, or `whsec_` and the base64 of the key as in Standard Webhooks. */
export function webhookSecret(value: string): string {
  if (value.startsWith("whsec_") && !/^whsec_[\w+/-]{2,}={0,2}$/.test(value)) throw new Error("base64 after whsec_");
  return value;
}

/** The name of a host with subdomains. */
export function rootHost(value: string): string {
  if (!/^[\w-]+(\.[\w-]+)*$/.test(value)) throw new Error("a host name without scheme and port");
  return value;
}

/** An address to listen on, or the name of a host; the port is a separate setting. */
export function listenHost(value: string): string {
  if (!/^[\w.-]+$/.test(value) && !ipaddr.IPv6.isValid(value)) throw new Error("an address without brackets and port");
  return value;
}

/** An address to listen on with its port: `127.0.0.1:3010`, `localhost:0`, `[::1]:3010`. */
export function listenAddress(value: string): string {
  hostAndPort(value);
  return value;
}

/** The two parts of a {@link listenAddress}. */
export function hostAndPort(value: string): Readonly<{ host: string; port: number }> {
  const [, name, address, digits = ""] = /^(?:([A-Za-z0-9.-]+)|\[([0-9A-Fa-f:.]+)\]):(\d{1,5})$/.exec(value) ?? [];
  const host = name ?? address;
  if (host === undefined || Number(digits) > 65_535) throw new Error("host:port");
  return { host, port: Number(digits) };
}

/** A block height, or `latest`. */
export function height(value: string): number | "latest" {
  if (value === "latest") return value;
  return wholeNumber(value, 0, "a height, 0 or more, or latest");
}

/** `true` or `false`. */
export function flag(value: string): boolean {
  if (value === "true" || value === "1") return true;
  if (value === "false" || value === "0") return false;
  throw new Error("true or false");
}

/** An http or https address without user information; a trailing slash is dropped. */
export function url(value: string): string {
  const parsed = URL.parse(value);
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) throw new Error("an http or https URL");
  if (parsed.username !== "" || parsed.password !== "") throw new Error("a URL without user information");
  return parsed.href.replace(/\/$/, "");
}

/** A {@link url} that paths are appended to. */
export function baseUrl(value: string): string {
  const address = url(value);
  if (/[?#]/.test(address)) throw new Error("a URL without query and fragment");
  return address;
}

/** An http or https URL with `__NAME__` in place of the name. */
export function nameUrl(value: string): string {
  if (!value.includes("__NAME__")) throw new Error("a URL with __NAME__ in place of the name");
  url(value.replaceAll("__NAME__", "name"));
  return value; // As written: URL.href would lower the case of `__NAME__` in the host.
}

/** A name as in a host, undernames before "_"; in lower case. */
export function registryName(value: string): string {
  const name = value.toLowerCase();
  if (!/^[a-z0-9_-]{0,62}[a-z0-9-]$/.test(name))
    throw new Error('a name of at most 63 characters: a–z, 0–9, "-" and "_"');
  return name;
}

/** A transaction, item or process id in canonical base64url. */
export function id(value: string): string {
  if (decodeBase64url(value)?.length !== 32) throw new Error("an id of 43 base64url characters");
  return value;
}

/** The name of a database or a cluster. */
export function identifier(value: string): string {
  if (!/^[A-Za-z_]\w{0,62}$/.test(value)) throw new Error("1–63 of A–Z, a–z, 0–9 and _, not a digit first");
  return value;
}

/** A wallet's address in canonical base64url. */
export function address(value: string): string {
  if (decodeBase64url(value)?.length !== 32) throw new Error("an address of 43 base64url characters");
  return value;
}

/** One of the words. */
export function choice<const Word extends string>(...words: readonly Word[]): (value: string) => Word {
  return (value) => {
    const word = words.find((each) => each === value);
    if (word === undefined) throw new Error(`one of ${words.join(", ")}`);
    return word;
  };
}

/** Values separated by commas; empty text is the empty list. */
export function list<Value>(read: (text: string) => Value): (value: string) => readonly Value[] {
  return (value) =>
    value
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== "")
      .map(read);
}

/** A {@link list} of at least one value. */
export function filledList<Value>(read: (text: string) => Value): (value: string) => readonly Value[] {
  return (value) => {
    const values = list(read)(value);
    if (values.length === 0) throw new Error("at least one value");
    return values;
  };
}

/** A decimal number from 0 to 1. */
export function share(value: string): number {
  const number = /^\d*\.?\d+$/.test(value) ? Number(value) : Number.NaN;
  if (!(number <= 1)) throw new Error("a number from 0 to 1, such as 0.01");
  return number;
}

/**
 * Headers as `name=value`, separated by commas, values percent-encoded.
 * Source: OpenTelemetry Protocol Exporter, "Specifying headers via environment variables".
 */
export function headerList(value: string): Readonly<Record<string, string>> {
  return Object.fromEntries(list(readHeader)(value));
}

function readHeader(pair: string): readonly [name: string, value: string] {
  const at = pair.indexOf("=");
  const name = pair.slice(0, Math.max(at, 0)).trim().toLowerCase();
  const value = decodedOf(pair.slice(at + 1).trim());
  const isValid = /^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name) && value !== undefined && /^[\t\x20-\x7e]*$/.test(value);
  if (!isValid) throw new Error("headers as name=value, separated by commas");
  return [name, value];
}

function decodedOf(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined; // an incomplete escape
  }
}

/** A gateway that content is requested from. */
export type GatewayAddress = Readonly<{
  url: string;
  /** Gateways of a lower number are used first; those of equal numbers by their measured quality. */
  priority: number;
  /** The value of `X-AR-IO-Trusted` for bytes that only this gateway vouches for. */
  trusted: boolean;
}>;

/** The priority of a URL without one. */
const priorityDefault = 1;

/**
 * Reads URLs separated by commas, or the JSON object of ar-io-node: `{"url": 1}`,
 * `{"url": {"priority": 2, "trusted": false}}`.
 */
export function gatewayList(text: string): readonly GatewayAddress[] {
  const isJson = /^\s*[[{]/.test(text);
  return isJson ? readGatewayObject(text) : list(gatewayAt)(text);
}

/** A trusted gateway of the default priority. */
export function gatewayAt(text: string): GatewayAddress {
  return { url: baseUrl(text), priority: priorityDefault, trusted: true };
}

/** Writes the list in the shortest form that {@link gatewayList} reads. */
export function writeGatewayList(gateways: readonly GatewayAddress[]): string {
  const isPlain = gateways.every(({ priority, trusted }) => priority === priorityDefault && trusted);
  if (isPlain) return gateways.map((each) => each.url).join(",");
  const entries = gateways.map(({ url: at, priority, trusted }) => [at, trusted ? priority : { priority, trusted }]);
  return JSON.stringify(Object.fromEntries(entries));
}

const gatewayListForm =
  'URLs separated by commas, or a JSON object such as {"https://a": 1} or ' +
  '{"https://a": {"priority": 2, "trusted": false}}';

function readGatewayObject(text: string): readonly GatewayAddress[] {
  const entries = Object.entries(jsonObject(text)).map(([at, value]) => readGatewayEntry(at, value));
  const urls = new Set(entries.map((each) => each.url));
  if (urls.size !== entries.length) throw new Error("each URL once");
  return entries.toSorted((left, right) => left.priority - right.priority);
}

function jsonObject(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Text that is not JSON has the same message as JSON of another shape.
  }
  throw new Error(gatewayListForm);
}

function readGatewayEntry(at: string, value: unknown): GatewayAddress {
  if (typeof value === "number") return { url: baseUrl(at), priority: priorityOf(value), trusted: true };
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error(gatewayListForm);
  const { priority = priorityDefault, trusted = true, ...others } = value as Record<string, unknown>;
  if (typeof trusted !== "boolean" || Object.keys(others).length > 0) throw new Error(gatewayListForm);
  return { url: baseUrl(at), priority: priorityOf(priority), trusted };
}

function priorityOf(value: unknown): number {
  if (typeof value !== "number" || !Number.isFinite(value)) throw new Error(gatewayListForm);
  return value;
}
