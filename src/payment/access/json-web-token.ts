/**
 * Tokens sent in response to a signed balance request, so that the wallet need not sign again for an hour.
 *
 * One algorithm, one audience, one lifetime: what a token's header says of itself is compared, never followed.
 * Source: docs/reference/payment.md#tokens-of-a-session; RFC 7519; RFC 7515 §3; RFC 8725 §3.1 (algorithms), §3.9
 * (audience).
 * @module
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { decodeBase64url, encodeBase64url } from "../../lib/base64url.ts";
import { utf8Bytes } from "../../lib/bytes.ts";
import { type Clock, unixSeconds } from "../../lib/clock.ts";
import { isJsonObject, type JsonObject, readJson } from "../../lib/json.ts";
import { readAddress, type UserAddress } from "../addresses.ts";

/** Issues tokens and reads them. */
export type WalletTokens = Readonly<{
  issue: (address: UserAddress) => string;
  /** Whose token it is; `undefined` for one that is not ours, no longer valid, or for another audience. */
  read: (token: string) => UserAddress | undefined;
}>;

/** How long a token is valid, in seconds. */
export const tokenLifetimeSeconds = 3_600;

/** How far the clocks of several processes with one secret may be apart. */
const skewSecondsMax = 60;

const audience = "payment";
const head = { alg: "HS256", typ: "JWT" };

/** Ours have about 250 characters. */
const tokenLengthMax = 1_024;

const tokenPattern = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/;

/**
 * Creates the tokens of one service.
 *
 * @param secret - Not to be guessed: 32 random bytes, or what an operator chose.
 */
export function createWalletTokens(secret: Uint8Array, clock: Clock): WalletTokens {
  const sign = (signed: string) => createHmac("sha256", secret).update(signed).digest();
  return {
    issue: (address) => {
      const now = unixSeconds(clock);
      const claims = { walletAddress: address, aud: audience, iat: now, exp: now + tokenLifetimeSeconds };
      const signed = `${writePart(head)}.${writePart(claims)}`;
      return `${signed}.${encodeBase64url(sign(signed))}`;
    },
    read: (token) => {
      const [, headPart, claimsPart, signaturePart] =
        token.length > tokenLengthMax ? [] : (tokenPattern.exec(token) ?? []);
      if (headPart === undefined || claimsPart === undefined || signaturePart === undefined) return undefined;
      if (readPart(headPart)?.["alg"] !== head.alg) return undefined;
      const expected = sign(`${headPart}.${claimsPart}`);
      const signature = decodeBase64url(signaturePart);
      if (signature?.length !== expected.length || !timingSafeEqual(signature, expected)) return undefined;
      const claims = readPart(claimsPart);
      return claims === undefined ? undefined : walletOf(claims, unixSeconds(clock));
    },
  };
}

function walletOf(claims: JsonObject, now: number): UserAddress | undefined {
  const { walletAddress, aud, exp } = claims;
  if (aud !== audience || typeof walletAddress !== "string" || typeof exp !== "number") return undefined;
  // The secret may be an operator's, who gives it to others: a token of theirs lives no longer than ours do.
  const isCurrent = now < exp && exp <= now + tokenLifetimeSeconds + skewSecondsMax;
  return isCurrent ? readAddress(walletAddress)?.address : undefined;
}

function writePart(value: JsonObject): string {
  return encodeBase64url(utf8Bytes(JSON.stringify(value)));
}

function readPart(part: string): JsonObject | undefined {
  const bytes = decodeBase64url(part);
  if (bytes === undefined) return undefined;
  try {
    const value = readJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return isJsonObject(value) ? value : undefined;
  } catch {
    // Text that is not JSON is not a token.
    return undefined;
  }
}
