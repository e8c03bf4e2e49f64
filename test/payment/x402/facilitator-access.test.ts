/**
 * What a facilitator is notified of who asks it, and that no other party is notified.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import { ed25519 } from "@noble/curves/ed25519.js";
import { readX402Network } from "../../../src/payment/x402/x402-networks.ts";
import {
  type FacilitatorAccess,
  isBearerKey,
  openFacilitator,
  readPlatformSecret,
} from "../../../src/payment/x402/x402-settlers.ts";
import { nonce, payer, payTo } from "./payers.ts";

const never = new AbortController().signal;
const network = readX402Network("base", { address: undefined, name: undefined, version: undefined });
if ("fault" in network) throw new Error(network.fault);
const terms = { network, payTo, timeoutSeconds: 300 };
const seed = new Uint8Array(32).fill(7);
const publicKey = ed25519.getPublicKey(seed);
const secret = Uint8Array.of(...seed, ...publicKey).toBase64();
const now = 1_800_000_000_500;
const servers: ReturnType<typeof Bun.serve>[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop(true);
});

/** Settles two payments at a facilitator. @returns What its requests said of who asks, and what came of the last. */
async function settle(access: FacilitatorAccess | undefined, response: () => Response) {
  const authorizations: (string | null)[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => {
      authorizations.push(request.headers.get("authorization"));
      return response();
    },
  });
  servers.push(server);
  const facilitator = openFacilitator({
    url: `http://127.0.0.1:${server.port}/v2/x402/`,
    terms,
    access,
    clock: () => now,
  });
  const order = {
    ...({ version: 1, signature: new Uint8Array(65), resource: "http://x/" } as const),
    authorization: {
      from: payer(1).address,
      to: payTo,
      value: 1n,
      validAfter: 0n,
      validBefore: 9n,
      nonce: nonce(1),
    },
  };
  await facilitator.settle(order, async () => true, never);
  const carried = await facilitator.settle(order, async () => true, never);
  facilitator.close();
  return { authorizations, carried, host: `127.0.0.1:${server.port}` };
}

const settled = () => Response.json({ success: true, transaction: `0x${"ab".repeat(32)}` });

describe("a facilitator", () => {
  test("without authentication is sent no credentials", async () => {
    expect((await settle(undefined, settled)).authorizations).toEqual([null, null]);
  });

  test("with a key is sent the key with each request", async () => {
    const { authorizations } = await settle({ kind: "bearer", key: "secret-key" }, settled);
    expect(authorizations).toEqual(["Bearer secret-key", "Bearer secret-key"]);
  });

  test("of the platform is sent a separate, signed, short-lived token for each request", async () => {
    const privateKey = readPlatformSecret(secret);
    if (privateKey === undefined) throw new Error("the secret cannot be read");
    const { authorizations, host } = await settle({ kind: "platform", keyId: "key-1", privateKey }, settled);
    expect(new Set(authorizations).size).toBe(2);
    for (const authorization of authorizations) {
      const [header = "", claims = "", signature = ""] = (authorization ?? "").replace("Bearer ", "").split(".");
      const read = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString());
      expect(read(header)).toEqual({
        alg: "EdDSA",
        kid: "key-1",
        typ: "JWT",
        nonce: expect.stringMatching(/^[0-9a-f]{32}$/),
      });
      expect(read(claims)).toEqual({
        sub: "key-1",
        iss: "cdp",
        uris: [`POST ${host}/v2/x402/settle`],
        iat: 1_800_000_000,
        nbf: 1_800_000_000,
        exp: 1_800_000_120,
      });
      const content = new TextEncoder().encode(`${header}.${claims}`);
      expect(ed25519.verify(Buffer.from(signature, "base64url"), content, publicKey)).toBe(true);
    }
  });

  test("that rejects the key has settled nothing; a repeated key is removed from its reason", async () => {
    for (const status of [401, 403]) {
      const reject = () => Response.json({ errorReason: "wrong key secret-key" }, { status });
      const { carried } = await settle({ kind: "bearer", key: "secret-key" }, reject);
      expect(carried).toEqual({ kind: "untried", reason: "the facilitator rejects the key: wrong key …" });
    }
  });
});

test("a secret is read whole, and only where its public key is its own", () => {
  expect(readPlatformSecret(secret)?.toHex()).toBe(seed.toHex());
  const foreign = Uint8Array.of(...seed, ...seed).toBase64();
  for (const text of ["", "key", foreign, secret.slice(1), `${secret}A`, seed.toBase64()])
    expect(readPlatformSecret(text)).toBeUndefined();
  for (const [text, isKey] of [
    ["abc.DEF-123_~+/==", true],
    ["", false],
    ["two words", false],
    ["line\nbreak", false],
  ] as const)
    expect([text, isBearerKey(text)]).toEqual([text, isKey]);
});
