/**
 * `cairn ledger repair`: undoes acts of signing that an older version charged more than once. `--dry-run` lists what
 * it would transfer, and writes nothing.
 * @module
 */

import { exitCodes } from "../app/complaints.ts";
import { systemRandom } from "../app/random.ts";
import { jsonText, printable } from "../lib/printable.ts";
import { openLedger } from "../store/ledger/open-ledger.ts";
import { createTransferIds } from "../store/ledger/transfers.ts";
import {
  type DoubleCharge,
  type DoubleCharges,
  findDoubleCharges,
  undoDoubleCharge,
  writeSignings,
} from "../upload/double-charges.ts";
import { createSigningReader } from "./read-signing.ts";

/** What is repaired, and how. */
export type RepairOptions = Readonly<{
  /** PostgreSQL; `undefined` is the file. */
  url: string | undefined;
  path: string;
  /** The folder of uploads. */
  uploads: string;
  /** Where uploads that are on the chain are read; without a slash at its end. */
  gateway: string;
  dryRun: boolean;
  json: boolean;
}>;

/** Repairs and prints. @returns 1 when a double charge is left, also after a dry run that found one. */
export async function repairLedger(options: RepairOptions): Promise<number> {
  const { url, path, uploads, gateway, dryRun, json } = options;
  const signings = createSigningReader(uploads, gateway);
  const database = await openLedger({ url, path });
  try {
    const found = await findDoubleCharges(database, signings.read, new AbortController().signal);
    const undone = new Set<string>();
    if (!dryRun) {
      const makeId = createTransferIds(Date.now, systemRandom);
      for (const double of found.doubles)
        if (await undoDoubleCharge(database, double, { now: Date.now(), makeId })) undone.add(double.id);
      await writeSignings(database, found.signings);
    }
    const left = found.doubles.filter(({ id }) => !undone.has(id));
    process.stdout.write(json ? `${asJson(found, undone)}\n` : page(found, undone, dryRun));
    return left.length === 0 ? exitCodes.done : exitCodes.failed;
  } finally {
    signings.close();
    await database.close();
  }
}

/** What is said of an upload whose signature could not be read. */
export function unreadText({ id, reason }: DoubleCharges["unread"][number]): string {
  return printable(`not compared: upload ${id}: ${reason}`);
}

function asJson({ doubles, unread }: DoubleCharges, undone: ReadonlySet<string>): string {
  const records = doubles.map(({ id, firstId, transfers, notes }) => ({
    id,
    firstId,
    undone: undone.has(id),
    notes,
    transfers: transfers.map(({ reason, to, winc }) => ({ reason, to, winc: winc.toString() })),
  }));
  return jsonText({ doubles: records, unread });
}

function page({ doubles, unread }: DoubleCharges, undone: ReadonlySet<string>, dryRun: boolean): string {
  const lines = [
    doubles.length === 0 ? "every act of signing was charged once" : `charged twice: ${doubles.length}`,
    ...doubles.flatMap((double) => linesOf(double, undone.has(double.id), dryRun)),
    ...unread.map(unreadText),
  ];
  return `${lines.join("\n")}\n`;
}

function linesOf({ id, firstId, transfers, notes }: DoubleCharge, isUndone: boolean, dryRun: boolean): string[] {
  const state = isUndone ? "undone" : dryRun ? "would be undone" : "left as it is";
  return [
    `upload ${id} repeats ${firstId}: ${state}`,
    ...transfers.map(({ reason, to, winc }) => `  ${winc} winc to ${to} (${reason})`),
    ...notes.map((note) => `  ${printable(note)}`),
  ];
}
