/**
 * Payments by x402 from wallets that are contracts (EIP-1271), also from one that is still to be made (EIP-6492): the
 * contracts on anvil, with the real Multicall3, and a whole program that settles directly.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readAddress, type UserAddress } from "../../src/payment/addresses.ts";
import { type Authorization, authorizationHash } from "../../src/payment/evm/authorization.ts";
import { createAuthorizationChain } from "../../src/payment/evm/authorization-chain.ts";
import { createEvmChain, createEvmClient } from "../../src/payment/evm/evm-chain.ts";
import { type JsonRpc, openJsonRpc } from "../../src/payment/evm/json-rpc.ts";
import { isSignedByWallet, multicallAddress } from "../../src/payment/evm/wallet-signature.ts";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { type Anvil, anvilAccounts, anvilNeed, callOf, openAnvil, selectors, wordOf } from "./anvil.ts";
import contracts from "./contracts/dollar.json";

const never = new AbortController().signal;
const [owner, stranger, settler] = anvilAccounts;
const payTo = known("0x2222222222222222222222222222222222222222");
const wallet = { create: "9ed93318", placeOf: "222d825b", digestOf: "6901eb1e", burn: "4fcccbae" } as const;
const magic = "6492".repeat(16);
/** Costs the least that anything does: 1,000 units. */
const small = "type=credits&qty=1";

describeWith(anvilNeed.there ? clientLibraries : anvilNeed, "a smart wallet that pays by x402", () => {
  let anvil: Anvil;
  let rpc: JsonRpc;
  let contract: UserAddress;
  let factory: string;
  let program: RunningProgram;
  let nonces = 0;

  beforeAll(async () => {
    anvil = await openAnvil();
    contract = known(await anvil.deployDollar());
    factory = await anvil.deploy(contracts.WalletFactory.bytecode);
    const { multicall3Bytecode } = await import(
      new URL("node_modules/viem/constants/contracts.ts", import.meta.url).href
    );
    const multicall = await anvil.deploy(multicall3Bytecode);
    await anvil.rpc("anvil_setCode", multicallAddress, await anvil.rpc("eth_getCode", multicall, "latest"));
    rpc = openJsonRpc(anvil.url);
    program = await startDev({
      environment: {
        X402_PAY_TO: payTo,
        X402_NETWORK: "base",
        X402_RPC_URL: anvil.url,
        X402_ASSET_ADDRESS: contract,
        X402_SETTLE_KEY: settler.key,
      },
    });
  }, 120_000);

  afterAll(async () => {
    await program?.remove();
    rpc?.close();
    await anvil?.close();
  });

  const call = (to: string, data: string) => anvil.rpc<string>("eth_call", { to, data }, "latest");
  const domain = () => ({ name: "USD Coin", version: "2", chainId: BigInt(anvil.chainId), contract });
  const client = () => createEvmClient(rpc, BigInt(anvil.chainId));
  const dollarsOf = async (address: string) => BigInt(await call(contract, callOf("70a08231", address)));

  /** Where a wallet is, or will be. */
  async function placeOf(key: string): Promise<UserAddress> {
    return known(`0x${(await call(factory, callOf(wallet.placeOf, key))).slice(26)}`);
  }

  async function fund(address: string): Promise<void> {
    const data = callOf(selectors.mint, address, 10n ** 9n);
    await anvil.send({ from: owner.address, to: contract, data });
  }

  /** A wallet of a new owner, with dollars, made or not. */
  async function openWallet(isMade: boolean) {
    const { generatePrivateKey, privateKeyToAccount } = await import("viem/accounts");
    const account = privateKeyToAccount(generatePrivateKey());
    const address = await placeOf(account.address);
    if (isMade) await anvil.send({ from: owner.address, to: factory, data: callOf(wallet.create, account.address) });
    await fund(address);
    /** Signs as the wallet's contract wants it, before it is there, too. */
    const sign = async (authorization: Authorization): Promise<string> => {
      const { encodeAbiParameters, keccak256 } = await import("viem");
      const hash = `0x${authorizationHash(domain(), authorization).toHex()}` as const;
      const words = [{ type: "string" }, { type: "uint256" }, { type: "address" }, { type: "bytes32" }] as const;
      const place = address as string as `0x${string}`;
      const content = encodeAbiParameters(words, ["Wallet", BigInt(anvil.chainId), place, hash]);
      const signature = await account.sign({ hash: keccak256(content) });
      return `0x${wordOf(account.address)}${signature.slice(2)}`;
    };
    /** The signature with the call that makes the wallet (EIP-6492). */
    const wrapped = async (
      authorization: Authorization,
      making = callOf(wallet.create, account.address),
      by = factory,
    ) => {
      const { encodeAbiParameters } = await import("viem");
      const words = [{ type: "address" }, { type: "bytes" }, { type: "bytes" }] as const;
      const inner = (await sign(authorization)) as `0x${string}`;
      return `${encodeAbiParameters(words, [by as `0x${string}`, making as `0x${string}`, inner])}${magic}`;
    };
    return { address, account, sign, wrapped };
  }

  function authorizationOf(from: UserAddress, changes: Partial<Authorization> = {}): Authorization {
    nonces += 1;
    const now = BigInt(Math.floor(Date.now() / 1_000));
    return {
      from,
      to: payTo,
      value: 1_000n,
      validAfter: now - 600n,
      validBefore: now + 300n,
      nonce: `0x${nonces.toString(16).padStart(64, "0")}`,
      ...changes,
    };
  }

  const topUp = (authorization: Authorization, signature: string): Promise<Response> => {
    const { from, to, nonce, ...numbers } = authorization;
    const texts = Object.entries(numbers).map(([name, number]) => [name, number.toString()]);
    const payload = { signature, authorization: { from, to, nonce, ...Object.fromEntries(texts) } };
    const payment = { x402Version: 1, scheme: "exact", network: "base", payload };
    const header = Buffer.from(JSON.stringify(payment)).toString("base64");
    return fetch(`${program.line.payment}/v1/x402/top-up?${small}`, { headers: { "x-payment": header } });
  };

  test("that is there pays, once however often it is sent", async () => {
    const { address, sign } = await openWallet(true);
    const authorization = authorizationOf(address);
    const signature = await sign(authorization);
    const responses = await Promise.all([topUp(authorization, signature), topUp(authorization, signature)]);
    for (const response of responses) expect([200, 503]).toContain(response.status);
    const last = await topUp(authorization, signature);
    expect(last.status).toBe(200);
    const paid = await last.json();
    expect(paid).toMatchObject({ walletAddress: address, balance: paid.creditedWinc });
    expect(await dollarsOf(address)).toBe(10n ** 9n - 1_000n);
  });

  test("that is still to be made is made, and pays, in one transaction", async () => {
    const { address, wrapped } = await openWallet(false);
    expect(await anvil.rpc<string>("eth_getCode", address, "latest")).toBe("0x");
    const authorization = authorizationOf(address);
    const response = await topUp(authorization, await wrapped(authorization));
    expect(response.status).toBe(200);
    expect(await anvil.rpc<string>("eth_getCode", address, "latest")).not.toBe("0x");
    expect(await dollarsOf(address)).toBe(10n ** 9n - 1_000n);
    // Its next payment still says how it is made.
    const next = authorizationOf(address);
    expect((await topUp(next, await wrapped(next))).status).toBe(200);
  });

  test("whose signature is another's, or of another payment, is rejected, and nothing moves", async () => {
    const made = await openWallet(true);
    const other = await openWallet(true);
    const unmade = await openWallet(false);
    const authorization = authorizationOf(made.address);
    const ofUnmade = authorizationOf(unmade.address);
    const before = await anvil.rpc<string>("eth_getTransactionCount", settler.address, "latest");
    for (const [payment, signature] of [
      [authorization, await other.sign(authorization)],
      [authorization, await made.sign({ ...authorization, value: 1n })],
      [authorization, `0x${"5a".repeat(65)}`],
      [authorization, "0x"],
      [ofUnmade, await unmade.sign(ofUnmade)],
      [ofUnmade, await other.wrapped(ofUnmade)],
      [ofUnmade, await unmade.wrapped(ofUnmade, callOf(wallet.create, stranger.address))],
      [ofUnmade, `0x${"00".repeat(31)}${magic}`],
      [ofUnmade, `0x${"ff".repeat(96)}${magic}`],
    ] as const) {
      const response = await topUp(payment, signature);
      expect([response.status, await response.json()]).toEqual([403, "Invalid signature or missing required headers"]);
    }
    expect(await anvil.rpc<string>("eth_getTransactionCount", settler.address, "latest")).toBe(before);
    expect([await dollarsOf(made.address), await dollarsOf(unmade.address)]).toEqual([10n ** 9n, 10n ** 9n]);
  });

  test("cannot have our account call what it likes: the call that makes it comes from Multicall3", async () => {
    await fund(settler.address);
    const { address, wrapped } = await openWallet(true);
    const authorization = authorizationOf(address);
    const stealing = callOf(selectors.transfer, stranger.address, 10n ** 9n);
    const before = await dollarsOf(settler.address);
    const response = await topUp(authorization, await wrapped(authorization, stealing, contract));
    expect(response.status).toBe(200);
    expect([await dollarsOf(settler.address), await dollarsOf(stranger.address)]).toEqual([before, 0n]);
  });

  test("whose check needs more gas than is paid for is rejected", async () => {
    const { address, sign } = await openWallet(true);
    await anvil.send({ from: owner.address, to: address, data: callOf(wallet.burn, 1n) });
    const authorization = authorizationOf(address);
    expect((await topUp(authorization, await sign(authorization))).status).toBe(403);
    expect(await dollarsOf(address)).toBe(10n ** 9n);
  });

  test("on a chain without Multicall3 cannot be made, and its payment does not fit", async () => {
    const { address, wrapped } = await openWallet(false);
    const authorization = authorizationOf(address);
    const signature = Uint8Array.fromHex((await wrapped(authorization)).slice(2));
    const chain = createAuthorizationChain({
      client: client(),
      domain: domain(),
      evm: createEvmChain(rpc, BigInt(anvil.chainId)),
    });
    expect(await chain.try(authorization, signature, never)).toEqual({ kind: "fits" });
    const code = await anvil.rpc<string>("eth_getCode", multicallAddress, "latest");
    await anvil.rpc("anvil_setCode", multicallAddress, "0x");
    try {
      expect(await isSignedByWallet(client(), domain(), { authorization, signature }, never)).toEqual({
        kind: "ok",
        value: false,
      });
      expect(await chain.try(authorization, signature, never)).toMatchObject({ kind: "reverts" });
    } finally {
      await anvil.rpc("anvil_setCode", multicallAddress, code);
    }
  });

  test("is not believed where the chain cannot be asked", async () => {
    const { address, sign } = await openWallet(true);
    const authorization = authorizationOf(address);
    const signature = Uint8Array.fromHex((await sign(authorization)).slice(2));
    const elsewhere = openJsonRpc("http://127.0.0.1:1");
    const unreachable = createEvmClient(elsewhere, BigInt(anvil.chainId));
    expect(await isSignedByWallet(unreachable, domain(), { authorization, signature }, never)).toMatchObject({
      kind: "fault",
    });
    elsewhere.close();
  });
});

function known(text: string): UserAddress {
  const read = readAddress(text.toLowerCase(), "ethereum");
  if (read === undefined) throw new Error(`${text} is not an address`);
  return read.address;
}
