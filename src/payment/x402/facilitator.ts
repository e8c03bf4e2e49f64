/**
 * A facilitator: a service that carries authorizations out and pays for the gas.
 *
 * It has no word for "not yet", so all that it does not clearly refuse may have been sent; and a refusal that names a
 * transaction is one that it has lost from sight.
 * Source: docs/reference/payment.md#x402; x402 specification §7.2 (`POST /settle`).
 * @module
 */
import { randomBytes } from "node:crypto";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { type HttpTimeouts, openHttp } from "../../lib/http-client.ts";
import { isJsonObject, type JsonValue, readJson, writeJson } from "../../lib/json.ts";
import type { Authorization } from "../evm/authorization.ts";
import { readHash } from "../evm/values.ts";
import { writeHexBytes } from "../evm/words.ts";
import { authorizationFor, type FacilitatorAccess } from "./facilitator-access.ts";
import { requirementV1, requirementV2 } from "./requirement.ts";
import type { Carried, SettlementOrder, Settler } from "./settler.ts";
import type { X402Terms } from "./x402.ts";

/** A facilitator, open. */
export type Facilitator = Readonly<{ settle: Settler; close: () => void }>;

/** What it is asked with. */
export type FacilitatorOptions = Readonly<{
  /** `http:` or `https:`; `/settle` is put after it. */
  url: string;
  terms: X402Terms;
  /** Undefined: it asks nobody who they are. */
  access?: FacilitatorAccess | undefined;
  clock?: Clock;
  timeouts?: HttpTimeouts;
}>;

/** It waits for a block, which takes a chain some seconds. */
const timeoutsDefault: HttpTimeouts = { firstByteMs: 25_000, stallMs: 5_000, totalMs: 30_000 };

/** An answer has a few hundred bytes. */
const responseBytesMax = 64 * 2 ** 10;

const reasonLengthMax = 300;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Opens the client of one. */
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
      if (response.kind === "trouble") return { kind: "unknown", transaction: undefined, reason: response.detail };
      return withoutKey(readSettlement(readJson(decoder.decode(response.body)), response.status), access);
    },
    close: http.close,
  };
}

/** A facilitator may repeat what it was sent; reasons are logged and sent on. */
function withoutKey(carried: Carried, access: FacilitatorAccess | undefined): Carried {
  if (access?.kind !== "bearer" || !("reason" in carried)) return carried;
  return { ...carried, reason: carried.reason.replaceAll(access.key, "…") };
}

/** What it is asked: the payment as its version writes it, and what was asked for, which is exactly that. */
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
  const told = response["errorReason"];
  const reason = typeof told === "string" && told !== "" ? told.slice(0, reasonLengthMax) : `status ${status}`;
  if (response["success"] === false && transaction === undefined) return { kind: "refused", reason };
  // It does not take orders from us, so it has carried nothing out.
  if (status === 401 || status === 403)
    return { kind: "untried", reason: `the facilitator refuses the key: ${reason}` };
  return { kind: "unknown", transaction, reason };
}
