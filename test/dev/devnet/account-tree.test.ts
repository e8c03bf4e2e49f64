/**
 * The root of the account tree: the same for the same accounts, another for any other.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import fc from "fast-check";
import { deepHash } from "../../../src/arweave/deep-hash.ts";
import { type Address, addressOf, type Id, idFromBytes } from "../../../src/arweave/id.ts";
import { type Account, accountTreeRoot } from "../../../src/dev/devnet/accounts.ts";

/** An address whose first bytes are given. */
function address(...start: number[]): Address {
  const bytes = new Uint8Array(32);
  bytes.set(start);
  return idFromBytes(bytes) as string as Address;
}

const one: Account = { balance: 1n, lastTx: "" };

/** The hash of a leaf, written out byte by byte: key, balance, last transaction, denomination, permission to mine. */
function leaf(key: Address, balance: number[], lastTx: Uint8Array = new Uint8Array(0)): Uint8Array {
  const bytes = [32, ...Buffer.from(key, "base64url"), balance.length, ...balance, lastTx.length, ...lastTx, 1, 1, 1];
  return createHash("sha256").update(Uint8Array.from(bytes)).digest();
}

function rootOf(...accounts: [Address, Account][]): string {
  return Buffer.from(accountTreeRoot(new Map(accounts))).toString("hex");
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

describe("the account tree", () => {
  const a = address(1, 1);
  const b = address(1, 2);
  const c = address(2);

  test("has no root without accounts, and a lone account's hash as its root", () => {
    expect(rootOf()).toBe("");
    expect(rootOf([a, one])).toBe(hex(leaf(a, [1])));
  });

  test("hashes balance and last transaction with their sizes", () => {
    const lastTx = new Uint8Array(32).fill(5);
    const account = { balance: 258n, lastTx: idFromBytes(lastTx) as Id };
    expect(rootOf([a, account])).toBe(hex(leaf(a, [1, 2], lastTx)));
    expect(rootOf([a, { balance: 0n, lastTx: "" }])).toBe(hex(leaf(a, [0])));
  });

  test("joins the children of a branch in the order of their bytes, and skips nodes with one child", () => {
    const pair = deepHash([leaf(a, [1]), leaf(b, [1])]);
    expect(rootOf([b, one], [a, one])).toBe(hex(pair));
    expect(rootOf([c, one], [a, one], [b, one])).toBe(hex(deepHash([pair, leaf(c, [1])])));
    const deep = [address(9, 9, 9, 1), address(9, 9, 9, 2), address(9, 9, 8)] as const;
    const inner = deepHash([leaf(deep[0], [1]), leaf(deep[1], [1])]);
    expect(rootOf(...deep.map((key): [Address, Account] => [key, one]))).toBe(
      hex(deepHash([leaf(deep[2], [1]), inner])),
    );
  });

  test("does not depend on the order of the accounts, and on everything else", () => {
    const account = fc.record({
      key: fc.uint8Array({ minLength: 8, maxLength: 8 }),
      balance: fc.bigInt(0n, 2n ** 80n),
    });
    fc.assert(
      fc.property(
        fc.uniqueArray(account, { selector: ({ key }) => key.join(), minLength: 1, maxLength: 30 }),
        (drawn) => {
          const entries = drawn.map(({ key, balance }): [Address, Account] => [
            addressOf(key),
            { balance, lastTx: "" },
          ]);
          const root = rootOf(...entries);
          expect(rootOf(...entries.toReversed())).toBe(root);
          const [[key, first] = [a, one], ...rest] = entries;
          expect(rootOf([key, { ...first, balance: first.balance + 1n }], ...rest)).not.toBe(root);
        },
      ),
    );
  });
});
