/**
 * Who signed a request: the worked vectors of published clients, every form that may be signed, and every way to fail.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { createHash, createPrivateKey, generateKeyPairSync, sign } from "node:crypto";
import { secp256k1 } from "@noble/curves/secp256k1.js";
import { keccak_256 as keccak256 } from "@noble/hashes/sha3.js";
import fc from "fast-check";
import { Failure } from "../../../src/failures.ts";
import { isSigned, nonceLengthMax, readSigner } from "../../../src/payment/access/signed-request.ts";
import {
  arweaveWallet,
  ethereumWallet,
  type RequestWallet,
  rawSolanaWallet,
  signedHeaders,
  solanaWallet,
} from "../../support/signed-headers.ts";
import { rsaKey, testKey } from "../../support/signers.ts";

const nonce = "000102030405060708090a0b0c0d0e0f";
const request = { method: "GET", pathWithQuery: "/v1/balance?address=a%20b" };

const arweave = arweaveWallet(rsaKey);
const ethereum = ethereumWallet(testKey(0x11));
const solana = solanaWallet(testKey(0x07));
const wallets: readonly [string, RequestWallet][] = [
  ["arweave, salt 478", arweave],
  ["arweave, salt 32", arweaveWallet(rsaKey, 32)],
  ["arweave, salt 0", arweaveWallet(rsaKey, 0)],
  ["ethereum", ethereum],
  ["solana, hexadecimal", solana],
  ["solana, raw", rawSolanaWallet(testKey(0x07))],
];

type Parts = Readonly<{ method?: string; pathWithQuery?: string; body?: Uint8Array }>;

function signerOf(headers: Record<string, string>, parts: Parts = {}): string | undefined {
  try {
    return readSigner({ ...request, ...parts, headers: new Headers(headers) }).address;
  } catch (error) {
    expect(error).toBeInstanceOf(Failure);
    expect((error as Failure).code).toBe("invalid_signature");
    return undefined;
  }
}

describe("the published SDK's own headers", () => {
  const rows = [
    {
      chain: "an Ethereum",
      wallet: ethereum,
      key: "BE81W9y3zAr3KO88zrlhXZBoS7Wyyl-FmrDwtwQHWHGqOFtrG46tgJymdFTZaD_PK6A0Vtb-LEq-Kwfw-9uy8cE",
      signature: "BDfJfNLg2Ss_20OzwjoZDyyjeNNfXg5PEBD6K7Mzn5NmXuhlZJ8644UJAmQ923BaTzYI7DAwhX-uk98wU64Jlhs",
      type: "3",
      address: "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A",
    },
    {
      chain: "a Solana",
      wallet: solana,
      key: "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw",
      signature: "qMUxGtWNN2Bh1W3NmLZeIlt8iYdGnuXYNm95zkF4rxl52bfJFww8WjYlFN9Q3i7tQuDQD8olqhJqfqshpnh1AA",
      type: "4",
      address: "GmaDrppBC7P5ARKV8g3djiwP89vz1jLK23V2GBjuAEGB",
    },
  ];
  test.each(rows)("K: of $chain key name its address", ({ wallet, key, signature, type, address }) => {
    const headers = { "x-nonce": nonce, "x-public-key": key, "x-signature": signature, "x-signature-type": type };
    expect(signerOf(headers)).toBe(address);
    expect(signedHeaders(wallet, nonce)).toEqual(headers);
  });
});

describe("a signature", () => {
  const body = Uint8Array.of(1, 2, 3, 255);
  const post = { method: "POST", body };

  test.each(wallets)("of %s over the nonce names its address", (_name, wallet) => {
    expect(signerOf(signedHeaders(wallet, nonce))).toBe(wallet.address);
    expect(signerOf(signedHeaders(wallet, nonce), post)).toBe(wallet.address);
  });

  test.each(wallets)("of %s over body and nonce names its address, where there is a body", (_name, wallet) => {
    const headers = signedHeaders(wallet, nonce, Buffer.concat([body, Buffer.from(nonce)]));
    expect(signerOf(headers, post)).toBe(wallet.address);
    expect(signerOf(headers)).toBeUndefined();
    expect(signerOf(headers, { ...post, body: Uint8Array.of(1, 2, 3, 254) })).toBeUndefined();
    expect(signerOf(headers, { ...post, body: new Uint8Array(0) })).toBeUndefined();
  });

  test.each(wallets)("of %s over method, path and nonce holds for that request alone", (_name, wallet) => {
    const headers = signedHeaders(wallet, nonce, Buffer.from(`GET /v1/balance?address=a%20b${nonce}`));
    expect(signerOf(headers)).toBe(wallet.address);
    expect(signerOf(headers, { method: "HEAD" })).toBeUndefined();
    expect(signerOf(headers, { pathWithQuery: "/v1/balance?address=a%20c" })).toBeUndefined();
    expect(signerOf(headers, { pathWithQuery: "/v1/balance" })).toBeUndefined();
    expect(signerOf({ ...headers, "x-nonce": `${nonce}0` })).toBeUndefined();
  });

  test("of arweave may be over the SHA-256, as wallets in browsers make it", () => {
    const hash = createHash("sha256").update(nonce).digest();
    expect(signerOf(signedHeaders(arweaveWallet(rsaKey, 32), nonce, hash))).toBe(arweave.address);
    const bound = createHash("sha256").update(`GET ${request.pathWithQuery}${nonce}`).digest();
    expect(signerOf(signedHeaders(arweaveWallet(rsaKey, 32), nonce, bound))).toBe(arweave.address);
  });

  test("without a type is arweave's", () => {
    const typeless = (wallet: RequestWallet) => {
      const { "x-signature-type": _, ...headers } = signedHeaders(wallet, nonce);
      return signerOf(headers);
    };
    expect(typeless(arweave)).toBe(arweave.address);
    expect(typeless(ethereum)).toBeUndefined();
    expect(typeless(solana)).toBeUndefined();
  });

  test.each([
    ["0x04 and hexadecimal", (point: Uint8Array) => `0x${point.toHex()}`],
    ["hexadecimal in capitals", (point: Uint8Array) => `0x${point.toHex().toUpperCase()}`],
    ["0x02 or 0x03 and hexadecimal", (point: Uint8Array) => `0x${compressed(point).toHex()}`],
    ["base64url of a compressed point", (point: Uint8Array) => base64url(compressed(point))],
    ["base64url of a whole point", base64url],
  ])("of ethereum takes its key as %s", (_name, write) => {
    // Keys of both parities.
    for (const seed of [0x11, 0x12, 0x13, 0x14, 0x15]) {
      const wallet = ethereumWallet(testKey(seed));
      const point = Buffer.from(wallet.publicKey, "base64url");
      const headers = { ...signedHeaders(wallet, nonce), "x-public-key": write(point) };
      expect(signerOf(headers)).toBe(wallet.address);
    }
  });

  test("of ethereum may end in 0 or 1 where wallets write 27 or 28", () => {
    const bytes = ethereum.sign(Buffer.from(nonce));
    bytes[64] = (bytes[64] ?? 0) - 27;
    expect(signerOf({ ...signedHeaders(ethereum, nonce), "x-signature": base64url(bytes) })).toBe(ethereum.address);
  });

  test.each(["é", "a b", "x".repeat(nonceLengthMax), "00000000-0000-4000-8000-000000000000", "{}"])(
    "may be over the nonce %p",
    (text) => {
      for (const [, wallet] of wallets)
        expect(signerOf(signedHeaders(wallet, text, Buffer.from(text, "utf8")))).toBe(wallet.address);
    },
  );
});

describe("S3: a request is rejected", () => {
  const good = (wallet: RequestWallet) => signedHeaders(wallet, nonce);
  const all = [arweave, ethereum, solana];

  test("each header that is missing or empty", () => {
    for (const wallet of all)
      for (const name of ["x-signature", "x-nonce", "x-public-key"]) {
        const { [name]: _, ...rest } = good(wallet);
        expect(signerOf(rest)).toBeUndefined();
        expect(signerOf({ ...good(wallet), [name]: "" })).toBeUndefined();
        expect(isSigned(new Headers(rest))).toBe(true);
      }
  });

  test("every type but 1, 3 and 4, and a right one that is another's", () => {
    const types = ["", "0", "2", "5", "6", "7", "101", "01", "1.0", "1e0", "+1", "0x1", "arweave", "1, 3"];
    for (const wallet of all)
      for (const type of types) expect(signerOf({ ...good(wallet), "x-signature-type": type })).toBeUndefined();
    for (const wallet of all)
      for (const other of all.filter((each) => each !== wallet))
        expect(signerOf({ ...good(wallet), "x-signature-type": other.type })).toBeUndefined();
  });

  test("a nonce of 257 characters", () => {
    const long = "x".repeat(nonceLengthMax + 1);
    for (const wallet of all) expect(signerOf(signedHeaders(wallet, long))).toBeUndefined();
  });

  test("a nonce that was not signed", () => {
    for (const wallet of all) {
      expect(signerOf({ ...good(wallet), "x-nonce": nonce.toUpperCase() })).toBeUndefined();
      expect(signerOf({ ...good(wallet), "x-nonce": nonce.slice(1) })).toBeUndefined();
    }
  });

  test("the key of another signer", () => {
    const others = [
      arweaveWallet(generateKeyPairSync("rsa", { modulusLength: 4_096 }).privateKey.export({ format: "jwk" })),
      ethereumWallet(testKey(0x21)),
      solanaWallet(testKey(0x22)),
    ];
    for (const [index, wallet] of all.entries())
      expect(signerOf({ ...good(wallet), "x-public-key": others[index]?.publicKey ?? "" })).toBeUndefined();
  });

  test("a signature or a key with one bit changed, cut off, prolonged, padded or spelled otherwise", () => {
    for (const wallet of all)
      for (const name of ["x-signature", "x-public-key"]) {
        const text = good(wallet)[name] ?? "";
        const bytes = Buffer.from(text, "base64url");
        const flipped = Buffer.from(bytes);
        flipped[7] = (flipped[7] ?? 0) ^ 1;
        const wrong = [
          flipped.toString("base64url"),
          bytes.subarray(1).toString("base64url"),
          bytes.subarray(0, -1).toString("base64url"),
          Buffer.concat([bytes, Buffer.of(0)]).toString("base64url"),
          Buffer.concat([Buffer.of(0), bytes]).toString("base64url"),
          `${text}=`,
          `${text}!`,
          ` ${text.slice(0, 5)} ${text.slice(5)}`,
          bytes.toString("hex"),
          Buffer.alloc(bytes.length).toString("base64url"),
          Buffer.alloc(bytes.length, 0xff).toString("base64url"),
          "A".repeat(15_000),
          `${text}, ${text}`,
        ];
        for (const value of wrong) expect(signerOf({ ...good(wallet), [name]: value })).toBeUndefined();
      }
  });

  test("an RSA key of 2,048 bits, and one whose exponent is 3 or 1", () => {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
    expect(signerOf(good(arweaveWallet(privateKey.export({ format: "jwk" }), 32)))).toBeUndefined();
    const odd = generateKeyPairSync("rsa", { modulusLength: 4_096, publicExponent: 3 });
    expect(signerOf(good(arweaveWallet(odd.privateKey.export({ format: "jwk" }), 32)))).toBeUndefined();
    // With the exponent 1 a signature would be the padded message itself; ours is fixed to 65537.
    expect(signerOf({ ...good(arweave), "x-signature": arweave.publicKey })).toBeUndefined();
  });

  test("an RSA signature of the older padding, and one with another hash", () => {
    const key = createPrivateKey({ key: rsaKey, format: "jwk" });
    const older = sign("sha256", Buffer.from(nonce), { key, padding: 1 });
    const other = sign("sha384", Buffer.from(nonce), { key, padding: 6, saltLength: 32 });
    for (const bytes of [older, other])
      expect(signerOf({ ...good(arweave), "x-signature": base64url(bytes) })).toBeUndefined();
  });

  test("an Ethereum signature with a high S, another last byte, another key's prefix, or no prefix", () => {
    const headers = good(ethereum);
    const bytes = Buffer.from(headers["x-signature"] ?? "", "base64url");
    const s = BigInt(`0x${bytes.subarray(32, 64).toString("hex")}`);
    const high = Buffer.concat([
      bytes.subarray(0, 32),
      Buffer.from((secp256k1.Point.CURVE().n - s).toString(16).padStart(64, "0"), "hex"),
      Buffer.of((bytes[64] ?? 0) ^ 7),
    ]);
    const bare = secp256k1.sign(keccak256(Buffer.from(nonce)), testKey(0x11), {
      prehash: false,
      format: "recovered",
    });
    const unprefixed = Buffer.concat([bare.subarray(1), Buffer.of(27 + (bare[0] ?? 0))]);
    const lasts = [2, 3, 26, 29, 35, 255].map((last) => Buffer.concat([bytes.subarray(0, 64), Buffer.of(last)]));
    for (const wrong of [high, unprefixed, ...lasts])
      expect(signerOf({ ...headers, "x-signature": base64url(wrong) })).toBeUndefined();
    const point = Buffer.from(ethereum.publicKey, "base64url");
    for (const first of [0, 5, 6, 7])
      expect(
        signerOf({
          ...headers,
          "x-public-key": base64url(Buffer.concat([Buffer.of(first), point.subarray(1)])),
        }),
      ).toBeUndefined();
    const other = compressed(point);
    other[0] = (other[0] ?? 0) ^ 1;
    expect(signerOf({ ...headers, "x-public-key": `0x${other.toHex()}` })).toBeUndefined();
  });

  test("a Solana key of small order, which signs everything", () => {
    const zeros = Buffer.alloc(32).toString("base64url");
    const one = Buffer.concat([Buffer.of(1), Buffer.alloc(31)]).toString("base64url");
    for (const key of [zeros, one])
      for (const signature of [Buffer.alloc(64), Buffer.concat([Buffer.of(1), Buffer.alloc(63)])])
        expect(signerOf({ ...good(solana), "x-public-key": key, "x-signature": base64url(signature) })).toBeUndefined();
  });

  test("other invalid headers", () => {
    const header = fc.string({ maxLength: 700, unit: fc.integer({ min: 0x20, max: 0x7e }).map(deliveryOf) });
    fc.assert(
      fc.property(header, header, header, fc.constantFrom("1", "3", "4"), (signature, nonceText, key, type) => {
        const headers = {
          "x-signature": signature,
          "x-nonce": nonceText,
          "x-public-key": key,
          "x-signature-type": type,
        };
        expect(signerOf(headers)).toBeUndefined();
      }),
    );
  });
});

test("a request without any of the three headers is unsigned", () => {
  expect(isSigned(new Headers())).toBe(false);
  expect(isSigned(new Headers({ "x-signature-type": "1", authorization: "Bearer x" }))).toBe(false);
});

function deliveryOf(code: number): string {
  return String.fromCharCode(code);
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64url");
}

function compressed(point: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(2 + ((point[64] ?? 0) & 1)), point.subarray(1, 33)]);
}
