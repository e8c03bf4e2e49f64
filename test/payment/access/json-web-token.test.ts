/**
 * Wallets' tokens: only ours, only for an hour, only for payments.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { createHmac, createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import fc from "fast-check";
import { createWalletTokens, tokenLifetimeSeconds } from "../../../src/payment/access/wallet-access.ts";
import { readAddress, type UserAddress } from "../../../src/payment/addresses.ts";

const secret = new Uint8Array(32).fill(7);
const issuedAt = 1_700_000_000;
const addresses = [
  "1seRanklLU_1VTGkEk7P0xAwMJfA7owA1JHW5KyZKlY",
  "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A",
  "GmaDrppBC7P5ARKV8g3djiwP89vz1jLK23V2GBjuAEGB",
].map(known);
const address = known("1seRanklLU_1VTGkEk7P0xAwMJfA7owA1JHW5KyZKlY");

/** Tokens of a service whose clock shows these Unix seconds. */
function at(seconds: number, key: Uint8Array = secret) {
  return createWalletTokens(key, () => seconds * 1_000);
}

const token = at(issuedAt).issue(address);

describe("a token", () => {
  test.each(addresses)("of %s is read as its", (wallet) => {
    const issued = at(issuedAt).issue(wallet);
    expect(at(issuedAt).read(issued)).toBe(wallet);
  });

  test("is an ordinary JWT: HS256, for payments, for an hour", () => {
    const [head = "", claims = "", signature = ""] = token.split(".");
    expect(read(head)).toEqual({ alg: "HS256", typ: "JWT" });
    expect(read(claims)).toEqual({
      walletAddress: address,
      aud: "payment",
      iat: issuedAt,
      exp: issuedAt + tokenLifetimeSeconds,
    });
    expect(signature).toBe(createHmac("sha256", secret).update(`${head}.${claims}`).digest("base64url"));
  });

  test.each([
    [0, true],
    [1, true],
    [tokenLifetimeSeconds - 1, true],
    [tokenLifetimeSeconds, false],
    [tokenLifetimeSeconds + 1, false],
    [1e9, false],
    [-60, true],
    [-61, false],
  ])("%p seconds after it was issued is taken: %p", (seconds, taken) => {
    expect(at(issuedAt + seconds).read(token) !== undefined).toBe(taken);
  });
});

describe("S3: a token is rejected", () => {
  const claims = { walletAddress: address, aud: "payment", iat: issuedAt, exp: issuedAt + 60 };

  test("of the same claims, made by hand, only where something is wrong with it", () => {
    expect(reads(made({}, claims))).toBe(true);
  });

  test.each([
    ["none", { alg: "none" }],
    ["None", { alg: "None" }],
    ["", { alg: "" }],
    ["HS384", { alg: "HS384" }],
    ["HS512", { alg: "HS512" }],
    ["RS256", { alg: "RS256" }],
    ["hs256", { alg: "hs256" }],
    ["a list", { alg: ["HS256"] }],
    ["absent", { alg: undefined }],
  ])("whose algorithm is %s, though its signature is right", (_name, head) => {
    expect(reads(made(head, claims))).toBe(false);
  });

  test("without a signature, for any algorithm in its header", () => {
    for (const alg of ["none", "HS256"]) {
      const bare = `${write({ alg, typ: "JWT" })}.${write(claims)}`;
      for (const text of [bare, `${bare}.`, `${bare}..`, `${bare}.AA`]) expect(reads(text)).toBe(false);
    }
  });

  test("signed with a public or private key in place of the secret", () => {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
    const pem = createPublicKey(privateKey).export({ format: "pem", type: "spki" });
    expect(reads(made({}, claims, Buffer.from(pem)))).toBe(false);
    const signed = `${write({ alg: "RS256", typ: "JWT" })}.${write(claims)}`;
    const signature = sign("sha256", Buffer.from(signed), privateKey).toString("base64url");
    expect(reads(`${signed}.${signature}`)).toBe(false);
  });

  test.each<[string, object]>([
    ["another audience", { aud: "upload" }],
    ["no audience", { aud: undefined }],
    ["a list of audiences", { aud: ["payment"] }],
    ["no expiry", { exp: undefined }],
    ["an expiry in text", { exp: String(issuedAt + 60) }],
    ["an expiry that is past", { exp: issuedAt }],
    ["an expiry beyond what we give", { exp: issuedAt + tokenLifetimeSeconds + 61 }],
    ["an expiry beyond all numbers", { exp: 1e300 }],
    ["no wallet", { walletAddress: undefined }],
    ["a wallet that is invalid", { walletAddress: "anyPayer" }],
    ["a wallet that is a number", { walletAddress: 1 }],
  ])("with %s, though its signature is right", (_name, change) => {
    expect(reads(made({}, { ...claims, ...change }))).toBe(false);
  });

  test("J: of another secret", () => {
    const other = new Uint8Array(32).fill(8);
    expect(at(issuedAt, other).read(token)).toBeUndefined();
    expect(at(issuedAt).read(at(issuedAt, other).issue(address))).toBeUndefined();
  });

  test("with any one character changed or missing, or one more", () => {
    for (let index = 0; index < token.length; index++) {
      const delivery = token[index] === "A" ? "B" : "A";
      expect(reads(token.slice(0, index) + delivery + token.slice(index + 1))).toBe(false);
      expect(reads(token.slice(0, index) + token.slice(index + 1))).toBe(false);
    }
    for (const text of [`${token}A`, `${token}=`, `${token}.`, ` ${token}`, `${token}\n`, token.repeat(2)])
      expect(reads(text)).toBe(false);
  });

  test("whose claims are not an object", () => {
    for (const value of [null, 1, "x", [], [claims]]) expect(reads(made({}, value))).toBe(false);
    const signed = `${write({ alg: "HS256" })}.${Buffer.from("{").toString("base64url")}`;
    const signature = createHmac("sha256", secret).update(signed).digest("base64url");
    expect(reads(`${signed}.${signature}`)).toBe(false);
  });

  test("that is not a token", () => {
    fc.assert(fc.property(fc.string({ maxLength: 2_000 }), (text) => reads(text) === false));
  });
});

function reads(text: string): boolean {
  return at(issuedAt).read(text) !== undefined;
}

function made(head: object, claims: unknown, key: Uint8Array = secret): string {
  const signed = `${write({ alg: "HS256", typ: "JWT", ...head })}.${write(claims)}`;
  return `${signed}.${createHmac("sha256", key).update(signed).digest("base64url")}`;
}

function write(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

function read(part: string): unknown {
  return JSON.parse(Buffer.from(part, "base64url").toString());
}

function known(text: string): UserAddress {
  const read = readAddress(text);
  if (read === undefined) throw new Error(`${text} is not a valid address`);
  return read.address;
}
