/**
 * Real transactions, blocks and wallets, held against what published libraries found in them.
 * @module
 */
import { describe, expect } from "bun:test";
import { type Block, blockHash, readBlock } from "../../src/arweave/block.ts";
import { mainNetFault, mainNetGenesis, verifyBlock } from "../../src/arweave/block-check.ts";
import { isAddress } from "../../src/arweave/id.ts";
import { validatePath } from "../../src/arweave/merkle.ts";
import { readTransaction, type Transaction, treeRootOf, verifyTransaction } from "../../src/arweave/transaction.ts";
import { layoutTransactions, type PlacedTransaction } from "../../src/arweave/tx-root.ts";
import { readWallet } from "../../src/arweave/wallet.ts";
import { decodeBase64url, encodeBase64url } from "../../src/lib/base64url.ts";
import { readUnsigned, utf8Bytes } from "../../src/lib/bytes.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { isJsonObject, readJson } from "../../src/lib/json.ts";
import { verifyRsaPss } from "../../src/lib/rsa.ts";
import { hasLowS, secp256k1 } from "../../src/lib/secp256k1.ts";
import { testWith } from "../support/helpers.ts";
import { rootOfPath } from "../support/merkle-path.ts";
import { vectorName, vectors, vectorsOf, vectorText } from "../support/vectors.ts";

const transactionFiles = vectorsOf("tx");
const blockFiles = vectorsOf("block");
const transactions = new Map<string, Transaction>();

function transactionOf(file: string): Transaction {
  const read = transactions.get(file) ?? readTransaction(vectorText(file));
  transactions.set(file, read);
  return read;
}

/** The block's transactions, where all of them are among the vectors. */
function placedOf(block: Block): PlacedTransaction[] | undefined {
  const placed: PlacedTransaction[] = [];
  for (const id of block.txs) {
    const entry = transactionFiles.find(({ file }) => vectorName(file) === id);
    if (entry === undefined) return undefined;
    const transaction = transactionOf(entry.file);
    placed.push({ ...transaction, dataRoot: treeRootOf(transaction) });
  }
  return placed;
}

describe("real transactions", () => {
  testWith(vectors, "every one that published libraries verify is valid: 1,441 of 1,442", () => {
    const faults = transactionFiles.flatMap(({ file, result }) => {
      const verdict = verifyTransaction(transactionOf(file));
      return verdict.valid === (result === "pass") ? [] : [{ file, verdict }];
    });
    expect(faults).toEqual([]);
    expect(transactionFiles.filter(({ result }) => result === "pass")).toHaveLength(1_441);
  });

  testWith(vectors, "the one that they reject is rejected for its id", () => {
    const wrong = transactionFiles.filter(({ result }) => result === "expected-invalid");
    expect(wrong).toHaveLength(1);
    const verdict = verifyTransaction(transactionOf(wrong[0]?.file ?? ""));
    expect(verdict).toEqual({ valid: false, reason: "id is not the SHA-256 of signature" });
  });

  testWith(vectors, "the id is the file's name, and format 1 states the size of its data", () => {
    for (const { file, result } of transactionFiles.filter(({ result }) => result === "pass")) {
      const { id, text, dataSize } = transactionOf(file);
      expect(`${result} ${id}`).toBe(`pass ${vectorName(file)}`);
      expect(dataSize).toBe(Number(JSON.parse(text).data_size));
    }
  });

  testWith(vectors, "one changed byte of any signed field makes a transaction invalid", () => {
    const sample = transactionFiles.find(({ file }) => transactionOf(file).tags.length > 0 && file.includes("893174"));
    const fields = readJson(transactionOf(sample?.file ?? "").text);
    if (!isJsonObject(fields)) throw new Error("a transaction is a JSON object");
    for (const key of ["last_tx", "owner", "target", "data_root", "signature"]) {
      const bytes = decodeBase64url(String(fields[key])) ?? new Uint8Array(0);
      const changed = bytes.length === 0 ? new Uint8Array(32) : bytes.with(bytes.length - 1, (bytes.at(-1) ?? 0) ^ 1);
      expect(isValid({ ...fields, [key]: encodeBase64url(changed) })).toBe(false);
    }
    for (const key of ["quantity", "reward", "data_size"]) {
      expect(isValid({ ...fields, [key]: `${BigInt(String(fields[key])) + 1n}` })).toBe(false);
    }
    expect(isValid({ ...fields, tags: [] })).toBe(false);
    expect(isValid({ ...fields, denomination: "1" })).toBe(false);
    expect(isValid(fields)).toBe(true);
  });
});

function isValid(fields: object): boolean {
  try {
    return verifyTransaction(readTransaction(JSON.stringify(fields))).valid;
  } catch {
    return false;
  }
}

describe("real blocks", () => {
  const checkable = blockFiles.filter(({ result }) => !result.startsWith("not-checkable"));
  const blocks = new Map(
    checkable.map(({ file }) => [file, readBlock(vectorText(file))] as const).map(([file, block]) => [file, block]),
  );
  const byHeight = new Map([...blocks.values()].map((block) => [block.height, block]));

  testWith(vectors, "every one is read without loss, and has the shape of its height: 220", () => {
    expect(blocks.size).toBe(220);
    for (const { file } of checkable) {
      const block = blocks.get(file);
      expect(block?.text).toBe(vectorText(file));
      expect(block && mainNetFault(block)).toBeUndefined();
    }
  });

  testWith(vectors, "an integer above 2^53 keeps its digits", () => {
    expect(byHeight.get(591_140)?.fields["reward_pool"]).toBe(11_636_689_895_910_311n);
  });

  testWith(vectors, "the first block of the main network is known by its hash", () => {
    expect(byHeight.get(0)?.hash).toBe(mainNetGenesis as never);
  });

  testWith(vectors, "the hash is made again for each of the 11 that have all their fields since 2.0", () => {
    const made = [...blocks.values()].filter(({ shape, fields }) => shape !== "1.0" && "poa" in fields);
    expect(made.map(({ height }) => height)).toEqual([
      422_250, 422_251, 552_180, 552_190, 591_140, 591_143, 633_720, 633_722, 893_174, 893_445, 1_000_000,
    ]);
    for (const block of made) expect(blockHash(block.fields, block.shape)).toBe(block.hash);
  });

  testWith(vectors, "each is accepted with its transactions and with the block before it", () => {
    const faults = [...blocks].flatMap(([file, block]) => {
      if (!("poa" in block.fields)) return []; // its relay left the proof out; see the next test
      const verdict = verifyBlock(block, placedOf(block), byHeight.get(block.height - 1));
      return verdict.kind === "accepted" ? [] : [{ file, verdict }];
    });
    expect(faults).toEqual([]);
  });

  testWith(vectors, "tx_root and block_size are made again for every block since 2.0 that has its transactions", () => {
    const proven = [...blocks.values()].flatMap((block) => {
      const placed = block.txRoot === "" ? undefined : placedOf(block);
      if (placed === undefined) return [];
      const layout = layoutTransactions(block, placed);
      return [`${block.height} ${layout.kind === "placed" ? layout.layout : layout.kind}`];
    });
    expect(proven).toEqual([
      "422250 plain",
      "422251 plain",
      "552190 plain",
      "591140 plain",
      "591143 plain",
      "633720 plain",
      "893174 padded",
      "982575 padded",
    ]);
  });

  testWith(vectors, "a block whose proof a relay left out is rejected, because its hash proves nothing", () => {
    const block = byHeight.get(982_575);
    expect(block && verifyBlock(block, undefined, undefined)).toEqual({
      kind: "rejected",
      reason: "poa is not an object",
    });
  });

  testWith(
    vectors,
    "blocks that follow each other are linked: 1 to 200 (10 is there twice) and four later pairs",
    () => {
      const linked = [...blocks.values()].filter((block) => {
        const verdict = verifyBlock(block, undefined, byHeight.get(block.height - 1));
        return verdict.kind === "accepted" && verdict.checked.includes("previous block");
      });
      expect(linked).toHaveLength(205);
      const full = verifyBlock(byHeight.get(422_251) ?? never(), undefined, byHeight.get(422_250));
      expect(full).toMatchObject({
        checked: ["hash", "difficulty", "previous block", "block index", "cumulative difficulty", "weave size"],
      });
    },
  );

  testWith(vectors, "the proofs of access lead from their roots to their chunks, where these are not packed", () => {
    const outcomes = [...blocks.values()].flatMap((block) => {
      const proof = block.fields["poa"];
      if (block.shape === "1.0" || !isJsonObject(proof)) return [];
      const [txPath, dataPath, chunk] = ["tx_path", "data_path", "chunk"].map(
        (key) => decodeBase64url(String(proof[key])) ?? never(),
      );
      const root = lastLeaf(txPath ?? never()).hash;
      const found = lastLeaf(dataPath ?? never());
      return [
        [
          block.height,
          isProven(txPath ?? never()),
          isProven(dataPath ?? never()),
          encodeBase64url(root) === encodeBase64url(rootOfPath(dataPath ?? never()) ?? never()),
          encodeBase64url(sha256(chunk ?? never())) === encodeBase64url(found.hash),
        ],
      ];
    });
    expect(outcomes).toEqual([
      ...[422_250, 422_251, 552_180, 552_190, 591_140, 591_143, 633_720, 633_722].map((h) => [
        h,
        true,
        true,
        true,
        true,
      ]),
      [893_174, true, true, true, false],
      [893_445, true, true, true, true],
      [1_000_000, true, true, true, false],
    ]);
  });

  testWith(vectors, "samples cut by their source are rejected with the reason, or read where they are whole", () => {
    const outcomes = blockFiles
      .filter(({ result }) => result.startsWith("not-checkable"))
      .map(({ file }) => {
        try {
          const verdict = verifyBlock(readBlock(vectorText(file)), undefined, undefined);
          return `${vectorName(file)}: ${verdict.kind === "rejected" ? verdict.reason : verdict.kind}`;
        } catch (error) {
          return `${vectorName(file)}: ${(error as { context: { reason: string } }).context.reason}`;
        }
      });
    expect(outcomes.sort()).toEqual([
      "100: indep_hash is not a valid block hash",
      "269512: accepted",
      "422250: chunk is not canonical base64url",
      "812970: chunk is not canonical base64url",
    ]);
  });
});

/** A path proves itself against its own root, for the byte before its leaf's end. */
function isProven(path: Uint8Array): boolean {
  const { end } = lastLeaf(path);
  const root = rootOfPath(path) ?? never();
  return validatePath({ root, path, target: end - 1n, size: end, ruleset: "basic" }) !== undefined;
}

function lastLeaf(path: Uint8Array): { hash: Uint8Array; end: bigint } {
  return { hash: path.subarray(-64, -32), end: readUnsigned(path.subarray(-32)) };
}

function never(): never {
  throw new Error("the vectors hold it");
}

describe("real wallets", () => {
  const wallets = vectorsOf("wallet");

  for (const { file, checks } of wallets) {
    testWith(vectors, `${vectorName(file)} has the known address and signs`, () => {
      const jwk = readJson(vectorText(file));
      if (!isJsonObject(jwk)) throw new Error("a key file is a JSON object");
      const wallet = readWallet(jwk);
      expect(wallet.address as string).toBe(String(checks["address"] ?? checks["address_sha256_of_compressed"]));
      const message = utf8Bytes("one message");
      const signature = wallet.sign(message);
      if (wallet.type === "rsa") {
        expect(verifyRsaPss(wallet.owner, message, signature)).toBe(true);
      } else {
        expect(secp256k1.verify(signature.subarray(0, 64), sha256(message), wallet.owner)).toBe(true);
        expect(hasLowS(signature)).toBe(true);
      }
    });
  }

  testWith(vectors, "there are six", () => {
    expect(wallets).toHaveLength(6);
  });
});

describe("real genesis balances", () => {
  testWith(vectors, "all 505 addresses are canonical", () => {
    const [entry] = vectorsOf("genesis-balances");
    const rows = vectorText(entry?.file ?? "")
      .trim()
      .split("\n");
    expect(rows).toHaveLength(505);
    const odd = rows.filter((row) => !isAddress(row.split(",")[0] ?? ""));
    expect(odd).toEqual([]);
  });
});
