/**
 * Proof of solvency: the root commits to every balance and their sum at a moment, every account has a proof, and no
 * changed proof is valid.
 * @module
 */
import { expect, test } from "bun:test";
import { createEthereumSigner } from "../../../src/arweave/signers/ethereum.ts";
import { signBytes } from "../../../src/cli/upload/local-item.ts";
import { encodeBase64url } from "../../../src/lib/base64url.ts";
import { isJsonArray, isJsonObject, type JsonObject } from "../../../src/lib/json.ts";
import { readAddress } from "../../../src/payment/addresses.ts";
import {
  balancesOf,
  proveInclusion,
  readBalances,
  rootRecord,
  rootTags,
  type SolvencyVerdict,
  solvencyRoot,
  verifySolvency,
  writeRoot,
} from "../../../src/payment/operator/solvency.ts";
import { buildTree, pathOf, rootFrom, rootOf, type SolvencyLeaf } from "../../../src/payment/operator/solvency-tree.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { openTestPayment, testAddress, testStart } from "../../support/payment.ts";

const signer = createEthereumSigner(new Uint8Array(32).fill(7));
const secret = new Uint8Array(32).fill(9);
const leafOf = (index: number): SolvencyLeaf => ({
  account: `user:${testAddress(`a${index}`)}`,
  winc: BigInt(index + 1) * 10n ** 18n,
  salt: new Uint8Array(32).fill(index),
});
const leavesOf = (count: number) => Array.from({ length: count }, (_, index) => leafOf(index));

function signed(leaves: readonly SolvencyLeaf[], at = testStart) {
  const root = solvencyRoot(balancesOf(at, leaves));
  const item = signBytes(writeRoot(root), rootTags, signer);
  return rootRecord(root, item.id, item.bytes);
}

const faultOf = (verdict: SolvencyVerdict) => verdict.fault;

test.each([1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 100])("every one of %p balances has a proof of its place alone", (count) => {
  const leaves = leavesOf(count);
  const tree = buildTree(leaves);
  expect(rootOf(tree).winc).toBe(leaves.reduce((sum, { winc }) => sum + winc, 0n));
  for (const [index, leaf] of leaves.entries()) {
    const path = pathOf(tree, index);
    expect(rootFrom(leaf, path, { index, count })).toEqual(rootOf(tree));
    expect(rootFrom({ ...leaf, winc: leaf.winc - 1n }, path, { index, count })).not.toEqual(rootOf(tree));
    if (count > 1) expect(rootFrom(leaf, path, { index: index === 0 ? 1 : 0, count })).not.toEqual(rootOf(tree));
    expect(rootFrom(leaf, [...path, rootOf(tree)], { index, count })).toBeUndefined();
    if (path.length > 0) expect(rootFrom(leaf, path.slice(1), { index, count })).toBeUndefined();
  }
});

test("no balances have the root zero", () => {
  expect(verifySolvency(signed([]))).toMatchObject({ fault: undefined, root: { accounts: 0, root: { winc: 0n } } });
});

test("a proof is valid, and no changed field of it", () => {
  const leaves = leavesOf(5);
  const record = signed(leaves);
  const address = readAddress(leafOf(2).account.slice(5))?.address;
  const proof = address && proveInclusion(balancesOf(testStart, leaves), address, String(record["item"]));
  if (!isJsonObject(proof)) throw new Error("there is a proof");
  expect(verifySolvency(proof)).toMatchObject({
    included: { account: leafOf(2).account, winc: leafOf(2).winc },
    root: { accounts: 5, at: testStart, signer: expect.any(String) },
  });
  const path = isJsonArray(proof["path"]) ? proof["path"].filter(isJsonObject) : [];
  const item = Buffer.from(String(proof["item"]), "base64url");
  const changedItem = Uint8Array.from(item, (byte, at) => (at === item.length - 10 ? byte ^ 1 : byte));
  const changes: readonly JsonObject[] = [
    { account: `user:${testAddress("other")}` },
    { winc: "1" },
    { winc: `-${leafOf(2).winc}` },
    { salt: encodeBase64url(new Uint8Array(32).fill(1)) },
    { salt: "short" },
    { index: 3 },
    { index: 5 },
    { index: -1 },
    { index: 1.5 },
    { path: path.slice(1) },
    { path: [...path, ...path] },
    { path: path.toReversed() },
    { path: path.map((node) => ({ ...node, winc: "0" })) },
    { path: path.map((node) => ({ ...node, winc: `-${String(node["winc"])}` })) },
    { path: "none" },
    { item: encodeBase64url(changedItem) },
    { item: "" },
    { item: String(signed(leavesOf(4))["item"]) },
  ];
  for (const change of changes)
    expect([change, faultOf(verifySolvency({ ...proof, ...change }))]).not.toContain(undefined);
});

test("another data item of the wallet is rejected", () => {
  const item = signBytes(writeRoot(solvencyRoot(balancesOf(1, []))), [{ name: "Type", value: "other" }], signer);
  expect(faultOf(verifySolvency({ item: encodeBase64url(item.bytes) }))).toBe(
    "the data item is not a root of solvency",
  );
});

for (const kind of ledgerKinds())
  describeWith(kind.need, `balances for a root on ${kind.name}`, () => {
    test("are those of the moment, of every kind of client's account above zero, also later", async () => {
      const payment = await openTestPayment({ kind });
      const { credits, credit, clock, database } = payment;
      const [ada, bob, eve] = [testAddress("ada"), testAddress("bob"), testAddress("eve")];
      await credit(ada, 1_000n);
      await credit(eve, 10n);
      await payment.chargeBack(eve, 30n);
      await credits.approve({ approvalId: "approval", payer: ada, approved: bob, winc: 100n });
      const held = { itemId: "item", signer: ada, paidBy: [], directive: "list-or-signer", winc: 50n } as const;
      await credits.reserve({ ...held, expiresAt: clock.now() + 1_000 });
      clock.advance(1);
      const at = clock.now();
      const read = async () => (await readBalances(database, at, secret)).leaves;
      const leaves = await read();
      expect(leaves.map(({ account, winc }) => [account, winc])).toEqual([
        ["escrow:approval", 100n],
        ["held:item.1", 50n],
        [`user:${ada}`, 850n],
      ]);
      // Transfers of this moment and later ones belong to later roots.
      await credit(ada, 7n);
      await credit(bob, 8n);
      clock.advance(60_000);
      await payment.chargeBack(ada, 2_000n);
      expect(await read()).toEqual(leaves);
      const [first] = (await readBalances(database, at, new Uint8Array(32))).leaves;
      expect(first?.salt).not.toEqual(leaves[0]?.salt ?? new Uint8Array());
      await payment.close();
    });
  });
