/**
 * Recognises files that are private keys, so that `cairn upload` does not publish them along with a folder.
 *
 * Only content that is certainly a key counts: a page that mentions a PEM header, or a library that contains one, is
 * not a key. Forms that look like other data (64 hexadecimal digits) count only under a name that says "key".
 * Source: RFC 7468 §10, §11 (PEM); RFC 7517 §4 and RFC 7518 §6 (JSON Web Key); RFC 8037 §2 (OKP).
 * @module
 */
import { createPrivateKey } from "node:crypto";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, readJson } from "../../lib/json.ts";
import { solanaKeyIn } from "../wallet-file.ts";

/** Whether a file with this name and content is a private key. */
export type KeyTest = (name: string, content: Uint8Array) => boolean;

/** Larger files are not examined: keys have some kilobytes, with a chain of certificates some more. Bytes. */
export const keyBytesMax = 2 ** 20;

/** Larger files are not parsed as DER. Bytes. */
const derBytesMax = 16 * 1_024;

/**
 * Creates the test.
 *
 * @param wallet - Text of the wallet that signs: a file that repeats one of its secrets is a key in whatever format.
 */
export function createKeyTest(wallet: string): KeyTest {
  const secrets = secretsOf(wallet);
  return (name, content) => {
    if (content.length > keyBytesMax) return false;
    if (isDerKey(name, content)) return true;
    const text = decode(content);
    if (secrets.some((secret) => text.includes(secret))) return true;
    return hasPemKey(text) || hasOtherArmour(text) || isKeyJson(name, text) || isKeyText(name, text);
  };
}

/** A text that is shorter could be in any file. Characters. */
const secretLengthMin = 32;

/** Texts of a wallet that must not be printed: private members of a JSON Web Key, or the digits of any other key. */
function secretsOf(wallet: string): string[] {
  const value = readJson(wallet);
  if (isJsonArray(value)) return []; // An array of numbers is recognised by its shape.
  const texts = isJsonObject(value) ? privateMembers.map((name) => value[name]) : [wallet.trim().replace(/^0x/i, "")];
  return texts.filter((text): text is string => typeof text === "string" && text.length >= secretLengthMin);
}

const privateMembers = ["d", "p", "q", "dp", "dq", "qi"];

/** Keys are ASCII, so one byte is one character, but for UTF-16 with its byte order mark, as some shells write it. */
function decode(content: Uint8Array): string {
  const [first, second, third] = content;
  if (first === 0xff && second === 0xfe) return new TextDecoder("utf-16le").decode(content);
  if (first === 0xfe && second === 0xff) return new TextDecoder("utf-16be").decode(content);
  const hasMark = first === 0xef && second === 0xbb && third === 0xbf;
  return Buffer.from(hasMark ? content.subarray(3) : content).toString("latin1");
}

const pemHeader = /-{4,5} ?BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}/g;

/** Base64 of the smallest private key is longer. Characters. */
const pemBodyLengthMin = 40;

/** Whether a PEM block holds a body: between code and prose the header alone proves nothing. */
function hasPemKey(text: string): boolean {
  for (const match of text.matchAll(pemHeader)) {
    const start = match.index + match[0].length;
    const end = text.indexOf("----", start);
    if (isPemBody(text.slice(start, end === -1 ? text.length : end))) return true;
  }
  return false;
}

/** Base64 with its headers ("Proc-Type: …"), in lines of its own or with the `\n` of a JSON string. */
function isPemBody(text: string): boolean {
  const lines = text.split(/\r\n|\r|\n|\\r\\n|\\n/).filter((line) => !/^\s*[\w-]{1,40}:\s/.test(line));
  const body = lines.join("").replaceAll(/\s/g, "");
  return body.length >= pemBodyLengthMin && /^[A-Za-z0-9+/=]+$/.test(body);
}

/** Formats with a header of their own: PuTTY and age. */
function hasOtherArmour(text: string): boolean {
  return /^PuTTY-User-Key-File-\d/.test(text) || /^\s*AGE-SECRET-KEY-1[0-9A-Z]{50,}/m.test(text);
}

/** Keys without armour: PKCS #8, PKCS #1 and SEC 1; PKCS #12 only by its name, for it is encrypted. */
function isDerKey(name: string, content: Uint8Array): boolean {
  if (content[0] !== 0x30) return false;
  if (/\.(p12|pfx)$/i.test(name)) return true;
  if (content.length > derBytesMax) return false;
  return (["pkcs8", "pkcs1", "sec1"] as const).some((type) => {
    try {
      createPrivateKey({ key: Buffer.from(content), format: "der", type });
      return true;
    } catch {
      // It is not a key of this type.
      return false;
    }
  });
}

/** Deeper nesting than this is not written by hand, and is not examined. */
const depthMax = 64;

function isKeyJson(name: string, text: string): boolean {
  if (!/^\s*[[{]/.test(text)) return false;
  const value = readJson(text);
  if (value === undefined) return false;
  if (isJsonArray(value) && isKeyArray(name, value)) return true;
  return holdsKeyObject(value, depthMax);
}

/** A key pair of 64 bytes as the Solana CLI writes it; a seed of 32 only under a name that says so. */
function isKeyArray(name: string, values: readonly JsonValue[]): boolean {
  if (values.length !== 64 && !(values.length === 32 && namesKey(name))) return false;
  return values.every((value) => typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 255);
}

function holdsKeyObject(value: JsonValue, depth: number): boolean {
  if (depth === 0) return false;
  if (isJsonArray(value)) return value.some((each) => holdsKeyObject(each, depth - 1));
  if (!isJsonObject(value)) return false;
  return (
    isPrivateJwk(value) || isKeystore(value) || Object.values(value).some((each) => holdsKeyObject(each, depth - 1))
  );
}

/** A JSON Web Key with a private member; wallets in use omit `kty` at times. */
function isPrivateJwk(value: JsonObject): boolean {
  const has = (...names: string[]) =>
    names.every((name) => typeof value[name] === "string" && /^[\w-]{16,}={0,2}$/.test(String(value[name])));
  switch (value["kty"]) {
    case "RSA":
      return has("d") || has("p", "q");
    case "EC":
    case "OKP":
      return has("d");
    case "oct":
      return has("k");
    default:
      return has("n", "d") || has("n", "p", "q") || (typeof value["crv"] === "string" && has("d"));
  }
}

/** An encrypted Ethereum key (Web3 Secret Storage). */
function isKeystore(value: JsonObject): boolean {
  const crypto = value["crypto"] ?? value["Crypto"];
  return isJsonObject(crypto) && typeof crypto["ciphertext"] === "string" && crypto["kdf"] !== undefined;
}

/** A lone line that is a key: a Solana key pair, which proves itself; hexadecimal digits only under such a name. */
function isKeyText(name: string, text: string): boolean {
  const line = text.trim();
  if (line.length > 200) return false;
  if (/^(?:0x)?(?:[0-9a-f]{64}|[0-9a-f]{128})$/i.test(line)) return namesKey(name);
  return solanaKeyIn(line);
}

function namesKey(name: string): boolean {
  return /\.(key|sk|priv|pk8)$/i.test(name) || /key|secret|seed|wallet|priv/i.test(name);
}
