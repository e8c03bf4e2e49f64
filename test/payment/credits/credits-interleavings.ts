/**
 * Random interleavings of operations on credits, several in flight at once, and the order that explains what they
 * were notified.
 *
 * The order in which the database took a batch is unknown. There must be one in which the model tells every
 * asker the same and ends in the same state: then nothing was lost, doubled or half seen.
 * @module
 */
import fc from "fast-check";
import { Failure } from "../../../src/failures.ts";
import type { UserAddress } from "../../../src/payment/addresses.ts";
import type { Approval } from "../../../src/payment/credits/approvals.ts";
import type { Credits } from "../../../src/payment/credits/credits.ts";
import { type ItemPayment, payAtOnce, type Reservation } from "../../../src/payment/credits/reservations.ts";
import {
  checkLedger,
  creditChecks,
  entryChecks,
  type LedgerCheck,
  ledgerChecks,
} from "../../../src/store/ledger/ledger-check.ts";
import type { LedgerDatabase } from "../../../src/store/ledger/ledger-database.ts";
import { balanceOf, type MakeId, provider, revenue } from "../../../src/store/ledger/transfers.ts";
import { paidIn, type TestClock, testAddress, testStart } from "../../support/payment.ts";
import {
  approvalStates,
  balanceLine,
  copyOf,
  emptyModel,
  isBalanced,
  type Model,
  type Operation,
  perform,
  view,
} from "./credits-model.ts";

/** Three people, so that few operations already meet. */
export const people: readonly UserAddress[] = ["ada", "bob", "cy"].map(testAddress);
const items = ["one", "two", "three", "four"];
/** What a step can break; the truths about tables that no step touches are checked at the end. */
const checksOfEachStep: readonly LedgerCheck[] = [...entryChecks, ...creditChecks];
/** What everybody begins with: enough for a few operations. */
const startWinc = 60n;
/** Milliseconds; small, so that many things end at the same moment. */
const tickMs = 10;

/** An operation as it is drawn: people and things by number, expiries from now. */
type Drawn = Readonly<{
  what: "credit" | "chargeBack" | "approve" | "revoke" | "reserve" | "pay" | "post" | "void" | "expire";
  who: number;
  whom: number;
  winc: number;
  number: number;
  ticks: number;
  paidBy: readonly number[];
  listOnly: boolean;
}>;

/** Operations that are in flight together, after a pause. */
export type Batch = Readonly<{ pauseTicks: number; drawn: readonly Drawn[] }>;

const person = fc.nat({ max: people.length - 1 });
const drawnOperation: fc.Arbitrary<Drawn> = fc.record({
  what: fc.oneof(
    { weight: 2, arbitrary: fc.constant("credit" as const) },
    { weight: 1, arbitrary: fc.constant("chargeBack" as const) },
    { weight: 6, arbitrary: fc.constant("approve" as const) },
    { weight: 2, arbitrary: fc.constant("revoke" as const) },
    { weight: 6, arbitrary: fc.constant("reserve" as const) },
    { weight: 3, arbitrary: fc.constant("pay" as const) },
    { weight: 4, arbitrary: fc.constant("post" as const) },
    { weight: 4, arbitrary: fc.constant("void" as const) },
    { weight: 1, arbitrary: fc.constant("expire" as const) },
  ),
  who: person,
  whom: person,
  winc: fc.nat({ max: 40 }),
  number: fc.nat({ max: 7 }),
  ticks: fc.nat({ max: 8 }),
  paidBy: fc.array(person, { maxLength: 5, size: "max" }),
  listOnly: fc.boolean(),
});

/** Batches of up to 5 operations, after one of approvals. */
export const interleavings: fc.Arbitrary<readonly Batch[]> = fc
  .tuple(
    fc.array(drawnOperation, { minLength: 2, maxLength: 5, size: "max" }),
    fc.array(
      fc.record({
        pauseTicks: fc.nat({ max: 2 }),
        drawn: fc.array(drawnOperation, { minLength: 1, maxLength: 5, size: "max" }),
      }),
      { minLength: 2, maxLength: 5, size: "max" },
    ),
  )
  .map(([opening, rest]) => [
    { pauseTicks: 0, drawn: opening.map((one) => ({ ...one, what: "approve" as const })) },
    ...rest,
  ]);

/** What an interleaving runs on. */
export type Subject = Readonly<{
  /** Credits on one ledger, each through a handle of its own; operations take rounds with them. */
  handles: readonly Credits[];
  database: LedgerDatabase;
  clock: TestClock;
  makeId: MakeId;
}>;

/** How often something happened, to show that the runs reach what they are for. */
export type Tally = Map<string, number>;

/** Runs one interleaving on an empty ledger. @throws Error that says what no order explains. */
export async function runInterleaving(subject: Subject, batches: readonly Batch[], tally: Tally): Promise<void> {
  const { clock, database } = subject;
  clock.set(testStart);
  let model = emptyModel();
  // The last one begins as a stranger.
  const paying = people.slice(0, -1);
  await Promise.all(paying.map((who) => paidIn(subject, "payment", who, startWinc)));
  for (const who of paying) perform(model, { kind: "credit", who, winc: startWinc }, clock.now());
  for (const { pauseTicks, drawn } of batches) {
    clock.advance(pauseTicks * tickMs);
    const asked = drawn.flatMap((one) => concrete(one, model, clock.now()));
    const responses = await Promise.all(
      asked.map((operation, round) => ask(subject, handleOf(subject.handles, round), operation)),
    );
    const seen = await look(subject);
    const explained = explain(model, asked, responses, seen, clock.now());
    if (explained === undefined) throw new Error(unexplained(model, asked, responses, seen, clock.now()));
    model = explained.model;
    if (!isBalanced(model)) throw new Error("the model itself has lost credits");
    await checkClean(database, checksOfEachStep);
    count(tally, asked, responses, explained.tries);
  }
  await endAll(subject, model, tally);
}

/** Ends what has expired; then the states of all approvals must be the model's. */
async function endAll(subject: Subject, model: Model, tally: Tally): Promise<void> {
  const { clock, database } = subject;
  await handleOf(subject.handles, 0).expire(new AbortController().signal);
  perform(model, { kind: "expire" }, clock.now());
  const seen = await look(subject);
  const expected = view(model, people, clock.now());
  if (seen !== expected) throw new Error(`at the end, expected:\n${expected}\nseen:\n${seen}`);
  const states: string[] = [];
  for (const id of model.approvals.keys()) {
    const approval = await handleOf(subject.handles, 0).approval(id);
    if (approval === undefined) throw new Error(`approval ${id} is gone`);
    states.push(`${approvalText(approval)} ${approval.state}`);
    add(tally, `approval ends ${approval.state}`);
  }
  const wanted = approvalStates(model, clock.now());
  if (states.sort().join("\n") !== wanted)
    throw new Error(`approvals at the end, expected:\n${wanted}\nseen:\n${states.join("\n")}`);
  await checkClean(database, ledgerChecks);
}

async function checkClean(database: LedgerDatabase, checks: readonly LedgerCheck[]): Promise<void> {
  const findings = await checkLedger(database, checks);
  if (findings.length > 0) throw new Error(`the checker finds ${JSON.stringify(findings)}`);
}

function concrete(drawn: Drawn, model: Model, now: number): Operation[] {
  const who = numbered(people, drawn.who);
  const whom = numbered(people, drawn.whom);
  const winc = BigInt(drawn.winc);
  // Approvals are smaller than uploads, so that some are drawn to the last winc.
  const part = winc / 3n;
  const expiresAt = now + drawn.ticks * tickMs;
  switch (drawn.what) {
    case "credit":
      return [{ kind: "credit", who, winc: winc + 1n }];
    case "chargeBack":
      return [{ kind: "chargeBack", who, winc: 2n * winc + 1n }];
    case "approve": {
      const rest = {
        payer: who,
        approved: whom,
        winc: part,
        expiresAt: drawn.ticks > 6 ? undefined : expiresAt,
      };
      return [{ kind: "approve", id: `approval-${drawn.number}${drawn.winc % 4}`, ...rest }];
    }
    case "revoke": {
      const id = `revocation-${drawn.number}`;
      const known = [...model.approvals.values()];
      const pair = known.length === 0 || drawn.listOnly ? { payer: who, approved: whom } : numbered(known, drawn.winc);
      return [{ kind: "revoke", id, payer: pair.payer, approved: pair.approved }];
    }
    case "reserve":
    case "pay": {
      const item = numbered(items, drawn.number);
      // An item has one signer.
      const signer = numbered(people, drawn.number % items.length);
      const paidBy = drawn.paidBy.map((number) => numbered(people, number));
      const asked = { item, signer, paidBy, listOnly: drawn.listOnly, winc };
      if (drawn.what === "pay") return [{ kind: "pay", ...asked }];
      return [{ kind: "reserve", ...asked, expiresAt: now + (drawn.ticks % 4) * tickMs }];
    }
    case "post":
    case "void": {
      const pending = [...model.reservations.values()].filter(({ state }) => state === "pending");
      // Most of the time one that can be ended, else any.
      const known = drawn.winc < 30 ? pending.map(({ id }) => id) : [...model.reservations.keys()];
      return known.length === 0 ? [] : [{ kind: drawn.what, reservation: numbered(known, drawn.number) }];
    }
    case "expire":
      return [{ kind: "expire" }];
  }
}

/** Asks for an operation. @returns The result, in the model's words. */
async function ask(subject: Subject, credits: Credits, operation: Operation): Promise<string> {
  try {
    return await askOnce(subject, credits, operation);
  } catch (error) {
    if (error instanceof Failure && error.code === "insufficient_balance")
      return `short of ${error.context["needed"]}, has ${error.context["available"]}`;
    if (error instanceof Failure && error.code === "payment_rejected") return "rejected";
    throw error;
  }
}

async function askOnce(subject: Subject, credits: Credits, operation: Operation): Promise<string> {
  switch (operation.kind) {
    case "credit":
      await paidIn(subject, "payment", named(operation.who), operation.winc);
      return "done";
    case "chargeBack":
      await paidIn(subject, "chargeback", named(operation.who), -operation.winc);
      return "done";
    case "approve": {
      const { id: approvalId, payer, approved, winc, expiresAt } = operation;
      const parties = { payer: named(payer), approved: named(approved) };
      return approvalText(await credits.approve({ approvalId, ...parties, winc, expiresAt }));
    }
    case "revoke": {
      const { id: revokeId, payer, approved } = operation;
      const revoked = await credits.revoke({ revokeId, payer: named(payer), approved: named(approved) });
      return revoked.map(approvalText).sort().join(", ");
    }
    case "reserve": {
      const { expiresAt } = operation;
      return reservationText(await credits.reserve({ ...paymentOf(operation), expiresAt }));
    }
    case "pay": {
      // As uploads do: within a transaction of theirs.
      const step = { now: subject.clock.now(), makeId: subject.makeId };
      const payment = paymentOf(operation);
      return reservationText(await subject.database.write((tx) => payAtOnce(tx, payment, step)));
    }
    case "post":
      return await credits.post(operation.reservation);
    case "void":
      return await credits.void(operation.reservation);
    case "expire":
      await credits.expire(new AbortController().signal);
      return "done";
  }
}

function paymentOf(operation: Operation & { kind: "reserve" | "pay" }): ItemPayment {
  const { item: itemId, signer, paidBy, listOnly, winc } = operation;
  const directive = listOnly ? "list-only" : "list-or-signer";
  return { itemId, signer: named(signer), paidBy: paidBy.map(named), directive, winc };
}

/** All that can be seen from outside, as the model's `view` has it. */
async function look({ handles, database }: Subject): Promise<string> {
  const credits = handleOf(handles, 0);
  const lines = people.map(async (who) => {
    const balance = await credits.balance(who);
    if (balance === undefined) return balanceLine(who, undefined);
    return balanceLine(who, {
      winc: balance.winc,
      controlled: balance.controlledWinc,
      effective: balance.effectiveBalance,
      given: balance.givenApprovals.map(approvalText),
      received: balance.receivedApprovals.map(approvalText),
    });
  });
  const rest = database.read(async (tx) => {
    const sums = `revenue ${await balanceOf(tx, revenue)}, paid ${-(await balanceOf(tx, provider("stripe")))}`;
    const rows = await tx.all<{ item_id: string }>("SELECT DISTINCT item_id FROM reservations ORDER BY item_id");
    const attempts = await tx.all<{
      id: string;
      state: string;
      expires_at: bigint;
      payer: string;
      winc: bigint;
    }>("SELECT id, state, expires_at, payer, winc FROM reservations");
    return { sums, items: rows.map(({ item_id }) => item_id), attempts };
  });
  const { sums, attempts } = await rest;
  const parts = await database.read((tx) =>
    tx.all<{ reservation_id: string; payer: string; approval_id: string | null; winc: bigint }>(
      "SELECT reservation_id, payer, approval_id, winc FROM reservation_parts ORDER BY reservation_id, position",
    ),
  );
  const reservations = attempts.map(({ id, state, expires_at, ...whole }) => {
    const own = parts.filter(({ reservation_id }) => reservation_id === id);
    const texts = own.map(({ payer, approval_id, winc }) => `${winc} of ${approval_id ?? payer}`);
    // Without rows of parts all of it is the signer's own.
    if (texts.length === 0 && whole.winc > 0n) texts.push(`${whole.winc} of ${whole.payer}`);
    return `${id} ${state} until ${expires_at}: ${texts.join(", ")}`;
  });
  return [...(await Promise.all(lines)), ...reservations.sort(), sums].join("\n");
}

/** A state of the model in which a batch may have ended, and how many steps the search took. */
type Explained = Readonly<{ model: Model; tries: number }>;

/** Finds an order of the operations in which the model tells each the same and ends as it is seen. */
function explain(
  model: Model,
  asked: readonly Operation[],
  responses: readonly string[],
  seen: string,
  now: number,
): Explained | undefined {
  let tries = 0;
  const search = (state: Model, left: readonly number[]): Model | undefined => {
    if (left.length === 0) return view(state, people, now) === seen ? state : undefined;
    for (const round of left) {
      const operation = asked[round];
      if (operation === undefined) continue;
      tries += 1;
      const next = copyOf(state);
      if (perform(next, operation, now) !== responses[round]) continue;
      const end = search(
        next,
        left.filter((other) => other !== round),
      );
      if (end !== undefined) return end;
    }
    return undefined;
  };
  const end = search(model, [...asked.keys()]);
  return end === undefined ? undefined : { model: end, tries };
}

function unexplained(
  model: Model,
  asked: readonly Operation[],
  responses: readonly string[],
  seen: string,
  now: number,
): string {
  const reported = asked.map((operation, round) => `  ${JSON.stringify(operation, bigintText)} → ${responses[round]}`);
  const before = view(model, people, now);
  return `no order of these operations at ${now} explains their responses and what is seen\nbefore:\n${before}\n${reported.join("\n")}\nseen:\n${seen}`;
}

function bigintText(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}

function count(tally: Tally, asked: readonly Operation[], responses: readonly string[], tries: number): void {
  for (const [round, { kind }] of asked.entries()) {
    const response = responses[round] ?? "";
    const outcome = /^(done|rejected|short|posted|voided|expired)/.exec(response)?.[0] ?? "ok";
    add(tally, `${kind}: ${outcome}`);
    if ((kind === "reserve" || kind === "pay") && response.includes("of approval-"))
      add(tally, `${kind}: from approvals`);
  }
  if (tries > asked.length) add(tally, "batches in another order than asked");
  add(tally, "batches");
}

function add(tally: Tally, what: string): void {
  tally.set(what, (tally.get(what) ?? 0) + 1);
}

function approvalText({ id, usedWinc, approvedWinc }: Approval): string {
  return `${id} ${usedWinc}/${approvedWinc}`;
}

function reservationText({ id, state, parts, expiresAt }: Reservation): string {
  const sums = parts.map(({ payer, approvalId, winc }) => `${winc} of ${approvalId ?? payer}`);
  return `${id} ${state} until ${expiresAt}: ${sums.join(", ")}`;
}

function named(who: string): UserAddress {
  const address = people.find((one) => one === who);
  if (address === undefined) throw new Error(`${who} is not an account`);
  return address;
}

function numbered<Value>(list: readonly Value[], number: number): Value {
  const value = list[number % list.length];
  if (value === undefined) throw new Error("nothing to choose from");
  return value;
}

function handleOf(handles: readonly Credits[], round: number): Credits {
  return numbered(handles, round);
}
