/**
 * RSA keys that are begun before they are wanted: each is given once.
 * @module
 */
import { expect, test } from "bun:test";
import { beginRsaJwks } from "../../src/lib/rsa.ts";

test("keys that were started early and further keys are all different, with 4096 bits", async () => {
  const makeKey = beginRsaJwks(1);
  const keys = await Promise.all([makeKey(), makeKey()]);
  const moduli = keys.map(({ n }) => String(n));
  expect(moduli.map((n) => Buffer.from(n, "base64url").length)).toEqual([512, 512]);
  expect(new Set(moduli).size).toBe(2);
  expect(Object.keys(keys[0] ?? {}).sort()).toEqual(["d", "dp", "dq", "e", "kty", "n", "p", "q", "qi"]);
});
