/**
 * Payments in KYVE and in ERC-20 tokens that the price rules list: a whole program, with anvil as Base and the tests'
 * node as KYVE.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeBech32 } from "../../src/lib/base-encodings.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { type KyveNode, kyveSend, openKyveNode } from "../payment/tokens/kyve-node.ts";
import { describeWith } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";
import { type Anvil, anvilAccounts, anvilNeed, callOf, openAnvil, selectors } from "./anvil.ts";

const payee = "0x2222222222222222222222222222222222222222";
const [payer] = anvilAccounts;
const kyvePayee = encodeBech32("kyve", new Uint8Array(20).fill(1));
const kyvePayer = encodeBech32("kyve", new Uint8Array(20).fill(2));
/** ARIO on Base. */
const ario = "0x138746adfA52909E5920def027f5a8dc1C7EfFb6";
/** The rules want five blocks on top. */
const enough = 6;

type Result = Readonly<{ status: number; body: Awaited<ReturnType<Response["json"]>> }>;

describeWith(anvilNeed, "payments in KYVE and in listed tokens", () => {
  let anvil: Anvil;
  let kyve: KyveNode;
  let program: RunningProgram;
  let folder: string;
  let gold: string;

  const environment = () => ({
    PAYMENT_ADDRESS_BASE: payee,
    BASE_RPC_URL: anvil.url,
    TOKEN_WATCH_MS: "100",
    PAYMENT_ADDRESS_KYVE: kyvePayee,
    KYVE_REST_URL: kyve.url,
    PAYMENT_RULES_FILE: join(folder, "rules.json"),
  });

  beforeAll(async () => {
    anvil = await openAnvil();
    kyve = openKyveNode();
    gold = await anvil.deployDollar();
    await anvil.rpc("anvil_setCode", ario, await anvil.rpc("eth_getCode", gold, "latest"));
    folder = mkdtempSync(join(tmpdir(), "cairn-listed-tokens-"));
    const rules = {
      tokens: { "base-gold": { feedId: "usd-coin", contract: gold, decimals: 8, confirmations: 2 } },
    };
    writeFileSync(join(folder, "rules.json"), JSON.stringify(rules));
    program = await startDev({ environment: environment() });
    for (const contract of [ario, gold])
      await anvil.send({
        from: payer.address,
        to: contract,
        data: callOf(selectors.mint, payer.address, 10n ** 15n),
      });
  }, 120_000);

  afterAll(async () => {
    await program?.remove();
    await anvil?.close();
    await kyve?.close();
    if (folder !== undefined) removeFolder(folder);
  });

  const ask = async (path: string): Promise<Result> => {
    const response = await fetch(`${program.line.payment}/v1/${path}`);
    return { status: response.status, body: await response.json() };
  };
  const balanceOf = async (address: string): Promise<bigint> => {
    const { status, body } = await ask(`account/balance/ethereum?address=${address}`);
    return status === 404 ? 0n : BigInt(body.winc);
  };
  const report = async (token: string, id: string): Promise<Result> => {
    const response = await fetch(`${program.line.payment}/v1/account/balance/${token}`, {
      method: "POST",
      body: JSON.stringify({ tx_id: id }),
    });
    return { status: response.status, body: await response.json() };
  };
  const transfer = (contract: string, amount: bigint) =>
    anvil.send({ from: payer.address, to: contract, data: callOf(selectors.transfer, payee, amount) });

  test("/v1/info names where they go", async () => {
    const { body } = await ask("info");
    expect(body.addresses).toMatchObject({ "base-ario": payee, "base-gold": payee, kyve: kyvePayee });
  });

  test("prices follow their decimals; no fee is stored of them unless a rule names them", async () => {
    const [ofBase, ofArio] = await Promise.all([ask("price/base-ario/1000000"), ask("price/ario/1000000")]);
    expect(ofBase).toEqual(ofArio);
    const [ofGold, ofDollar] = await Promise.all([ask("price/base-gold/100000000"), ask("price/base-usdc/1000000")]);
    expect(ofGold.body.winc).toBe(ofDollar.body.actualPaymentAmount.toString());
  });

  test("a token that is not listed has no price and is not taken", async () => {
    expect(await ask("price/base-silver/1000")).toEqual({
      status: 400,
      body: "The currency type 'base-silver' is currently not supported by this API!",
    });
    expect((await report("base-silver", `0x${"ab".repeat(32)}`)).status).toBe(400);
  });

  test.each(["base-ario", "base-gold"])("%s that is reported is pending, then credited once", async (token) => {
    const contract = token === "base-ario" ? ario : gold;
    const before = await balanceOf(payer.address);
    const hash = await transfer(contract, 10n ** 8n);
    const reported = await report(token, hash);
    expect(reported.status).toBe(202);
    expect(reported.body.pendingTransaction).toMatchObject({ tokenType: token, transactionId: hash });
    const winc = BigInt(reported.body.pendingTransaction.winstonCreditAmount);
    await anvil.mine(enough);
    await eventually(
      () => balanceOf(payer.address),
      (now) => now === before + winc,
    );
    expect((await report(token, hash)).status).toBe(200);
    expect(await balanceOf(payer.address)).toBe(before + winc);
  });

  test("unreported ARIO is found, also when the program was killed meanwhile", async () => {
    const before = await balanceOf(payer.address);
    await program.kill();
    await transfer(ario, 10n ** 8n);
    await anvil.mine(enough);
    program = await startDev({ folder: program.folder, environment: environment() });
    await eventually(
      () => balanceOf(payer.address),
      (now) => now > before,
    );
  }, 120_000);

  test("KYVE is credited when it is reported, and when it is not", async () => {
    const id = kyve.send({ messages: [kyveSend(kyvePayer, kyvePayee, 1_000_000n)] });
    const price = BigInt((await ask("price/kyve/1000000")).body.winc);
    const reported = await report("kyve", id.toLowerCase());
    expect([reported.status, reported.body.creditedTransaction?.transactionId]).toEqual([200, id]);
    expect(await balanceOf(kyvePayer)).toBe(price);
    kyve.send({ messages: [kyveSend(kyvePayer, kyvePayee, 2_000_000n)] });
    await eventually(
      () => balanceOf(kyvePayer),
      (now) => now >= price * 3n,
    );
    expect(await balanceOf(kyvePayer)).toBe(price * 3n);
  });
});
