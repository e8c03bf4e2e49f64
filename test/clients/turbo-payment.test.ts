/**
 * The published SDK for credits against the payment service: every call that it has for payments, unchanged.
 *
 * What each must be answered with: reference/payment.md §10.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { openAnonymousTurbo, openTurbo, turboKeys } from "./turbo.ts";

describeWith(clientLibraries, "turbo-sdk", () => {
  let program: RunningProgram;

  beforeAll(async () => {
    program = await startDev();
  }, 120_000);

  afterAll(() => program?.remove());

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
      for (const key of turboKeys(program)) {
        expect(await (await openTurbo(program, key)).getBalance()).toEqual(nothing);
        const anonymous = await openAnonymousTurbo(program, key.token);
        expect(await anonymous.getBalance(key.address)).toEqual(nothing);
      }
    });

    test("getPaymentHistory is signed, and empty", async () => {
      for (const key of turboKeys(program)) {
        const turbo = await openTurbo(program, key);
        const page = { payments: [], hasMore: false, cursor: null };
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

  test("getSupportedCountries are at least 190", async () => {
    const countries = await (await openAnonymousTurbo(program)).getSupportedCountries();
    expect(countries.length).toBeGreaterThanOrEqual(190);
    expect(countries[0]).toBe("United States");
  });
});
