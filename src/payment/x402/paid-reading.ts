/**
 * Reading allowances paid by x402: one payment buys one allowance, which is used up once, also over restarts.
 *
 * A payment is bound to its reader before it settles, so an observer of the chain cannot use it. Addresses are not
 * stored: a reader is a keyed hash of its address. The used bytes are written before the response is sent.
 * Source: docs/decisions/086-paid-reading.md.
 * @module
 */
import { LRUCache } from "lru-cache";
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import { entryLimit } from "../../lib/entry-limit.ts";
import { type LedgerDatabase, readCount, type Tx } from "../../store/ledger/ledger-database.ts";
import { type MakeId, revenue, transfer, user } from "../../store/ledger/transfers.ts";
import { smaller } from "../prices/rational.ts";
import { readingPurpose, type X402, type X402Quote, type X402Settled, type X402Terms } from "./x402.ts";
import { x402Rejection } from "./x402-offers.ts";
import type { X402Payment } from "./x402-payment-reader.ts";
import { x402IdOf } from "./x402-payment-store.ts";

/** Paid reading. Readers are identified by their address blocks. */
export type PaidReading = Readonly<{
  terms: X402Terms;
  /** Bytes that one payment buys. */
  bytes: number;
  /** The price of an allowance. @throws Failure of the prices. */
  quote: (signal: AbortSignal) => Promise<X402Quote>;
  /** Bytes that a reader can still read, as far as this process knows. */
  left: (reader: string) => number;
  /**
   * Settles a payment and grants its allowance, once ever.
   * @throws Failure as `X402.settle`; `settlement_failed` also when the payer's credits are already spent.
   */
  pay: (reader: string, payment: X402Payment, resource: string, signal: AbortSignal) => Promise<X402Settled>;
  /**
   * Takes bytes from a reader's allowances, the oldest first.
   * @returns Bytes that the allowances do not cover.
   * @throws Failure of the ledger.
   */
  take: (reader: string, bytes: number) => Promise<number>;
}>;

type PaidReadingOptions = Readonly<{
  x402: X402;
  ledger: LedgerDatabase;
  /** The price, smallest unit of the asset. */
  amount: bigint;
  /** The bytes for that price. */
  bytes: number;
  /** Secret key for the hashes of addresses. */
  key: Uint8Array;
  clock: Clock;
  makeId: MakeId;
}>;

/** Readers whose allowances are in memory. Beyond that, the least recent reader must pay again. */
const readersMax = 100_000;

/** Allowances that one response may use up. */
const allowancesTakenMax = 64n;

type AllowanceRow = { payment_id: string; client: string; bytes_left: bigint };

/** Rejects when the ledger cannot be read. */
export async function openPaidReading(options: PaidReadingOptions): Promise<PaidReading> {
  const { x402, ledger, amount, bytes, key, clock, makeId } = options;
  const want = { kind: "dollars", amount } as const;
  const known = new LRUCache<string, number>(entryLimit(readersMax));
  const clientOf = (reader: string) => new Bun.CryptoHasher("sha256", key).update(reader).digest("hex");

  for (const row of await ledger.read(newestOpen))
    known.set(row.client, (known.get(row.client) ?? 0) + readCount(row.bytes_left));

  async function grant(client: string, id: string, settled: X402Settled): Promise<void> {
    const now = clock();
    await ledger.write(async (tx) => {
      const row = await tx.get("SELECT 1 AS found FROM reading_allowances WHERE payment_id = ?", id);
      if (row !== undefined) return;
      await tx.run(
        "INSERT INTO reading_allowances (payment_id, client, bytes, bytes_left, granted_at) VALUES (?, ?, ?, ?, ?)",
        ...[id, client, BigInt(bytes), BigInt(bytes), BigInt(now)],
      );
      const legs = [
        { account: user(settled.payer), amount: -settled.quotedWinc },
        { account: revenue, amount: settled.quotedWinc },
      ];
      await transfer(tx, { id: makeId(), kind: "reading", at: now, legs, changeId: `reading/${id}` });
    });
  }

  return {
    terms: x402.terms,
    bytes,
    quote: (signal) => x402.quote(want, signal),
    left: (reader) => known.get(clientOf(reader)) ?? 0,
    pay: async (reader, payment, resource, signal) => {
      const client = clientOf(reader);
      const settled = await x402.settle({ payment, want, purpose: readingPurpose(client), resource }, signal);
      const { network } = x402.terms;
      try {
        await grant(client, x402IdOf(network.name, network.asset.address, payment.authorization), settled);
      } catch (error) {
        if (!(error instanceof Failure) || error.code !== "insufficient_balance") throw error;
        throw x402Rejection("the payer has spent the credits already");
      }
      known.set(client, await ledger.read((tx) => leftOf(tx, client)));
      return settled;
    },
    take: async (reader, wanted) => {
      const client = clientOf(reader);
      const { open, left } = await ledger.write(async (tx) => ({
        open: await takeFrom(tx, client, BigInt(wanted)),
        left: await leftOf(tx, client),
      }));
      known.set(client, left);
      return readCount(open);
    },
  };
}

/** The newest allowances that are not used up. */
function newestOpen(tx: Tx): Promise<AllowanceRow[]> {
  return tx.all<AllowanceRow>(
    "SELECT payment_id, client, bytes_left FROM reading_allowances WHERE bytes_left > 0 " +
      "ORDER BY granted_at DESC, payment_id LIMIT ?",
    BigInt(readersMax),
  );
}

/** The open allowances of one reader, the oldest first. */
function openOf(tx: Tx, client: string): Promise<AllowanceRow[]> {
  return tx.all<AllowanceRow>(
    "SELECT payment_id, client, bytes_left FROM reading_allowances WHERE client = ? AND bytes_left > 0 " +
      "ORDER BY granted_at, payment_id LIMIT ?",
    ...[client, allowancesTakenMax],
  );
}

async function leftOf(tx: Tx, client: string): Promise<number> {
  const rows = await openOf(tx, client);
  return readCount(rows.reduce((sum, row) => sum + row.bytes_left, 0n));
}

/** @returns The uncovered bytes. */
async function takeFrom(tx: Tx, client: string, bytes: bigint): Promise<bigint> {
  let open = bytes;
  for (const row of await openOf(tx, client)) {
    if (open === 0n) break;
    const taken = smaller(row.bytes_left, open);
    await tx.run(
      "UPDATE reading_allowances SET bytes_left = bytes_left - ? WHERE payment_id = ?",
      ...[taken, row.payment_id],
    );
    open -= taken;
  }
  return open;
}
