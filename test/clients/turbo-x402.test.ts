/**
 * The published SDK's uploads that are paid for by x402, unchanged, with dollars on anvil: bytes that are signed here,
 * and an item in parts.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Readable } from "node:stream";
import { BigNumber } from "bignumber.js";
import { describeWith } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";
import { type Anvil, anvilAccounts, anvilNeed, callOf, openAnvil, selectors, wordOf } from "./anvil.ts";
import { isSigned, type WireReceipt } from "./receipt-check.ts";
import { openAnonymousTurbo, openTurbo } from "./turbo.ts";

const [minter, payer, carrier, payee] = anvilAccounts;
const dollars = 1_000_000n;

describeWith(anvilNeed, "turbo-sdk by x402", () => {
  let anvil: Anvil;
  let program: RunningProgram;
  let dollar: string;

  beforeAll(async () => {
    anvil = await openAnvil();
    dollar = await anvil.deployDollar();
    await anvil.send({
      from: minter.address,
      to: dollar,
      data: callOf(selectors.mint, payer.address, 100n * dollars),
    });
    program = await startDev({
      environment: {
        FREE_UPLOAD_BYTES: "0",
        X402_PAY_TO: payee.address,
        X402_NETWORK: "base",
        X402_ASSET_ADDRESS: dollar,
        X402_ASSET_NAME: "USD Coin",
        X402_ASSET_VERSION: "2",
        X402_RPC_URL: anvil.url,
        X402_SETTLE_KEY: carrier.key,
      },
    });
  }, 120_000);

  afterAll(async () => {
    await program?.remove();
    await anvil?.close();
  });

  const turbo = () =>
    openTurbo(program, { token: "base-usdc", privateKey: payer.key, address: payer.address, winc: 0n });

  async function dollarsOf(address: string): Promise<bigint> {
    const call = { to: dollar, data: `0x70a08231${wordOf(address)}` };
    return BigInt(await anvil.rpc<string>("eth_call", call, "latest"));
  }

  async function wincOf(address: string): Promise<bigint> {
    return BigInt((await (await openAnonymousTurbo(program)).getBalance(address)).winc);
  }

  test("uploadRawX402Data pays once, and what it uploaded is read back at once", async () => {
    const data = Buffer.from(`bytes without a key ${Date.now()}`);
    const before = await dollarsOf(payee.address);
    const uploaded = await (await turbo()).uploadRawX402Data({
      data,
      tags: [{ name: "Content-Type", value: "text/plain" }],
      maxMUSDCAmount: BigNumber(1_000_000),
    });
    expect(isSigned(uploaded as unknown as WireReceipt)).toBe(true);
    const response = await fetch(`${program.line.gateway}/raw/${uploaded.id}`);
    expect([response.status, await response.text()]).toEqual([200, data.toString()]);
    expect(response.headers.get("content-type")).toContain("text/plain");
    const { mUSDCPaid } = uploaded as unknown as { mUSDCPaid: string };
    expect((await dollarsOf(payee.address)) - before).toBe(BigInt(mUSDCPaid));
  }, 120_000);

  test("uploadFile in parts pays when it begins, and the rest of the payment is credited", async () => {
    const { X402Funding } = await import("@ardrive/turbo-sdk");
    const size = 11 * 2 ** 20;
    const bytes = Buffer.alloc(size, `${Date.now()} `);
    const [before, wincBefore] = [await dollarsOf(payee.address), await wincOf(payer.address)];
    const receipt = await (await turbo()).uploadFile({
      fileStreamFactory: () => Readable.from([bytes]),
      fileSizeFactory: () => size,
      chunkingMode: "force",
      fundingMode: new X402Funding({ maxMUSDCAmount: 50_000_000 }),
    });
    const response = await fetch(`${program.line.gateway}/raw/${receipt.id}`);
    expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true);
    expect((await dollarsOf(payee.address)) - before).toBeGreaterThan(0n);
    await eventually(
      () => wincOf(payer.address),
      (winc) => winc >= wincBefore,
    );
  }, 120_000);
});
