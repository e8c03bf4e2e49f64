/**
 * Transactions that the chain rejects, with the node's error codes, and those that it accepts.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { readTransaction } from "../../../src/arweave/transaction.ts";
import { devnetFee } from "../../../src/dev/devnet/chain-rules.ts";
import type { TransactionOutcome } from "../../../src/dev/devnet/node-intake.ts";
import { ecdsa, openTestDevnet, post, rsa, sign, stranger, testBytes } from "./support.ts";

const fee = devnetFee(0n, "none");

/** The codes of a rejection, or the kind of another outcome. */
function codesOf(outcome: TransactionOutcome): string {
  if (outcome.kind === "faulty") return outcome.faults.map(({ code }) => code).join(" ");
  return outcome.kind === "bad_anchor" ? outcome.fault : outcome.kind;
}

describe("a transaction by itself", () => {
  const data = testBytes(10);
  const digitTail = new TextEncoder().encode("version 1");
  type Fields = Parameters<typeof sign>[2];
  const rows: readonly (readonly [name: string, fields: Fields, expected: string])[] = [
    ["pays exactly what is due", { reward: fee }, "accepted"],
    ["pays one winston too little", { reward: fee - 1n }, "tx_too_cheap"],
    ["pays for another account", { target: ecdsa.address, quantity: 1n, reward: fee }, "accepted"],
    [
      "pays a new account without the fee for it",
      { target: stranger.address, quantity: 1n, reward: fee },
      "tx_too_cheap",
    ],
    [
      "pays a new account with the fee for it",
      { target: stranger.address, quantity: 1n, reward: devnetFee(0n, "new") },
      "accepted",
    ],
    [
      "names a target that has no account and sends nothing",
      { target: stranger.address, reward: fee * 1_000_000n },
      "overspend",
    ],
    ["pays itself", { target: rsa.address, quantity: 1n }, "same_owner_as_target"],
    ["spends what it does not have", { target: ecdsa.address, quantity: 10n ** 18n }, "overspend"],
    [
      "sends to less than an address",
      { target: "AAAA", quantity: 1n, reward: fee * 1_000_000n },
      "overspend invalid_target_length",
    ],
    ["states a denomination of the future", { denomination: 2n }, "invalid_denomination"],
    ["states the denomination of today", { denomination: 1n }, "accepted"],
    ["carries data of format 1", { format: 1, data, reward: devnetFee(10n, "none") }, "accepted"],
    ["carries data of format 1 that ends with a digit", { format: 1, data: digitTail }, "tx_malleable"],
    [
      "carries data of format 1 that ends with a digit, but states its denomination",
      { format: 1, data: digitTail, denomination: 1n },
      "accepted",
    ],
    ["sends nothing to a target in format 1", { format: 1, target: ecdsa.address }, "tx_malleable"],
    [
      "pays in format 1 so much that a digit could be dropped",
      { format: 1, reward: devnetFee(0n, "none") * 100n },
      "tx_malleable",
    ],
    ["has as many tags as fit", { tags: [{ name: "n", value: "v".repeat(2_047) }] }, "accepted"],
    ["has a byte of tags too many", { tags: [{ name: "n", value: "v".repeat(2_048) }] }, "tx_fields_too_large"],
  ];

  test.each(rows)("that %s", async (_name, fields, expected) => {
    const devnet = await openTestDevnet();
    const text = writtenOut(sign(devnet, rsa, withoutLimits(fields)).text, fields);
    expect(codesOf(await devnet.postTransaction(text))).toBe(expected);
    devnet.close();
  });

  test("is rejected with one changed character in any signed field", async () => {
    const devnet = await openTestDevnet();
    const { text } = sign(devnet, rsa, { data: testBytes(5), reward: fee * 1_000n, target: ecdsa.address });
    const fields = JSON.parse(text);
    const changed = {
      id: { ...fields, id: flip(fields.id) },
      signature: { ...fields, signature: flip(fields.signature) },
      owner: { ...fields, owner: flip(fields.owner) },
      quantity: { ...fields, quantity: "1" },
      reward: { ...fields, reward: `${BigInt(fields.reward) + 1n}` },
      tag: { ...fields, tags: [{ name: "YQ", value: "YQ" }] },
      data: { ...fields, data: flip(fields.data) },
    };
    const outcomes: Record<string, string> = {};
    for (const [name, value] of Object.entries(changed)) {
      outcomes[name] = codesOf(await devnet.postTransaction(JSON.stringify(value)));
    }
    expect(outcomes).toEqual({
      id: "tx_id_not_valid",
      signature: "tx_id_not_valid tx_signature_not_valid",
      owner: "overspend tx_signature_not_valid",
      quantity: "tx_signature_not_valid",
      reward: "tx_signature_not_valid",
      tag: "tx_signature_not_valid",
      data: "unknown_split",
    });
    devnet.close();
  });

  test("is accepted from an ECDSA wallet, whose address follows from its signature", async () => {
    const devnet = await openTestDevnet();
    const transaction = await post(devnet, ecdsa, { data: testBytes(3) });
    expect(JSON.parse(transaction.text).owner).toBe("");
    await devnet.mine(1);
    expect(devnet.account(ecdsa.address)?.lastTx).toBe(transaction.id);
    devnet.close();
  });

  test("is rejected when its ECDSA signature has a high S, which would give it a second id", async () => {
    const devnet = await openTestDevnet();
    const fields = JSON.parse(sign(devnet, ecdsa).text);
    const signature = Buffer.from(fields.signature, "base64url");
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
    const s = order - BigInt(`0x${signature.subarray(32, 64).toString("hex")}`);
    signature.set(Buffer.from(s.toString(16).padStart(64, "0"), "hex"), 32);
    signature[64] = (signature[64] ?? 0) ^ 1;
    const id = new Bun.CryptoHasher("sha256").update(signature).digest("base64url");
    const twin = JSON.stringify({ ...fields, id, signature: signature.toString("base64url") });
    expect(readTransaction(twin).ownerAddress).toBe(ecdsa.address);
    expect(codesOf(await devnet.postTransaction(twin))).toBe("tx_signature_not_valid");
    devnet.close();
  });
});

describe("an anchor", () => {
  test("is one of the last 50 blocks", async () => {
    const devnet = await openTestDevnet();
    const first = devnet.tipHash();
    await devnet.mine(49);
    expect(codesOf(await devnet.postTransaction(sign(devnet, rsa, { lastTx: first }).text))).toBe("accepted");
    await devnet.mine(1);
    const late = sign(devnet, ecdsa, { lastTx: first });
    expect(codesOf(await devnet.postTransaction(late.text))).toBe("tx_bad_anchor");
    devnet.close();
  });

  test("is the wallet's last transaction, once", async () => {
    const devnet = await openTestDevnet();
    const first = await post(devnet, rsa, { lastTx: "" });
    const waiting = sign(devnet, rsa, { lastTx: first.id });
    expect(codesOf(await devnet.postTransaction(waiting.text))).toBe("last_tx_in_mempool");
    await devnet.mine(1);
    await post(devnet, rsa, { lastTx: first.id });
    await devnet.mine(1);
    const again = sign(devnet, rsa, { lastTx: first.id, reward: fee + 1n });
    expect(codesOf(await devnet.postTransaction(again.text))).toBe("tx_bad_anchor");
    devnet.close();
  });

  test("prevents a second post of a transaction that the node has forgotten", async () => {
    const clock = Object.assign(() => clock.now, { now: 1_700_000_000_000 });
    const devnet = await openTestDevnet({ clock });
    const { text } = await post(devnet, rsa);
    expect(codesOf(await devnet.postTransaction(text))).toBe("already_processed");
    await devnet.mine(1);
    expect(codesOf(await devnet.postTransaction(text))).toBe("already_processed");
    clock.now += 600_000;
    expect(codesOf(await devnet.postTransaction(text))).toBe("tx_already_in_weave");
    await devnet.mine(50);
    clock.now += 600_000;
    expect(codesOf(await devnet.postTransaction(text))).toBe("tx_bad_anchor");
    devnet.close();
  });
});

/** Signing rejects what the wire cannot carry; such fields are put into the signed text afterwards. */
function withoutLimits(fields: Parameters<typeof sign>[2]) {
  return { ...fields, tags: fields?.tags?.filter(({ value }) => value.length < 2_048) ?? [] };
}

function writtenOut(text: string, fields: Parameters<typeof sign>[2]): string {
  const large = fields?.tags?.filter(({ value }) => value.length >= 2_048) ?? [];
  if (large.length === 0) return text;
  const tags = large.map(({ name, value }) => ({
    name: btoa(name),
    value: Buffer.from(value).toString("base64url"),
  }));
  return JSON.stringify({ ...JSON.parse(text), tags });
}

function flip(text: string): string {
  return (text.startsWith("A") ? "B" : "A") + text.slice(1);
}
