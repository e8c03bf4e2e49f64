/**
 * arweave-js and Cairn make the same trees, proofs, hashes and transactions, and verify each other's.
 *
 * Where the library has a limit that the chain does not (fixed salts, no rebased proofs), the test shows it.
 * @module
 */
import { expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { deepHash } from "../../src/arweave/deep-hash.ts";
import { chunkSpans, dataTreeOf, validatePath } from "../../src/arweave/merkle.ts";
import { readTransaction, verifyTransaction } from "../../src/arweave/transaction.ts";
import { signTransaction } from "../../src/arweave/transaction-sign.ts";
import { readWallet } from "../../src/arweave/wallet.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { isJsonObject, readJson } from "../../src/lib/json.ts";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { createChance } from "../support/mutate.ts";
import { buildRebasedTree } from "../support/rebased-tree.ts";

const library = clientLibraries.there
  ? {
      Arweave: (await import("arweave")).default,
      Transaction: (await import("arweave/node/lib/transaction.js")).default,
      deepHash: (await import("arweave/node/lib/deepHash.js")).default,
      merkle: await import("arweave/node/lib/merkle.js"),
    }
  : undefined;

const jwk = generateKeyPairSync("rsa", { modulusLength: 4_096 }).privateKey.export({ format: "jwk" });

/** Sizes at every edge of both tail rules, and some by chance. */
function sizesToTry(): number[] {
  const chunk = 262_144;
  const chance = createChance(20_251_121);
  const edges = [
    1,
    chunk - 1,
    chunk,
    chunk + 1,
    chunk + 32_767,
    chunk + 32_768,
    2 * chunk - 1,
    2 * chunk,
    3 * chunk + 5,
  ];
  return [...edges, ...Array.from({ length: 12 }, () => 1 + chance.below(5 * chunk))];
}

describeWith(clientLibraries, "arweave-js", () => {
  if (library === undefined) return;
  const { Arweave, Transaction, merkle } = library;
  const arweave = Arweave.init({});

  test("splits and roots data alike, and its proofs are ours byte for byte", async () => {
    for (const size of sizesToTry()) {
      const data = new Uint8Array(size).map((_, index) => index * 13);
      const theirs = await merkle.generateTransactionChunks(data);
      const ours = dataTreeOf(data, "halved");
      expect(encodeBase64url(ours.root)).toBe(encodeBase64url(theirs.data_root));
      const spans = chunkSpans(size, "halved").filter(({ start, end }) => end > start);
      expect(theirs.proofs.map(({ proof }) => encodeBase64url(proof))).toEqual(
        spans.map((_, index) => encodeBase64url(ours.path(index))),
      );
    }
  }, 120_000);

  test("proves each of our chunks, and rejects what we reject", async () => {
    const data = new Uint8Array(262_144 * 3 + 50_000).fill(7);
    const tree = dataTreeOf(data, "halved");
    const spans = chunkSpans(data.length, "halved");
    const chance = createChance(1);
    for (const [index, { start, end }] of spans.entries()) {
      const path = tree.path(index);
      const found = await merkle.validatePath(tree.root, end - 1, 0, data.length, path);
      expect(found).toMatchObject({ leftBound: start, rightBound: end });
      const at = chance.below(path.length);
      const broken = path.with(at, (path[at] ?? 0) ^ (1 << chance.below(8)));
      const question = { root: tree.root, path: broken, target: end - 1, size: data.length };
      expect(await merkle.validatePath(tree.root, end - 1, 0, data.length, broken)).toBe(false);
      expect(validatePath({ ...question, ruleset: "strict-borders" })).toBeUndefined();
    }
  });

  test("does not know rebased proofs, which the chain has since 2.7", async () => {
    const tree = buildRebasedTree([[new Uint8Array(262_144)], [new Uint8Array(262_144).fill(1)]]);
    const path = tree.path(0);
    expect(await merkle.validatePath(tree.root, 0, 0, 524_288, path)).toBe(false);
    const question = { root: tree.root, path, target: 0, size: 524_288 };
    expect(validatePath({ ...question, ruleset: "relaxed" })).toBeDefined();
  });

  test("hashes deeply alike", async () => {
    const chunk = [Buffer.from("a"), [Buffer.from(""), [Buffer.alloc(3_000, 1)]], []];
    expect(encodeBase64url(deepHash(chunk))).toBe(encodeBase64url(await library.deepHash(chunk)));
  });

  test("signs transactions of both formats that we verify", async () => {
    for (const format of [1, 2]) {
      const made = await arweave.createTransaction(
        {
          data: "some data",
          format,
          reward: "5",
          last_tx: "",
          target: encodeBase64url(new Uint8Array(32).fill(3)),
          quantity: "1",
        },
        jwk as never,
      );
      made.addTag("Grüße", "☃");
      await arweave.transactions.sign(made, jwk as never);
      const text = JSON.stringify(made);
      const read = readTransaction(text);
      expect(verifyTransaction(read)).toEqual({ valid: true });
      expect(read).toMatchObject({ format, dataSize: 9, tags: [{ name: "Grüße", value: "☃" }] });
    }
  });

  test("verifies transactions of both formats that we sign", async () => {
    const fields = readJson(JSON.stringify(jwk));
    if (!isJsonObject(fields)) throw new Error("a key is a JSON object");
    for (const saltSize of [0, 32] as const) {
      const wallet = readWallet(fields, saltSize);
      for (const format of [1, 2] as const) {
        const made = signTransaction(
          {
            format,
            lastTx: encodeBase64url(new Uint8Array(48)),
            reward: 7n,
            tags: [{ name: "a", value: "b" }],
            data: new Uint8Array(300_000),
          },
          wallet,
        );
        const theirs = new Transaction(JSON.parse(made.text));
        expect(await arweave.transactions.verify(theirs)).toBe(true);
        expect(await arweave.wallets.jwkToAddress(jwk as never)).toBe(wallet.address);
      }
    }
  });
});
