/**
 * The published SDK pays in coins and dollars of an EVM chain: a whole program, with anvil as Base.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";
import { type Anvil, anvilAccounts, anvilNeed, callOf, openAnvil, selectors } from "./anvil.ts";
import { arweaveKey } from "./turbo.ts";

const payee = "0x2222222222222222222222222222222222222222";
const [payer] = anvilAccounts;
const pollingOptions = { initialBackoffMs: 10, pollingIntervalMs: 50, maxAttempts: 1_000 };
/** USDC on Base. */
const contract = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
/** The rules want five blocks on top. */
const enough = 6;

describeWith(anvilNeed.there ? clientLibraries : anvilNeed, "the published SDK, paying on Base", () => {
  let anvil: Anvil;
  let program: RunningProgram;

  beforeAll(async () => {
    anvil = await openAnvil();
    // The SDK knows one contract, and so do our settings.
    const code = await anvil.rpc("eth_getCode", await anvil.deployDollar(), "latest");
    await anvil.rpc("anvil_setCode", contract, code);
    program = await startDev({ environment: environment() });
  }, 120_000);

  afterAll(async () => {
    await program?.remove();
    await anvil?.close();
  });

  const environment = () => ({
    PAYMENT_ADDRESS_BASE: payee,
    BASE_RPC_URL: anvil.url,
    TOKEN_WATCH_MS: "100",
  });

  async function open(token: "base-eth" | "base-usdc") {
    const { TurboFactory } = await import("@ardrive/turbo-sdk");
    const turbo = TurboFactory.authenticated({
      privateKey: payer.key,
      token,
      gatewayUrl: anvil.url,
      paymentServiceConfig: { url: program.line.payment },
      uploadServiceConfig: { url: program.line.upload },
    });
    // It looks for its own transaction after 25 seconds and its options cannot change that.
    const { tokenTools } = Reflect.get(turbo, "paymentService");
    Object.assign(tokenTools, { pollingOptions });
    return turbo;
  }

  test("in ether: pending at once, credited with its confirmations, to the sender", async () => {
    const turbo = await open("base-eth");
    const sent = await turbo.topUpWithTokens({ tokenAmount: (10n ** 15n) as never });
    expect(sent).toMatchObject({ status: "pending", target: payee, owner: payer.address });
    const before = BigInt((await turbo.getBalance()).winc);
    await anvil.mine(enough);
    const { winc } = await eventually(
      () => turbo.getBalance(),
      ({ winc }) => BigInt(winc) > before,
    );
    expect(BigInt(winc) - before).toBe(BigInt(sent.winc));
    expect(await turbo.submitFundTransaction({ txId: sent.id })).toMatchObject({ status: "confirmed" });
  });

  test("in dollars, for an account of another chain, which it names after the arguments of the call", async () => {
    await anvil.send({
      from: payer.address,
      to: contract,
      data: callOf(selectors.mint, payer.address, 10n ** 9n),
    });
    const turbo = await open("base-usdc");
    const { address } = arweaveKey(program);
    const balance = async () => {
      const response = await fetch(`${program.line.payment}/v1/account/balance/arweave?address=${address}`);
      return response.status === 404 ? 0n : BigInt((await response.json()).winc);
    };
    const before = await balance();
    const sent = await turbo.topUpWithTokens({
      tokenAmount: 5_000_000 as never,
      turboCreditDestinationAddress: address,
    });
    expect(sent.status).toBe("pending");
    await anvil.mine(enough);
    const after = await eventually(balance, (now) => now > before);
    expect(after - before).toBe(BigInt(sent.winc));
  });

  test("by hand, without a report: it is found on the chain", async () => {
    const turbo = await open("base-eth");
    const before = BigInt((await turbo.getBalance()).winc);
    await anvil.send({ from: payer.address, to: payee, value: 10n ** 15n });
    await anvil.mine(enough);
    await eventually(
      () => turbo.getBalance(),
      ({ winc }) => BigInt(winc) > before,
    );
  });

  test("over kill -9: what was pending is credited by the next start, once", async () => {
    const turbo = await open("base-eth");
    const before = BigInt((await turbo.getBalance()).winc);
    const sent = await turbo.topUpWithTokens({ tokenAmount: (10n ** 15n) as never });
    const { folder } = program;
    await program.kill();
    await anvil.mine(enough);
    program = await startDev({ folder, environment: environment() });
    const again = await open("base-eth");
    await eventually(
      () => again.getBalance(),
      ({ winc }) => BigInt(winc) === before + BigInt(sent.winc),
    );
    await again.submitFundTransaction({ txId: sent.id });
    expect(BigInt((await again.getBalance()).winc)).toBe(before + BigInt(sent.winc));
  }, 120_000);
});
