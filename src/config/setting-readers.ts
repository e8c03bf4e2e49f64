/**
 * Readers of single settings: text from the environment in, a value or a plain reason out.
 * @module
 */
import { isIPv6 } from "node:net";
import { decodeBase64url } from "../lib/base64url.ts";

/** One setting: how it is read, what it does, what it is when unset. */
export type Setting<Value> = Readonly<{
  /** Throws an Error whose message continues the setting's name: "must be a whole number, 0 or more". */
  read: (text: string) => Value;
  unit: string;
  /** One sentence. */
  effect: string;
  /** Other names under which operators already set it. */
  aliases?: readonly string[];
  /** Writes a value as {@link read} takes it; unset is its text, or a list's texts with commas. */
  write?(value: Value): string;
  /** Never printed; `NAME_FILE` names a file that holds it. */
  secret?: true;
  /** What `cairn dev` takes when unset, where that differs. */
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
  if (value === "") throw new Error("must not be empty");
  return value;
}

/** Text that nobody guesses: of at least 32 characters. */
export function secretText(value: string): string {
  if (value.length < secretLengthMin) throw new Error(`must have at least ${secretLengthMin} characters`);
  return value;
}

/** Source: RFC 7518 §3.2: a key has at least the bits of its hash. */
const secretLengthMin = 32;

/** A whole number from 0 to 2^53 − 1. */
export function count(value: string): number {
  const number = Number(value);
  if (!/^\d+$/.test(value) || !Number.isSafeInteger(number)) throw new Error("must be a whole number, 0 or more");
  return number;
}

/** A whole number from 1 to 2^53 − 1. */
export function positive(value: string): number {
  const number = Number(value);
  if (!/^\d+$/.test(value) || !Number.isSafeInteger(number) || number < 1)
    throw new Error("must be a whole number, 1 or more");
  return number;
}

/** A whole number of milliseconds, at least 1. */
export function duration(value: string): number {
  const milliseconds = count(value);
  if (milliseconds < 1) throw new Error("must be at least 1 millisecond");
  return milliseconds;
}

/** A TCP port; 0 asks the system for a free one. */
export function port(value: string): number {
  const number = count(value);
  if (number > 65_535) throw new Error("must be a port, 0 to 65535");
  return number;
}

/** Where PostgreSQL is reached: other schemes are other databases, or none. */
export function postgresUrl(value: string): string {
  if (!/^postgres(ql)?:\/\//.test(value)) throw new Error("must be a URL that begins with postgres://");
  return value;
}

/** A key of webhooks: any text, or what Standard Webhooks has before the base64 of its bytes. */
export function webhookSecret(value: string): string {
  if (value.startsWith("whsec_") && !/^whsec_[\w+/-]{2,}={0,2}$/.test(value))
    throw new Error("must have base64 after `whsec_`");
  return value;
}

/** A host's name, below which others are. */
export function rootHost(value: string): string {
  if (!/^[\w-]+(\.[\w-]+)*$/.test(value)) throw new Error("must be the name of a host, without scheme and port");
  return value;
}

/** An address to listen on, or a name that stands for one; its port has a setting of its own. */
export function listenHost(value: string): string {
  if (!/^[\w.-]+$/.test(value) && !isIPv6(value)) throw new Error("must be an address, without brackets and port");
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
  if (host === undefined || Number(digits) > 65_535) throw new Error("must be host:port");
  return { host, port: Number(digits) };
}

/** A block height, or `latest`. */
export function height(value: string): number | "latest" {
  if (value === "latest") return value;
  if (!/^\d+$/.test(value)) throw new Error("must be a height, 0 or more, or `latest`");
  return count(value);
}

/** `true` or `false`. */
export function flag(value: string): boolean {
  if (value === "true" || value === "1") return true;
  if (value === "false" || value === "0") return false;
  throw new Error("must be true or false");
}

/** An http or https address without user information; a trailing slash is dropped. */
export function url(value: string): string {
  const parsed = URL.parse(value);
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) throw new Error("must be an http or https URL");
  if (parsed.username !== "" || parsed.password !== "") throw new Error("must not carry user information");
  return parsed.href.replace(/\/$/, "");
}

/** An http or https address with `__NAME__` where a name is to stand. */
export function nameUrl(value: string): string {
  if (!value.includes("__NAME__")) throw new Error("must have __NAME__ where the name stands");
  url(value.replaceAll("__NAME__", "name"));
  return value; // As it was written: an address that is written anew has no capitals in its host.
}

/** A name as it stands in a host, undernames before "_"; in lower case. */
export function registryName(value: string): string {
  const name = value.toLowerCase();
  if (!/^[a-z0-9_-]{0,62}[a-z0-9-]$/.test(name))
    throw new Error('must be a name of at most 63 letters, digits, "-" and "_"');
  return name;
}

/** A transaction, item or process id, in the one spelling that its bytes have. */
export function id(value: string): string {
  if (decodeBase64url(value)?.length !== 32) throw new Error("must be an id of 43 base64url characters");
  return value;
}

/** A wallet's address, in the one spelling that its bytes have. */
export function address(value: string): string {
  if (decodeBase64url(value)?.length !== 32) throw new Error("must be an address of 43 base64url characters");
  return value;
}

/** One of some words. */
export function choice<const Word extends string>(...words: readonly Word[]): (value: string) => Word {
  return (value) => {
    const word = words.find((each) => each === value);
    if (word === undefined) throw new Error(`must be one of ${words.join(", ")}`);
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
