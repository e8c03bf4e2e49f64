/**
 * The published clients of x402 read beyond the limits for a payment: a whole program that is killed in between, with
 * anvil as Base.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { type Anvil, anvilAccounts, anvilNeed, callOf, openAnvil, selectors } from "./anvil.ts";

const [payer, , settler] = anvilAccounts;
const payTo = "0x2222222222222222222222222222222222222222";
/** Requests that one payment buys: each takes a kibibyte at least. */
const bought = 6;
/** Tokens of an address; one a second comes back. */
const bucket = 40;

describeWith(anvilNeed.there ? clientLibraries : anvilNeed, "a published client that reads on", () => {
  let anvil: Anvil;
  let program: RunningProgram;
  let dollar: string;

  const environment = () => ({
    X402_PAY_TO: payTo,
    X402_NETWORK: "base",
    X402_RPC_URL: anvil.url,
    X402_ASSET_ADDRESS: dollar,
    X402_SETTLE_KEY: settler.key,
    ENABLE_RATE_LIMITER: "true",
    RATE_LIMITER_PAYMENT: "true",
    RATE_LIMITER_IP_TOKENS_PER_BUCKET: String(bucket),
    RATE_LIMITER_IP_REFILL_PER_SEC: "1",
    RATE_LIMITER_PAYMENT_BYTES: String(bought * 1_024),
  });

  beforeAll(async () => {
    anvil = await openAnvil();
    dollar = await anvil.deployDollar();
    const mint = callOf(selectors.mint, payer.address, 10n ** 9n);
    await anvil.send({ from: payer.address, to: dollar, data: mint });
    program = await startDev({ environment: environment() });
  }, 120_000);

  afterAll(async () => {
    await program?.remove();
    await anvil?.close();
  });

  const read = () => fetch(`${program.line.gateway}/info`);
  const dollarsOf = async (address: string) =>
    BigInt(await anvil.rpc<string>("eth_call", { to: dollar, data: callOf("70a08231", address) }, "latest"));

  /** One response of more than two buckets: it leaves the address a debt that lasts longer than the test. */
  async function useUpLimit(): Promise<void> {
    const response = await fetch(`${program.line.gateway}/openapi.json`);
    expect(response.status).toBe(200);
    expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(2 * bucket * 1_024);
  }

  test("is asked to pay, pays by itself, and reads on; the allowance outlives the program", async () => {
    const { privateKeyToAccount } = await import("viem/accounts");
    const { wrapFetchWithPayment } = await import("x402-fetch");
    const paying = wrapFetchWithPayment(fetch, privateKeyToAccount(payer.key) as never, 1_000_000n);
    await useUpLimit();
    const required = await read();
    expect([required.status, required.headers.has("payment-required")]).toEqual([402, true]);
    const before = await dollarsOf(payTo);
    const response = await paying(`${program.line.gateway}/info`);
    expect(response.status).toBe(200);
    expect(response.headers.get("x-payment-response")).not.toBeNull();
    expect(await dollarsOf(payTo)).toBe(before + 1_000n);
    expect((await read()).status).toBe(200);
    await program.kill();
    program = await startDev({ folder: program.folder, environment: environment() });
    await useUpLimit();
    const statuses: number[] = [];
    for (let count = 2; count <= bought; count += 1) statuses.push((await read()).status);
    expect(statuses).toEqual([200, 200, 200, 200, 402]);
    expect(await dollarsOf(payTo)).toBe(before + 1_000n);
    const check = Bun.spawnSync([process.execPath, "src/main.ts", "ledger", "check"], {
      env: { ...process.env, DATA_DIR: program.folder },
    });
    expect([check.exitCode, check.stdout.toString()]).toEqual([0, expect.any(String)]);
  }, 120_000);
});
