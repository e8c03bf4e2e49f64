/**
 * Nonces: each once, ever, for each key; and only so many a day.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Failure } from "../../../src/failures.ts";
import type { RequestSigner } from "../../../src/payment/access/signed-request.ts";
import { claimNonce, claimStrangersNonce, noncesPerDayMax } from "../../../src/payment/access/wallet-access.ts";
import { readAddress } from "../../../src/payment/addresses.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds, type TestLedger } from "../../support/ledger-databases.ts";

const dayMs = 86_400_000;
const now = 20_000 * dayMs;

const alice = "1seRanklLU_1VTGkEk7P0xAwMJfA7owA1JHW5KyZKlY";
const bob = "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A";

for (const kind of ledgerKinds()) {
  describeWith(kind.need, `a nonce, on ${kind.name},`, () => {
    let ledger: TestLedger;

    beforeAll(async () => {
      ledger = await kind.open();
    });

    afterAll(() => ledger.remove());

    const claim = (signer: RequestSigner, at = now): Promise<string> =>
      ledger.database.write((tx) => claimNonce(tx, signer, at)).then(() => "claimed", codeOf);

    test("J: is claimed once, also years later and by another process", async () => {
      expect(await claim(signerOf(alice, "a"))).toBe("claimed");
      expect(await claim(signerOf(alice, "a"))).toBe("invalid_signature");
      expect(await claim(signerOf(alice, "a"), now + 4_000 * dayMs)).toBe("invalid_signature");
      const other = await ledger.openAgain();
      const again = other.write((tx) => claimNonce(tx, signerOf(alice, "a"), now)).then(() => "claimed", codeOf);
      expect(await again).toBe("invalid_signature");
      await other.close();
    });

    test("is separate for each key", async () => {
      expect(await claim(signerOf(alice, "b"))).toBe("claimed");
      expect(await claim(signerOf(bob, "b"))).toBe("claimed");
      expect(await claim(signerOf(bob, "B"))).toBe("claimed");
      expect(await claim(signerOf(bob, "b"))).toBe("invalid_signature");
    });

    test("is claimed by one of a hundred concurrent requests", async () => {
      const outcomes = await Promise.all(Array.from({ length: 100 }, () => claim(signerOf(alice, "race"))));
      expect(outcomes.filter((outcome) => outcome === "claimed")).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome === "invalid_signature")).toHaveLength(99);
    });

    test("is not used up when its transaction fails", async () => {
      const failing = ledger.database.write(async (tx) => {
        await claimNonce(tx, signerOf(alice, "c"), now);
        throw new Error("what it was for");
      });
      await expect(failing).rejects.toThrow("what it was for");
      expect(await claim(signerOf(alice, "c"))).toBe("claimed");
    });

    test(`is rejected for an account that used ${noncesPerDayMax} on that day, and for no other, until the next day`, async () => {
      await ledger.database.write((tx) =>
        tx.run("UPDATE nonce_days SET used = ? WHERE address = ?", BigInt(noncesPerDayMax - 1), alice),
      );
      expect(await claim(signerOf(alice, "last"))).toBe("claimed");
      expect(await claim(signerOf(alice, "one too many"))).toBe("too_many_requests");
      expect(await claim(signerOf(bob, "another's"))).toBe("claimed");
      expect(await claim(signerOf(alice, "one too many"), now + dayMs - 1)).toBe("too_many_requests");
      expect(await claim(signerOf(alice, "one too many"), now + dayMs)).toBe("claimed");
      expect(await claim(signerOf(alice, "and one more"), now + dayMs)).toBe("claimed");
    });

    test("of an address without an account is claimed once, also after the account is created or gone", async () => {
      const claimStranger = (nonce: string): Promise<string> =>
        ledger.database.write((tx) => claimStrangersNonce(tx, signerOf(alice, nonce), 3)).then(() => "claimed", codeOf);
      expect(await claimStranger("s1")).toBe("claimed");
      expect(await claimStranger("s1")).toBe("invalid_signature");
      expect(await claim(signerOf(alice, "s1"))).toBe("invalid_signature");
      expect(await claim(signerOf(bob, "s1"))).toBe("claimed");
      expect(await claim(signerOf(alice, "as an account"))).toBe("claimed");
      expect(await claimStranger("as an account")).toBe("invalid_signature");
      // Three are stored here: the oldest makes space.
      for (const nonce of ["s2", "s3", "s4"]) expect(await claimStranger(nonce)).toBe("claimed");
      expect(await claimStranger("s2")).toBe("invalid_signature");
      expect(await claimStranger("s1")).toBe("claimed");
      const stored = await ledger.database.read((tx) => tx.all("SELECT turn FROM strangers_nonces ORDER BY turn"));
      expect(stored).toEqual([{ turn: 3n }, { turn: 4n }, { turn: 5n }]);
    });
  });
}

describe("the limit of a day", () => {
  test("is the contract's", () => {
    expect(noncesPerDayMax).toBe(10_000);
  });
});

function signerOf(text: string, nonce: string): RequestSigner {
  const address = readAddress(text)?.address;
  if (address === undefined) throw new Error(`${text} is not a valid address`);
  return { address, nonce, message: Buffer.from(nonce) };
}

function codeOf(error: unknown): string {
  if (error instanceof Failure) return error.code;
  throw error;
}
