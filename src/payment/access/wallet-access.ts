/**
 * Access of a wallet to its own account: by a signature with an unused nonce, or by a token that a signature obtained.
 * Source: docs/reference/payment.md#signed-requests; docs/reference/payment.md#tokens-of-a-session.
 * @module
 */
import { Failure } from "../../failures.ts";
import { decodeBase64url, encodeBase64url } from "../../lib/base64url.ts";
import { concatBytes, utf8Bytes } from "../../lib/bytes.ts";
import { type Clock, unixSeconds } from "../../lib/clock.ts";
import { sha256 } from "../../lib/hash.ts";
import { isJsonObject, type JsonObject, readJson } from "../../lib/json.ts";
import type { LedgerDatabase, Tx } from "../../store/ledger/ledger-database.ts";
import { readAddress, type UserAddress } from "../addresses.ts";
import { readBalance } from "../credits/credits.ts";
import { isSigned, type RequestSigner, readSigner, type SignedRequest } from "./signed-request.ts";

/** An authenticated wallet. */
export type AdmittedWallet = Readonly<{
  address: UserAddress;
  /** Whether the address ever had credits. */
  hasAccount: boolean;
  /** With a token, the response contains no new token. */
  by: "signature" | "token";
}>;

/** Authenticates wallets. */
export type WalletAccess = Readonly<{
  /**
   * Authenticates a request. The nonce of a signature is used up when this resolves.
   *
   * @returns `undefined` for a request with neither a signature nor a token. With both, the signature decides.
   * @throws Failure `invalid_signature` for an invalid or repeated signature or an invalid token,
   *   `too_many_requests`.
   */
  admit: (request: SignedRequest) => Promise<AdmittedWallet | undefined>;
  /** Issues a token for a wallet that has signed. */
  issue: (address: UserAddress) => string;
}>;

export type WalletAccessOptions = Readonly<{ database: LedgerDatabase; tokens: WalletTokens; clock: Clock }>;

const bearerPattern = /^Bearer +(\S+)$/i;
const bearerWord = /^Bearer(?: |$)/i;

/** Creates the access to the accounts of a ledger. */
export function createWalletAccess({ database, tokens, clock }: WalletAccessOptions): WalletAccess {
  const hasAccount = async (address: UserAddress): Promise<boolean> => {
    const now = clock();
    return (await database.read((tx) => readBalance(tx, address, now))) !== undefined;
  };

  async function bySignature(request: SignedRequest): Promise<AdmittedWallet> {
    const signer = readSigner(request);
    const { address } = signer;
    const now = clock();
    const isKnown = await database.write(async (tx) => {
      const balance = await readBalance(tx, address, now);
      await (balance === undefined ? claimStrangersNonce(tx, signer) : claimNonce(tx, signer, now));
      return balance !== undefined;
    });
    return { address, hasAccount: isKnown, by: "signature" };
  }

  async function byToken(authorization: string): Promise<AdmittedWallet> {
    const token = bearerPattern.exec(authorization)?.[1];
    const address = token === undefined ? undefined : tokens.read(token);
    if (address === undefined) throw new Failure("invalid_signature", { reason: "the token is not valid" });
    return { address, hasAccount: await hasAccount(address), by: "token" };
  }

  return {
    admit: async (request) => {
      if (isSigned(request.headers)) return await bySignature(request);
      const authorization = request.headers.get("authorization") ?? "";
      // Other schemes belong to a proxy or a browser.
      return bearerWord.test(authorization) ? await byToken(authorization) : undefined;
    },
    issue: tokens.issue,
  };
}

// Session tokens (JSON Web Tokens), which spare the wallet a new signature for an hour. One algorithm, one audience,
// one lifetime: the token's header is compared with them and never followed.
// Source: docs/reference/payment.md#tokens-of-a-session; RFC 7519; RFC 7515 §3; RFC 8725 §3.1, §3.9.

/** Issues tokens and reads them. */
export type WalletTokens = Readonly<{
  issue: (address: UserAddress) => string;
  /** The address of a token; `undefined` for a foreign or expired token, or for another audience. */
  read: (token: string) => UserAddress | undefined;
}>;

/** Lifetime of a token, in seconds. */
export const tokenLifetimeSeconds = 3_600;

/** Largest difference between the clocks of several processes with one secret, in seconds. */
const skewSecondsMax = 60;

const audience = "payment";
const head = { alg: "HS256", typ: "JWT" };

/** Issued tokens have about 250 characters. */
const tokenLengthMax = 1_024;

const tokenPattern = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/;

/**
 * Creates the tokens of one service.
 *
 * @param secret - 32 random bytes, or the operator's secret.
 */
export function createWalletTokens(secret: Uint8Array, clock: Clock): WalletTokens {
  const sign = (signed: string) => new Bun.CryptoHasher("sha256", secret).update(signed).digest();
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
      if (signature?.length !== expected.length || !crypto.timingSafeEqual(signature, expected)) return undefined;
      const claims = readPart(claimsPart);
      return claims === undefined ? undefined : walletOf(claims, unixSeconds(clock));
    },
  };
}

function walletOf(claims: JsonObject, now: number): UserAddress | undefined {
  const { walletAddress, aud, exp } = claims;
  if (aud !== audience || typeof walletAddress !== "string" || typeof exp !== "number") return undefined;
  // Another service may share the operator's secret: its tokens are limited to the same lifetime.
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

// Used nonces, with the signed messages: a captured signature cannot be used a second time. Nonces of accounts are
// stored for ever, so each account may use a limited number a day. The number of addresses without an account is
// unlimited, so only the newest of their nonces are stored. They still reject a signature that was captured before its
// address had an account.
// Source: docs/reference/payment.md#signed-requests.

/** Nonces that an account may use in one day of UTC. */
export const noncesPerDayMax = 10_000;

/** Stored nonces of addresses without an account: 15 MB. */
export const strangersNoncesMax = 100_000;

const dayMs = 86_400_000n;

/**
 * Claims a nonce of a signer with an account, in this transaction.
 *
 * @param now - Unix milliseconds.
 * @throws Failure `invalid_signature` when it was used before, also before the account existed;
 *   `too_many_requests` when the day's nonces are used up.
 */
export async function claimNonce(tx: Tx, signer: RequestSigner, now: number): Promise<void> {
  const { address } = signer;
  for (const digest of digestsOf(signer)) {
    if (await isStrangers(tx, digest)) throw usedBefore(address);
    const claimed = await tx.run("INSERT INTO nonces (digest) VALUES (?) ON CONFLICT (digest) DO NOTHING", digest);
    if (claimed !== 1) throw usedBefore(address);
  }
  const row = await tx.get<{ used: bigint }>(
    "INSERT INTO nonce_days (address, day, used) VALUES (?, ?, 1) ON CONFLICT (address) DO UPDATE SET " +
      "used = CASE WHEN nonce_days.day = excluded.day THEN nonce_days.used + 1 ELSE 1 END, day = excluded.day " +
      "RETURNING used",
    address,
    BigInt(now) / dayMs,
  );
  if (row === undefined || row.used > noncesPerDayMax)
    throw new Failure("too_many_requests", { reason: "the day's nonces are used up", address });
}

/**
 * Claims a nonce of a signer without an account; the oldest such nonce may be removed.
 *
 * @param storedMax - Number of stored nonces, 1 or more.
 * @throws Failure `invalid_signature` when it was used before and is still stored.
 */
export async function claimStrangersNonce(
  tx: Tx,
  signer: RequestSigner,
  storedMax = strangersNoncesMax,
): Promise<void> {
  const last = await tx.get<{ turn: bigint }>("SELECT turn FROM strangers_nonces ORDER BY turn DESC LIMIT 1");
  let position = last?.turn ?? 0n;
  for (const digest of digestsOf(signer)) {
    // An address that had only approvals, and has them no longer, has no account again.
    const known = await tx.get<{ digest: string }>("SELECT digest FROM nonces WHERE digest = ?", digest);
    if (known !== undefined || (await isStrangers(tx, digest))) throw usedBefore(signer.address);
    position += 1n;
    await tx.run("INSERT INTO strangers_nonces (digest, turn) VALUES (?, ?)", digest, position);
  }
  await tx.run("DELETE FROM strangers_nonces WHERE turn <= ?", position - BigInt(storedMax));
}

async function isStrangers(tx: Tx, digest: string): Promise<boolean> {
  const sql = "SELECT turn FROM strangers_nonces WHERE digest = ?";
  return (await tx.get<{ turn: bigint }>(sql, digest)) !== undefined;
}

/**
 * Digests of the nonce and of the signed message: a signature over more than the nonce also fits requests whose nonce
 * begins earlier or later. One digest when only the nonce was signed. An address contains no line break, so two pairs
 * never have the same bytes.
 */
function digestsOf({ address, nonce, message }: RequestSigner): ReadonlySet<string> {
  const head = utf8Bytes(`${address}\n`);
  return new Set([utf8Bytes(nonce), message].map((bytes) => encodeBase64url(sha256(concatBytes([head, bytes])))));
}

function usedBefore(address: UserAddress): Failure {
  return new Failure("invalid_signature", { reason: "the nonce was used before", address });
}
