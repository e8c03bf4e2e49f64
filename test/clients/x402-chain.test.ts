/**
 * Signatures, requests and reads of x402, against anvil and the published library for its chains: hashes, signatures
 * and transactions by chance; transactions that are stuck; blocks that are taken back; authorizations that were
 * cancelled, spent or are no longer valid.
 * @module
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { readAddress, type UserAddress } from "../../src/payment/addresses.ts";
import {
  type Authorization,
  authorizationHash,
  isSignedByOwner,
  writeTransferCall,
} from "../../src/payment/evm/authorization.ts";
import { type AuthorizationChain, createAuthorizationChain } from "../../src/payment/evm/authorization-chain.ts";
import { createEvmChain, createEvmClient } from "../../src/payment/evm/evm-chain.ts";
import { createEvmSender, type EvmSender, signTransaction } from "../../src/payment/evm/evm-sender.ts";
import { type JsonRpc, openJsonRpc } from "../../src/payment/evm/json-rpc.ts";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { createTestClock, type TestClock } from "../support/payment.ts";
import { createRandom } from "../support/random.ts";
import { newSeed } from "../support/seed.ts";
import { eventually } from "../support/until.ts";
import { type Anvil, anvilAccounts, anvilNeed, callOf, openAnvil, selectors } from "./anvil.ts";

const never = new AbortController().signal;
const [payer, , settler] = anvilAccounts;
const payTo = known("0x2222222222222222222222222222222222222222");

describeWith(anvilNeed.there ? clientLibraries : anvilNeed, "x402 on a chain", () => {
  let anvil: Anvil;
  let rpc: JsonRpc;
  let contract: UserAddress;
  let chain: AuthorizationChain;
  let sender: EvmSender;
  let clock: TestClock;
  let nonces = 0;

  beforeAll(async () => {
    anvil = await openAnvil();
    contract = known(await anvil.deployDollar());
    await anvil.send({
      from: payer.address,
      to: contract,
      data: callOf(selectors.mint, payer.address, 10n ** 12n),
    });
    rpc = openJsonRpc(anvil.url);
  }, 120_000);

  beforeEach(async () => {
    await anvil.rpc("evm_setAutomine", true);
    await anvil.mine();
    clock = createTestClock();
    const client = createEvmClient(rpc, BigInt(anvil.chainId));
    chain = createAuthorizationChain({
      client,
      domain: domain(),
      evm: createEvmChain(rpc, BigInt(anvil.chainId)),
    });
    const privateKey = Uint8Array.fromHex(settler.key.slice(2));
    sender = createEvmSender({ client, chainId: BigInt(anvil.chainId), privateKey, clock: clock.now });
  });

  afterAll(async () => {
    rpc?.close();
    await anvil?.close();
  });

  const domain = () => ({ name: "USD Coin", version: "2", chainId: BigInt(anvil.chainId), contract });

  async function authorize(changes: Partial<Authorization> = {}) {
    const { privateKeyToAccount } = await import("viem/accounts");
    nonces += 1;
    const authorization: Authorization = {
      from: known(payer.address),
      to: payTo,
      value: 1_000n,
      validAfter: 0n,
      validBefore: 2n ** 40n,
      nonce: `0x${nonces.toString(16).padStart(64, "0")}`,
      ...changes,
    };
    const { contract: verifyingContract, chainId, ...words } = domain();
    const text = await privateKeyToAccount(payer.key).signTypedData({
      domain: { ...words, chainId: Number(chainId), verifyingContract: verifyingContract as `0x${string}` },
      types: authorizationTypes,
      primaryType: "TransferWithAuthorization",
      message: authorization as never,
    });
    const signature = Uint8Array.fromHex(text.slice(2));
    return { authorization, signature, data: writeTransferCall(authorization, signature) };
  }

  const look = async (authorization: Authorization, transaction?: string) => {
    const status = await chain.look(authorization, { transaction, fromHeight: 0 }, never);
    return status.kind === "ok" ? status.value : status;
  };
  const send = async (data: Uint8Array) => {
    const outcome = await sender.send({ to: contract, data }, async () => true, never);
    if (outcome.kind !== "sent") throw new Error(JSON.stringify(outcome));
    return outcome.transaction;
  };

  test("hashes, signatures and transactions by chance are those of a published library", async () => {
    const { hashTypedData, keccak256, parseTransaction, recoverTransactionAddress } = await import("viem");
    const { privateKeyToAccount } = await import("viem/accounts");
    const random = createRandom(newSeed());
    const number = () =>
      random.pick([0n, 1n, 127n, 128n, 2n ** 256n - 1n, BigInt(`0x${random.bytes(1 + random.below(32)).toHex()}`)]);
    for (let round = 0; round < 100; round += 1) {
      const key = random.bytes(32);
      const account = privateKeyToAccount(`0x${key.toHex()}`);
      const authorization: Authorization = {
        from: known(account.address),
        to: payTo,
        value: number(),
        validAfter: number(),
        validBefore: number(),
        nonce: `0x${random.bytes(32).toHex()}`,
      };
      const { contract: verifyingContract, ...rest } = { ...domain(), name: `coin ${random.below(99)} ü` };
      const typed = {
        domain: {
          ...rest,
          chainId: Number(rest.chainId),
          verifyingContract: verifyingContract as `0x${string}`,
        },
        types: authorizationTypes,
        primaryType: "TransferWithAuthorization",
        message: authorization as never,
      } as const;
      const own = { ...rest, contract };
      expect(`0x${authorizationHash(own, authorization).toHex()}`).toBe(hashTypedData(typed));
      const signature = Uint8Array.fromHex((await account.signTypedData(typed)).slice(2));
      expect(isSignedByOwner(own, authorization, signature)).toBe(true);

      const fees = { feeMax: number() % 2n ** 100n, tipMax: 0n };
      const wanted = {
        chainId: BigInt(1 + random.below(2 ** 31)),
        nonce: BigInt(random.below(2 ** 40)),
        ...fees,
        gasMax: BigInt(random.below(2 ** 30)),
        to: payTo,
        data: random.bytes(random.below(600)),
      };
      const { raw, hash } = signTransaction(wanted, key);
      expect(hash).toBe(keccak256(raw as `0x${string}`));
      const read = parseTransaction(raw as `0x02${string}`);
      expect(read).toMatchObject({ chainId: Number(wanted.chainId), type: "eip1559" });
      expect([BigInt(read.nonce ?? 0), read.maxFeePerGas ?? 0n, read.gas ?? 0n, read.data ?? "0x"]).toEqual([
        wanted.nonce,
        wanted.feeMax,
        wanted.gasMax,
        `0x${wanted.data.toHex()}`,
      ]);
      expect(await recoverTransactionAddress({ serializedTransaction: raw as `0x02${string}` })).toBe(account.address);
    }
  });

  test("an authorization fits, is carried out, is found with and without its transaction, and fits no more", async () => {
    const { authorization, signature, data } = await authorize();
    expect(await chain.try(authorization, signature, never)).toEqual({ kind: "fits" });
    expect(await look(authorization)).toMatchObject({ kind: "unused" });
    const transaction = await send(data);
    const status = await eventually(
      () => look(authorization, transaction),
      ({ kind }) => kind === "moved",
    );
    expect(status).toMatchObject({ kind: "moved", transaction, confirmations: 1 });
    expect(await look(authorization)).toEqual(status);
    expect(await look(authorization, `0x${"ab".repeat(32)}`)).toEqual(status);
    expect(await chain.try(authorization, signature, never)).toMatchObject({
      kind: "reverts",
      reason: expect.stringContaining("used or canceled"),
    });
    await anvil.mine(4);
    expect(await look(authorization, transaction)).toMatchObject({ kind: "moved", confirmations: 5 });
  });

  test("what the contract would reject does not fit, and is not sent", async () => {
    for (const [changes, reason] of [
      [{ value: 2n ** 200n }, "exceeds balance"],
      [{ validBefore: 5n }, "expired"],
      [{ validAfter: 2n ** 39n }, "not yet valid"],
    ] as const) {
      const { authorization, signature, data } = await authorize(changes);
      expect(await chain.try(authorization, signature, never)).toMatchObject({
        kind: "reverts",
        reason: expect.stringContaining(reason),
      });
      let isAsked = false;
      const begin = async () => {
        isAsked = true;
        return true;
      };
      expect(await sender.send({ to: contract, data }, begin, never)).toMatchObject({ kind: "reverts" });
      expect(isAsked).toBe(false);
    }
  });

  test("a nonce that paid another account is not our payment", async () => {
    const { authorization } = await authorize();
    const elsewhere = await authorize({ nonce: authorization.nonce, to: known(settler.address) });
    const transaction = await send(elsewhere.data);
    await eventually(
      () => look(authorization, transaction),
      ({ kind }) => kind === "otherwise",
    );
    expect(await look(authorization)).toMatchObject({ kind: "otherwise", transaction });
  });

  test("what is withheld is not sent", async () => {
    const { data } = await authorize();
    const before = await anvil.rpc("eth_getTransactionCount", settler.address, "pending");
    expect(await sender.send({ to: contract, data }, async () => false, never)).toEqual({ kind: "withheld" });
    await expect(
      sender.send({ to: contract, data }, () => Promise.reject(new Error("no ledger")), never),
    ).rejects.toThrow("no ledger");
    expect(await anvil.rpc<unknown>("eth_getTransactionCount", settler.address, "pending")).toBe(before);
  });

  test("transactions that wait have numbers in a row; one that is stuck is replaced, and the rest goes on", async () => {
    await anvil.rpc("evm_setAutomine", false);
    const orders = [await authorize(), await authorize(), await authorize(), await authorize()];
    const [first, second, third, fourth] = orders;
    const sent = [await send(first?.data ?? new Uint8Array()), await send(second?.data ?? new Uint8Array())];
    const numberOf = async (hash: string) =>
      Number((await anvil.rpc<{ nonce: string } | null>("eth_getTransactionByHash", hash))?.nonce ?? -1);
    const numbers = [await numberOf(sent[0] ?? ""), await numberOf(sent[1] ?? "")];
    expect(numbers[1]).toBe((numbers[0] ?? 0) + 1);
    clock.advance(61_000);
    const replacing = await send(third?.data ?? new Uint8Array());
    expect(await numberOf(replacing)).toBe(numbers[0] ?? -1);
    expect(await numberOf(sent[0] ?? "")).toBe(-1);
    expect(await numberOf(await send(fourth?.data ?? new Uint8Array()))).toBe((numbers[1] ?? 0) + 1);
    await anvil.mine();
    const kinds = await Promise.all(orders.map(async ({ authorization }) => (await look(authorization)).kind));
    expect(kinds).toEqual(["unused", "moved", "moved", "moved"]);
    await anvil.rpc("evm_setAutomine", true);
    await send(first?.data ?? new Uint8Array());
    await eventually(
      async () => look((first ?? (await authorize())).authorization),
      ({ kind }) => kind === "moved",
    );
  });

  test("one that is left by a process that is gone is replaced by the next one's", async () => {
    await anvil.rpc("evm_setAutomine", false);
    const before = await authorize();
    await send(before.data);
    const client = createEvmClient(rpc, BigInt(anvil.chainId));
    const privateKey = Uint8Array.fromHex(settler.key.slice(2));
    const next = createEvmSender({ client, chainId: BigInt(anvil.chainId), privateKey, clock: clock.now });
    const orders = [await authorize(), await authorize()];
    const begin = async () => true;
    expect(await next.send({ to: contract, data: orders[0]?.data ?? new Uint8Array() }, begin, never)).toMatchObject({
      kind: "sent",
    });
    clock.advance(61_000);
    expect(await next.send({ to: contract, data: orders[1]?.data ?? new Uint8Array() }, begin, never)).toMatchObject({
      kind: "sent",
    });
    await anvil.mine();
    expect((await look(before.authorization)).kind).toBe("unused");
    for (const { authorization } of orders) expect((await look(authorization)).kind).toBe("moved");
  });

  test("a block that is taken back takes the authorization's use with it", async () => {
    const snapshot = await anvil.rpc("evm_snapshot");
    const { authorization, signature, data } = await authorize();
    const transaction = await send(data);
    await eventually(
      () => look(authorization, transaction),
      ({ kind }) => kind === "moved",
    );
    await anvil.rpc("evm_revert", snapshot);
    await anvil.mine();
    expect(await look(authorization, transaction)).toMatchObject({ kind: "unused" });
    expect(await chain.try(authorization, signature, never)).toEqual({ kind: "fits" });
  });

  test("a server of another chain is a fault, and nothing is sent there", async () => {
    const client = createEvmClient(rpc, 1n);
    const other = createAuthorizationChain({ client, domain: domain(), evm: createEvmChain(rpc, 1n) });
    const { authorization, signature, data } = await authorize();
    expect(await other.try(authorization, signature, never)).toMatchObject({
      kind: "fault",
      reason: "wrong",
    });
    const privateKey = Uint8Array.fromHex(settler.key.slice(2));
    const strange = createEvmSender({ client, chainId: 1n, privateKey, clock: clock.now });
    expect(await strange.send({ to: contract, data }, async () => true, never)).toMatchObject({
      kind: "fault",
    });
  });
});

const authorizationTypes = {
  TransferWithAuthorization: [
    { name: "from", type: "address" },
    { name: "to", type: "address" },
    { name: "value", type: "uint256" },
    { name: "validAfter", type: "uint256" },
    { name: "validBefore", type: "uint256" },
    { name: "nonce", type: "bytes32" },
  ],
} as const;

function known(text: string): UserAddress {
  const read = readAddress(text.toLowerCase(), "ethereum");
  if (read === undefined) throw new Error(`${text} is not an address`);
  return read.address;
}
