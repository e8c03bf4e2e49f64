/**
 * A payment service for tests: an empty ledger, a clock that tests move, chance from a seed, and credits.
 * @module
 */
import { readAddress, type UserAddress } from "../../src/payment/addresses.ts";
import { type Credits, createCredits } from "../../src/payment/credits/credits.ts";
import type { LedgerDatabase } from "../../src/store/ledger/ledger-database.ts";
import {
  balanceOf,
  createTransferIds,
  type Leg,
  type MakeId,
  provider,
  transfer,
  user,
} from "../../src/store/ledger/transfers.ts";
import { type LedgerKind, ledgerKinds, type TestLedger } from "./ledger-databases.ts";
import { createRandom, type Random } from "./random.ts";

/** A clock that advances only on request. */
export type TestClock = Readonly<{
  /** Unix milliseconds. */
  now: () => number;
  set: (unixMs: number) => void;
  advance: (ms: number) => void;
}>;

/** Where a test's clock begins: a moment of 2027. */
export const testStart = 1_800_000_000_000;

/** Creates a clock. */
export function createTestClock(start: number = testStart): TestClock {
  let now = start;
  return {
    now: () => now,
    set: (unixMs) => {
      now = unixMs;
    },
    advance: (ms) => {
      now += ms;
    },
  };
}

/** Everything that a test of credits needs. */
export type TestPayment = Readonly<{
  ledger: TestLedger;
  database: LedgerDatabase;
  clock: TestClock;
  random: Random;
  makeId: MakeId;
  credits: Credits;
  /** Pays winc in for an address, as a card would. */
  credit: (address: UserAddress, winc: bigint) => Promise<void>;
  /** Takes winc back from an address that was paid for, debt or not. */
  chargeBack: (address: UserAddress, winc: bigint) => Promise<void>;
  /** What an account holds. */
  held: (account: Leg["account"]) => Promise<bigint>;
  close: () => Promise<void>;
}>;

const [usualKind] = ledgerKinds();

/** Opens credits on an empty ledger. @param kind - Of database; unset is the first that is to be tested. */
export async function openTestPayment(
  options: Readonly<{ kind?: LedgerKind; seed?: number }> = {},
): Promise<TestPayment> {
  const { kind = usualKind, seed = 1 } = options;
  if (kind === undefined) throw new Error("no kind of ledger is to be tested");
  const ledger = await kind.open();
  const { database } = ledger;
  const clock = createTestClock();
  const random = createRandom(seed);
  const makeId = createTransferIds(clock.now, () => random.below(2 ** 32) / 2 ** 32);
  const paid = { database, clock, makeId };
  return {
    ledger,
    database,
    clock,
    random,
    makeId,
    credits: createCredits({ database, clock: clock.now, makeId }),
    credit: (address, winc) => paidIn(paid, "payment", address, winc),
    chargeBack: (address, winc) => paidIn(paid, "chargeback", address, -winc),
    held: (account) => database.read((tx) => balanceOf(tx, account)),
    close: () => ledger.remove(),
  };
}

/** Moves winc between a card provider and an address; below 0 is away from it. */
export function paidIn(
  { database, clock, makeId }: Readonly<{ database: LedgerDatabase; clock: TestClock; makeId: MakeId }>,
  kind: "payment" | "chargeback",
  address: UserAddress,
  winc: bigint,
): Promise<void> {
  return database.write((tx) =>
    transfer(tx, {
      id: makeId(),
      kind,
      at: clock.now(),
      legs: [
        { account: provider("stripe"), amount: -winc },
        { account: user(address), amount: winc },
      ],
    }),
  );
}

/** An address without a key: 43 characters that begin with a given word. */
export function testAddress(word: string): UserAddress {
  const read = readAddress(`${word}${"-".repeat(42 - word.length)}A`, "native");
  if (read === undefined) throw new Error(`${word} makes no address`);
  return read.address;
}
