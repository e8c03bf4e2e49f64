/**
 * Settlement of authorizations: by the gateway's own transaction, or by a facilitator.
 * @module
 */
import { ed25519 } from "@noble/curves/ed25519.js";
import { encodeBase64url } from "../../lib/base64url.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { type HttpTimeouts, openHttp } from "../../lib/http-client.ts";
import { isJsonObject, type JsonValue, readJson, writeJson } from "../../lib/json.ts";
import type { Authorization } from "../evm/authorization.ts";
import type { EvmSender } from "../evm/evm-sender.ts";
import { readHash, writeHexBytes } from "../evm/evm-values.ts";
import { writeAuthorizationCall } from "../evm/wallet-signature.ts";
import type { X402Terms } from "./x402.ts";
import { requirementV1, requirementV2 } from "./x402-requirement.ts";
import { domainOf } from "./x402-validation.ts";

/** A settlement request. */
type SettlementOrder = Readonly<{
  version: 1 | 2;
  authorization: Authorization;
  signature: Uint8Array;
  /** The required amount: the authorization's value, or less in version 1. */
  resource: string;
}>;

/** The outcome. The chain must confirm it. */
type Carried =
  /** Reported as sent or settled. */
  | Readonly<{ kind: "sent"; transaction: string | undefined }>
  /** Possibly sent. */
  | Readonly<{ kind: "unknown"; transaction: string | undefined; reason: string }>
  /** Reported as invalid and not sent. */
  | Readonly<{ kind: "rejected"; reason: string }>
  /** Not sent: the attempt was not possible. */
  | Readonly<{ kind: "untried"; reason: string }>
  /** Not sent: `onSending` returned false. */
  | Readonly<{ kind: "withheld" }>;

/**
 * Settles authorizations.
 *
 * @param onSending - Awaited before a request that could move money, with the transaction if known. When it returns
 *   false or rejects, nothing is sent.
 */
export type Settler = (
  order: SettlementOrder,
  onSending: (transaction: string | undefined) => Promise<boolean>,
  signal: AbortSignal,
) => Promise<Carried>;

// Direct settlement: a transaction of the gateway's account, which pays for the gas.

export function createDirectSettler(sender: Pick<EvmSender, "send">, terms: X402Terms): Settler {
  const domain = domainOf(terms);
  return async ({ authorization, signature }, onSending, signal) => {
    const call = writeAuthorizationCall(domain, authorization, signature);
    const outcome = await sender.send(call, onSending, signal);
    switch (outcome.kind) {
      case "sent":
      case "unknown":
      case "withheld":
        return outcome;
      case "reverts":
        return { kind: "rejected", reason: outcome.reason };
      case "fault":
        return { kind: "untried", reason: outcome.detail };
    }
  };
}

// Authentication at a facilitator: a bearer key, or a token of Coinbase's Developer Platform that is signed for
// each request with the customer's Ed25519 key and holds for two minutes.
// Source: RFC 6750; RFC 7519 and RFC 8037 (EdDSA); https://docs.cdp.coinbase.com/api-reference/v2/authentication.

/** The credentials of requests to a facilitator. */
export type FacilitatorAccess =
  | Readonly<{ kind: "bearer"; key: string }>
  /** @see readPlatformSecret */
  | Readonly<{ kind: "platform"; keyId: string; privateKey: Uint8Array }>;

/** Lifetime of a token. Seconds. */
const tokenSeconds = 120n;

const nonceSize = 16;

/** Reads the secret of a platform key: base64 of the private key and the public one, 32 bytes each. */
export function readPlatformSecret(text: string): Uint8Array | undefined {
  if (!/^[A-Za-z0-9+/]{86}==$/.test(text)) return undefined;
  const bytes = Uint8Array.fromBase64(text);
  const privateKey = bytes.subarray(0, 32);
  return ed25519.getPublicKey(privateKey).toHex() === bytes.subarray(32).toHex() ? privateKey : undefined;
}

/** Whether a text can be sent as a bearer key. */
export function isBearerKey(text: string): boolean {
  return /^[A-Za-z0-9._~+/-]{1,4096}=*$/.test(text);
}

/**
 * Writes the value of a request's `Authorization` header.
 *
 * @param random - Bytes for the token's nonce.
 */
function authorizationFor(
  access: FacilitatorAccess,
  method: string,
  url: string,
  clock: Clock,
  random: (size: number) => Uint8Array,
): string {
  if (access.kind === "bearer") return `Bearer ${access.key}`;
  const { host, pathname } = new URL(url);
  const now = BigInt(clock()) / 1_000n;
  const header = { alg: "EdDSA", kid: access.keyId, typ: "JWT", nonce: random(nonceSize).toHex() };
  const claims = {
    sub: access.keyId,
    iss: "cdp",
    uris: [`${method} ${host}${pathname}`],
    iat: now,
    nbf: now,
    exp: now + tokenSeconds,
  };
  const content = `${encoded(header)}.${encoded(claims)}`;
  const signature = ed25519.sign(new TextEncoder().encode(content), access.privateKey);
  return `Bearer ${content}.${encodeBase64url(signature)}`;
}

function encoded(value: JsonValue): string {
  return encodeBase64url(new TextEncoder().encode(writeJson(value)));
}

// A facilitator: a service that settles authorizations and pays for the gas.
//
// The protocol has no status for "not yet", so everything that is not clearly rejected may have been sent. After a
// rejection with a transaction, the outcome of the transaction is unknown.
// Source: docs/reference/payment.md#x402; x402 specification §7.2 (`POST /settle`).

type Facilitator = Readonly<{ settle: Settler; close: () => void }>;

type FacilitatorOptions = Readonly<{
  /** `http:` or `https:`; `/settle` is appended. */
  url: string;
  terms: X402Terms;
  /** Undefined for a facilitator without authentication. */
  access?: FacilitatorAccess | undefined;
  clock?: Clock;
  timeouts?: HttpTimeouts;
}>;

/** A facilitator waits for a block, which takes some seconds. */
const timeoutsDefault: HttpTimeouts = { firstByteMs: 25_000, stallMs: 5_000, totalMs: 30_000 };

/** A response has a few hundred bytes. */
const responseBytesMax = 64 * 2 ** 10;

const reasonLengthMax = 300;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const randomBytes = (size: number) => crypto.getRandomValues(new Uint8Array(size));

export function openFacilitator(options: FacilitatorOptions): Facilitator {
  const { url, terms, access, clock = systemClock, timeouts = timeoutsDefault } = options;
  const http = openHttp(timeouts);
  const settleUrl = `${url.replace(/\/+$/, "")}/settle`;
  const identified = (): Readonly<Record<string, string>> =>
    access === undefined ? {} : { authorization: authorizationFor(access, "POST", settleUrl, clock, randomBytes) };
  return {
    settle: async (order, onSending, signal) => {
      const body = encoder.encode(writeJson(settleBody(terms, order)));
      const headers = { "content-type": "application/json", accept: "application/json", ...identified() };
      if (!(await onSending(undefined))) return { kind: "withheld" };
      const response = await http.whole({ method: "POST", url: settleUrl, headers, body }, responseBytesMax, signal);
      if (response.kind === "fault") return { kind: "unknown", transaction: undefined, reason: response.detail };
      return withoutKey(readSettlement(readJson(decoder.decode(response.body)), response.status), access);
    },
    close: http.close,
  };
}

/** Removes the key from a reason, which is logged and forwarded: a facilitator may repeat request headers. */
function withoutKey(carried: Carried, access: FacilitatorAccess | undefined): Carried {
  if (access?.kind !== "bearer" || !("reason" in carried)) return carried;
  return { ...carried, reason: carried.reason.replaceAll(access.key, "…") };
}

/** The body of a request: the payment in the format of its version, and the matching requirement. */
function settleBody(terms: X402Terms, { version, authorization, signature, resource }: SettlementOrder): JsonValue {
  const payload = { signature: writeHexBytes(signature), authorization: writeAuthorization(authorization) };
  const what = { url: resource, description: "", mimeType: "application/json" };
  if (version === 1) {
    const paymentRequirements = requirementV1(terms, authorization.value, what);
    const { scheme, network } = paymentRequirements;
    return {
      x402Version: 1,
      paymentPayload: { x402Version: 1, scheme, network, payload },
      paymentRequirements,
    };
  }
  const paymentRequirements = requirementV2(terms, authorization.value);
  const paymentPayload = { x402Version: 2, resource: what, accepted: paymentRequirements, payload };
  return { x402Version: 2, paymentPayload, paymentRequirements };
}

function writeAuthorization({ from, to, value, validAfter, validBefore, nonce }: Authorization) {
  const numbers = { value, validAfter, validBefore };
  const texts = Object.entries(numbers).map(([name, number]) => [name, number.toString()] as const);
  return { from, to, ...Object.fromEntries(texts), nonce };
}

function readSettlement(value: JsonValue | undefined, status: number): Carried {
  const response = isJsonObject(value) ? value : {};
  const transaction = readHash(response["transaction"]);
  if (response["success"] === true && status < 300) return { kind: "sent", transaction };
  const errorReason = response["errorReason"];
  const reason =
    typeof errorReason === "string" && errorReason !== "" ? errorReason.slice(0, reasonLengthMax) : `status ${status}`;
  if (response["success"] === false && transaction === undefined) return { kind: "rejected", reason };
  // Without authentication a facilitator settles nothing.
  if (status === 401 || status === 403)
    return { kind: "untried", reason: `the facilitator rejects the key: ${reason}` };
  return { kind: "unknown", transaction, reason };
}
