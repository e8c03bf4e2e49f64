/**
 * The published SDK for credits against the payment service: every call that it has for payments, unchanged.
 *
 * The required responses: docs/reference/payment.md#routes.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";
import { arweaveKey, openAnonymousTurbo, openTurbo, payCheckout, type TurboKey, turboKeys } from "./turbo.ts";

/** Promo codes, each good for one payment of an address. */
const promo = (code: string, operatorMagnitude: string) => ({
  code,
  name: code,
  description: `${code} for tests`,
  operator: "multiply",
  operatorMagnitude,
  targetUserGroup: "all",
});
const rules = { promoCodes: [promo("TENTH", "0.9"), promo("FIFTH", "0.8")] };

/** What ten dollars buy where an AR costs seven and the fee is 23.4 %: 7.66 / 7 AR, rounded to a winc. */
const wincOfTenDollars = "1094285714286";

describeWith(clientLibraries, "turbo-sdk", () => {
  let program: RunningProgram;
  let folder: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "cairn-rules-"));
    const file = join(folder, "rules.json");
    writeFileSync(file, JSON.stringify(rules));
    program = await startDev({ environment: { PAYMENT_RULES_FILE: file } });
  }, 120_000);

  afterAll(async () => {
    await program?.remove();
    removeFolder(folder);
  });

  describe("for a wallet that never paid", () => {
    test("names the same address as we do", async () => {
      for (const key of turboKeys(program)) {
        const turbo = await openTurbo(program, key);
        expect(await turbo.signer.getNativeAddress()).toBe(key.address);
      }
    });

    test("getBalance is nothing", async () => {
      const nothing = {
        winc: "0",
        controlledWinc: "0",
        effectiveBalance: "0",
        givenApprovals: [],
        receivedApprovals: [],
      };
      for (const key of turboKeys(program).filter(({ winc }) => winc === 0n)) {
        expect(await (await openTurbo(program, key)).getBalance()).toEqual(nothing);
        const anonymous = await openAnonymousTurbo(program, key.token);
        expect(await anonymous.getBalance(key.address)).toEqual(nothing);
      }
    });

    test("getBalance of the chain's funded wallet is what it begins with", async () => {
      const key = arweaveKey(program);
      const winc = key.winc.toString();
      const balance = { winc, controlledWinc: winc, effectiveBalance: winc };
      expect(await (await openTurbo(program, key)).getBalance()).toMatchObject(balance);
      expect(await (await openAnonymousTurbo(program)).getBalance(key.address)).toMatchObject(balance);
    });

    test("getPaymentHistory is signed, and empty", async () => {
      for (const key of turboKeys(program)) {
        const turbo = await openTurbo(program, key);
        const page = { payments: [], pending: [], hasMore: false, cursor: null };
        expect(await turbo.getPaymentHistory()).toEqual(page);
        expect(await turbo.getPaymentHistory({ limit: 10 })).toEqual(page);
      }
    });

    test("getCreditShareApprovals has none", async () => {
      for (const key of turboKeys(program)) {
        const turbo = await openTurbo(program, key);
        expect(await turbo.getCreditShareApprovals({})).toEqual({
          givenApprovals: [],
          receivedApprovals: [],
        });
      }
    });

    test("getFreeStatus is without limit under `dev`, where small items are free", async () => {
      for (const key of turboKeys(program)) {
        const turbo = await openTurbo(program, key);
        expect(await turbo.getFreeStatus()).toEqual({ bytesRemaining: null });
      }
    });
  });

  describe("on prices", () => {
    test("getFiatRates are for 1 GiB in ten currencies", async () => {
      const { winc, fiat, adjustments } = await (await openAnonymousTurbo(program)).getFiatRates();
      expect(Number(winc)).toBeGreaterThan(0);
      expect(Object.keys(fiat).sort()).toEqual(currencies);
      // AR costs seven dollars, of which the fee leaves 76.6 %.
      expect(fiat.usd).toBeCloseTo((Number(winc) / 1e12) * (7 / 0.766), 9);
      expect(adjustments).toEqual([]);
    });

    test("getFiatToAR is the feed's own rate", async () => {
      const turbo = await openAnonymousTurbo(program);
      expect(await turbo.getFiatToAR({ currency: "usd" })).toEqual({ currency: "usd", rate: 7 });
      expect(await turbo.getFiatToAR({ currency: "jpy" })).toEqual({ currency: "jpy", rate: 1_050 });
      await expect(turbo.getFiatToAR({ currency: "xyz" as "usd" })).rejects.toThrow('(Status 404): "Invalid currency"');
    });

    test("getSupportedCountries are at least 190", async () => {
      const countries = await (await openAnonymousTurbo(program)).getSupportedCountries();
      expect(countries.length).toBeGreaterThanOrEqual(190);
      expect(countries[0]).toBe("United States");
    });

    test("getSupportedCurrencies have limits", async () => {
      const { supportedCurrencies, limits } = await (await openAnonymousTurbo(program)).getSupportedCurrencies();
      expect([...supportedCurrencies].sort()).toEqual(currencies as typeof supportedCurrencies);
      expect(limits.usd).toMatchObject({
        minimumPaymentAmount: 500,
        maximumPaymentAmount: 1_000_000,
        suggestedPaymentAmounts: [2_500, 5_000, 10_000],
        zeroDecimalCurrency: false,
      });
      expect(limits.jpy.zeroDecimalCurrency).toBe(true);
    });

    test("getUploadCosts are of each size, also of none", async () => {
      const turbo = await openAnonymousTurbo(program);
      const costs = await turbo.getUploadCosts({ bytes: [0, 1, 1_024, 2 ** 30, 2 ** 40] });
      const winc = costs.map((cost) => BigInt(cost.winc));
      expect(winc[0]).toBe(0n);
      for (const [index, cost] of winc.slice(1).entries()) expect(cost).toBeGreaterThan(winc[index] ?? 0n);
      for (const { adjustments } of costs) expect(adjustments).toEqual([]);
    });

    test("getWincForFiat takes a placeholder for an address, and codes for an address", async () => {
      const { USD, JPY } = await import("@ardrive/turbo-sdk");
      const anonymous = await openAnonymousTurbo(program);
      const price = await anonymous.getWincForFiat({ amount: USD(10) });
      expect(price).toMatchObject({
        winc: wincOfTenDollars,
        actualPaymentAmount: 1_000,
        quotedPaymentAmount: 1_000,
      });
      expect(price.adjustments).toEqual([]);
      expect(price.fees).toEqual([
        {
          name: "Turbo Infrastructure Fee",
          description: "Inclusive usage fee on all payments to cover infrastructure costs and payment provider fees.",
          operatorMagnitude: "0.766",
          operator: "multiply",
          adjustmentAmount: "-234",
        },
      ] as unknown as typeof price.fees);
      expect((await anonymous.getWincForFiat({ amount: JPY(1_500) })).winc).toBe(wincOfTenDollars);
      for (const key of turboKeys(program)) {
        const turbo = await openTurbo(program, key);
        const reduced = await turbo.getWincForFiat({ amount: USD(10), promoCodes: ["TENTH", "FIFTH"] });
        expect(reduced).toMatchObject({
          winc: wincOfTenDollars,
          actualPaymentAmount: 720,
          quotedPaymentAmount: 1_000,
        });
        expect(reduced.adjustments.map(({ name }) => name)).toEqual(["TENTH", "FIFTH"]);
      }
    });

    test("getWincForToken takes amounts that the SDK writes with an exponent", async () => {
      const price = async (token: string, tokenAmount: string | number) =>
        await (await openAnonymousTurbo(program, token)).getWincForToken({ tokenAmount });
      expect(await price("arweave", 10 ** 12)).toMatchObject({
        winc: "766000000000",
        actualTokenAmount: "1000000000000",
        equivalentWincTokenAmount: "1000000000000",
      });
      // 1,000 ETH of 2,800 dollars, at seven dollars an AR; as a number it is written 1e+21.
      expect((await price("ethereum", 10 ** 21)).winc).toBe("306400000000000000");
      expect((await price("solana", 10 ** 9)).winc).toBe("15320000000000");
      expect((await price("base-usdc", 7_000_000)).winc).toBe("766000000000");
      expect((await price("pol", "20000000000000000000")).winc).toBe("766000000000");
    });

    test("getFiatEstimateForBytes and getTokenPriceForBytes come to something", async () => {
      const turbo = await openAnonymousTurbo(program);
      const estimate = await turbo.getFiatEstimateForBytes({ byteCount: 2 ** 30, currency: "usd" });
      expect(estimate.amount).toBeGreaterThan(0);
      for (const token of ["arweave", "ethereum", "solana", "base-usdc"]) {
        const of = await openAnonymousTurbo(program, token);
        const { tokenPrice } = await of.getTokenPriceForBytes({ byteCount: 2 ** 40 });
        expect(Number(tokenPrice), token).toBeGreaterThan(0);
      }
    });
  });

  describe("by card", () => {
    test("createCheckoutSession, paid, is credited to keys of every chain, who see it in their history", async () => {
      const { USD } = await import("@ardrive/turbo-sdk");
      for (const key of payers()) {
        const turbo = await openTurbo(program, key);
        const session = await turbo.createCheckoutSession({
          amount: USD(10),
          owner: key.address,
          promoCodes: ["TENTH", "FIFTH"],
          successUrl: "https://app.example/done",
          cancelUrl: "https://app.example/",
        });
        expect(session).toMatchObject({
          winc: wincOfTenDollars,
          paymentAmount: 720,
          actualPaymentAmount: 720,
          quotedPaymentAmount: 1_000,
        });
        await payCheckout(session.url ?? "");
        const balance = await eventually(
          () => turbo.getBalance(),
          ({ winc }) => winc !== key.winc.toString(),
        );
        const winc = (key.winc + BigInt(wincOfTenDollars)).toString();
        expect(balance).toEqual({
          winc,
          controlledWinc: winc,
          effectiveBalance: winc,
          givenApprovals: [],
          receivedApprovals: [],
          balance: winc,
        } as typeof balance);
        const { payments, hasMore, cursor } = await turbo.getPaymentHistory({ limit: 1 });
        expect({ hasMore, cursor }).toEqual({ hasMore: false, cursor: null });
        expect(payments).toMatchObject([
          {
            type: "fiat",
            wincCredited: wincOfTenDollars,
            paymentAmount: "720",
            currencyType: "usd",
            paymentProvider: "stripe",
            giftMessage: null,
          },
        ]);
        await expect(turbo.getWincForFiat({ amount: USD(10), promoCodes: ["TENTH"] })).rejects.toThrow("(Status 400)");
      }
    });

    test("getPaymentHistory goes from page to page", async () => {
      const { USD } = await import("@ardrive/turbo-sdk");
      const [key] = payers();
      const turbo = await openTurbo(program, key ?? arweaveKey(program));
      const before = await turbo.getBalance();
      const session = await turbo.createCheckoutSession({ amount: USD(20), owner: key?.address ?? "" });
      await payCheckout(session.url ?? "");
      await eventually(
        () => turbo.getBalance(),
        ({ winc }) => winc !== before.winc,
      );
      const first = await turbo.getPaymentHistory({ limit: 1 });
      expect(first).toMatchObject({ hasMore: true, payments: [{ paymentAmount: "2000" }] });
      const second = await turbo.getPaymentHistory({ limit: 1, cursor: first.cursor ?? "" });
      expect(second).toMatchObject({ hasMore: false, cursor: null, payments: [{ paymentAmount: "720" }] });
    });

    test("createCheckoutSession can be embedded, and createPaymentIntent has a secret for the payer's page", async () => {
      const { EUR } = await import("@ardrive/turbo-sdk");
      const key = arweaveKey(program);
      const turbo = await openAnonymousTurbo(program);
      const embedded = await turbo.createCheckoutSession({
        amount: EUR(10),
        owner: key.address,
        uiMode: "embedded",
        returnUrl: "https://app.example/done",
      });
      expect(embedded.id).toStartWith("cs_");
      expect(embedded.client_secret).toStartWith(embedded.id);
      expect(embedded.url ?? "").toBe("");
      const intent = await turbo.createPaymentIntent({ amount: EUR(10), owner: key.address });
      expect(intent.id).toStartWith("pi_");
      expect(intent.client_secret).toStartWith(`${intent.id}_secret_`);
      expect(BigInt(intent.winc)).toBeGreaterThan(0n);
    });

    test("createCheckoutSession says what is wrong with an amount or an owner", async () => {
      const { USD } = await import("@ardrive/turbo-sdk");
      const turbo = await openAnonymousTurbo(program);
      const owner = arweaveKey(program).address;
      await expect(turbo.createCheckoutSession({ amount: USD(1), owner })).rejects.toThrow(
        "Payment Amount is Invalid!",
      );
      await expect(turbo.createCheckoutSession({ amount: USD(10), owner: "unnamed" })).rejects.toThrow(
        '(Status 403): "Destination address is not a valid native address!"',
      );
    });
  });

  describe("in AR", () => {
    test("getTurboCryptoWallets names the address by every word for the token", async () => {
      const wallets = await (await openAnonymousTurbo(program)).getTurboCryptoWallets();
      expect(wallets.arweave).toMatch(/^[\w-]{43}$/);
      expect((wallets as Record<string, string>)["native"]).toBe(wallets.arweave);
    });

    test("topUpWithTokens is credited to the sender, once however often it is reported", async () => {
      const key = arweaveKey(program);
      const turbo = await openTurbo(program, key);
      const before = BigInt((await turbo.getBalance()).winc);
      const { WinstonToTokenAmount } = await import("@ardrive/turbo-sdk");
      const sent = await turbo.topUpWithTokens({ tokenAmount: WinstonToTokenAmount(2_000_000_000_000) });
      const { arweave } = await turbo.getTurboCryptoWallets();
      expect(sent).toMatchObject({
        quantity: 2_000_000_000_000 as unknown as string,
        owner: key.address,
        winc: "1532000000000",
        token: "arweave",
        target: arweave,
        recipient: key.address,
      });
      const credited = before + 1_532_000_000_000n;
      await eventually(
        () => turbo.getBalance(),
        ({ winc }) => BigInt(winc) === credited,
      );
      for (const _ of [1, 2]) {
        const again = await (await openAnonymousTurbo(program)).submitFundTransaction({ txId: sent.id });
        expect(again).toMatchObject({ id: sent.id, status: "confirmed", winc: "1532000000000" });
        expect(again.block).toBeGreaterThan(0);
      }
      expect(BigInt((await turbo.getBalance()).winc)).toBe(credited);
      const { payments } = await turbo.getPaymentHistory({ limit: 1 });
      expect(payments).toMatchObject([
        {
          type: "crypto",
          wincCredited: "1532000000000",
          tokenType: "native",
          tokenQuantity: "2000000000000",
          senderAddress: key.address,
          transactionId: sent.id,
        },
      ]);
    });

    test("topUpWithTokens is credited to another chain's key where the sender says so", async () => {
      const [, ethereum] = payers();
      const owner = await openTurbo(program, ethereum ?? arweaveKey(program));
      const before = BigInt((await owner.getBalance()).winc);
      const turbo = await openTurbo(program, arweaveKey(program));
      await turbo.topUpWithTokens({
        tokenAmount: 1_000_000_000_000,
        turboCreditDestinationAddress: ethereum?.address.toLowerCase() ?? "",
      });
      await eventually(
        () => owner.getBalance(),
        ({ winc }) => BigInt(winc) === before + 766_000_000_000n,
      );
      const { payments } = await owner.getPaymentHistory({ limit: 1 });
      expect(payments).toMatchObject([{ type: "crypto", senderAddress: arweaveKey(program).address }]);
    });

    test("submitFundTransaction of an unknown transaction is not found", async () => {
      const turbo = await openAnonymousTurbo(program);
      await expect(turbo.submitFundTransaction({ txId: "A".repeat(43) })).rejects.toThrow(
        '(Status 404): "Transaction ID not found!"',
      );
    });
  });

  /** One key of every chain. */
  function payers(): TurboKey[] {
    return turboKeys(program).filter(({ token }) => ["arweave", "ethereum", "solana"].includes(token));
  }
});

const currencies = ["aud", "brl", "cad", "eur", "gbp", "hkd", "inr", "jpy", "sgd", "usd"];
