/**
 * Uploads as the pipeline finds them: a ledger, a folder with items in segments and in files of their own, real threads,
 * and whatever chain a test brings.
 * @module
 */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkItem, createDataItem } from "../../../src/arweave/data-item.ts";
import type { Id } from "../../../src/arweave/id.ts";
import { createEd25519Signer } from "../../../src/arweave/signers/ed25519.ts";
import { winc } from "../../../src/arweave/winston.ts";
import { removeFolder } from "../../../src/lib/remove-folder.ts";
import type { UserAddress } from "../../../src/payment/addresses.ts";
import { type PaymentDirective, post, refundReservation, reserve } from "../../../src/payment/credits/reservations.ts";
import type { LedgerDatabase } from "../../../src/store/ledger/ledger-database.ts";
import { createTransferIds, type MakeId } from "../../../src/store/ledger/transfers.ts";
import { itemFolder, makeItemFolders, openSegments } from "../../../src/store/uploads/item-files.ts";
import { openPool, type Pool, type Workers } from "../../../src/threads/pool.ts";
import { openPipeline, type Pipeline } from "../../../src/upload/pipeline/bundle-pipeline.ts";
import type { BundleChain, PipelineRules, StepParts } from "../../../src/upload/pipeline/pipeline-context.ts";
import { insertUpload, type Upload } from "../../../src/upload/upload-rows.ts";
import { rsaJwk } from "../../dev/devnet/support.ts";
import { createBlockList, type TestBlockList } from "../../support/block-lists.ts";
import { type LedgerKind, ledgerKinds, type TestLedger } from "../../support/ledger-databases.ts";
import { createRandom, type Random } from "../../support/random.ts";
import { createRecordingLog } from "../../support/recording-log.ts";
import { testKey } from "../../support/signers.ts";

/** The folder's name in these tests. */
export const storeName = "00000000-0000-4000-8000-000000000001";

/** An item, signed. */
export type SignedItem = Readonly<{ id: Id; bytes: Uint8Array }>;

/** Who pays for items that are taken. */
export type Payment = Readonly<{
  signer: UserAddress;
  winc: bigint;
  paidBy?: readonly UserAddress[];
  directive?: PaymentDirective;
}>;

/** a fixture, open. */
export type BundleFixture = Readonly<{
  ledger: TestLedger;
  database: LedgerDatabase;
  /** That of uploads. */
  folder: string;
  walletFile: string;
  threads: Pool<Workers["bundles"]>;
  random: Random;
  makeId: MakeId;
  clock: () => number;
  /** Log lines so far, parsed. */
  lines: Record<string, unknown>[];
  /** What the pipeline said of files and items. */
  left: string[];
  ended: { permanent: number; failed: number };
  /** The block list of items that are not posted. */
  blockList: TestBlockList;
  /** Signs items of some sizes of payload. */
  sign: (sizes: readonly number[]) => SignedItem[];
  /** Stores items at one time, small ones in one segment, and returns the place of each. */
  take: (items: readonly SignedItem[], options?: TakeOptions) => Promise<Place[]>;
  /** The parts of a pipeline on a chain. */
  partsWith: (chain: BundleChain, rules?: Partial<PipelineRules>) => StepParts;
  /** Starts a pipeline; it is closed with the fixture. */
  start: (chain: BundleChain, rules?: Partial<PipelineRules>) => Pipeline;
  close: () => Promise<void>;
}>;

/** How items are taken. */
export type TakeOptions = Readonly<{
  payment?: Payment;
  /** Unix milliseconds; the fixture's clock by default. */
  receivedAt?: number;
  /** Each in a file of its own. */
  apart?: boolean;
  store?: string;
}>;

/** The place of an item. */
export type Place = Upload["bytes"];

/** What a fixture is opened with. */
export type FixtureOptions = Readonly<{ kind?: LedgerKind; seed?: number; clock?: () => number }>;

const [usualKind] = ledgerKinds();
const signer = createEd25519Signer(testKey(21));

/** Times of tests: everything is looked at often. */
export const quickRules: PipelineRules = {
  plan: { itemsMax: 10_000, bytesMax: 2 ** 31, waitMs: 20 },
  confirmations: 2,
  lookMs: 10,
  againMs: 200,
};

/** Opens a fixture. */
export async function openBundleFixture(options: FixtureOptions = {}): Promise<BundleFixture> {
  const { kind = usualKind, seed = 1, clock = Date.now } = options;
  if (kind === undefined) throw new Error("no kind of ledger is to be tested");
  const ledger = await kind.open();
  const { database } = ledger;
  const root = mkdtempSync(join(tmpdir(), "cairn-bundles-"));
  const folder = join(root, "uploads");
  mkdirSync(folder);
  makeItemFolders(folder);
  const walletFile = join(root, "wallet.json");
  writeFileSync(walletFile, JSON.stringify(rsaJwk));
  const { log, lines } = createRecordingLog();
  const threads = openPool({
    entry: "bundles",
    threads: 2,
    queueMax: 1_024,
    timeoutMs: 60_000,
    idleMs: 60_000,
  });
  const random = createRandom(seed);
  const makeId = createTransferIds(clock, () => random.below(2 ** 32) / 2 ** 32);
  const segments = openSegments(folder, () => crypto.randomUUID());
  const left: string[] = [];
  const ended = { permanent: 0, failed: 0 };
  const pipelines: Pipeline[] = [];
  const blockList = createBlockList();

  const write = (items: readonly SignedItem[], apart: boolean): Place[] => {
    if (items.length === 0) return [];
    if (apart)
      return items.map(({ bytes }) => {
        const file = `${itemFolder}/${crypto.randomUUID()}`;
        writeFileSync(join(folder, file), bytes);
        return { file, offset: 0, size: bytes.length };
      });
    const { file, offsets } = segments.append(items.map(({ bytes }) => bytes));
    return items.map(({ bytes }, index) => ({ file, offset: offsets[index] ?? 0, size: bytes.length }));
  };

  const partsWith = (chain: BundleChain, rules: Partial<PipelineRules> = {}): StepParts => ({
    ledger: database,
    threads,
    chain,
    folder,
    storeName,
    walletFile,
    makeId,
    clock,
    log,
    refund: refundReservation,
    blockList,
    onLeft: (files) => left.push(...files),
    onEnded: (how, count) => {
      ended[how] += count;
    },
    onLeftBlock: () => undefined,
    planAgain: () => undefined,
    inOrder: (work) => work(),
    rules: { ...quickRules, ...rules },
  });

  return {
    ledger,
    database,
    folder,
    walletFile,
    threads,
    random,
    makeId,
    clock,
    lines,
    left,
    ended,
    blockList,
    sign: (sizes) => sizes.map((size) => signItem(random.bytes(size), makeId())),
    take: async (items, { payment, receivedAt = clock(), apart = false, store = storeName } = {}) => {
      const places = write(items, apart);
      for (let at = 0; at < items.length; at += 500)
        await database.write(async (tx) => {
          for (const [index, { bytes }] of items.slice(at, at + 500).entries()) {
            const checked = checkItem(bytes, "strict");
            const place = places[at + index];
            if (checked.kind !== "item" || place === undefined) throw new Error("no item");
            const { header, digest } = checked;
            const step = { now: receivedAt, makeId };
            const reservation =
              payment === undefined
                ? undefined
                : await reserve(
                    tx,
                    {
                      itemId: header.id,
                      signer: payment.signer,
                      paidBy: payment.paidBy ?? [],
                      directive: payment.directive ?? "list-or-signer",
                      winc: payment.winc,
                      expiresAt: receivedAt + 1_000,
                    },
                    step,
                  );
            if (reservation !== undefined) await post(tx, reservation.id, step);
            await insertUpload(tx, {
              id: header.id,
              store,
              bytes: place,
              headerSize: header.headerSize,
              signatureType: header.signatureType,
              signingId: undefined,
              ownerAddress: header.ownerAddress,
              contentType: "text/plain",
              contentEncoding: undefined,
              digest,
              signer: header.ownerAddress as unknown as UserAddress,
              winc: winc(payment?.winc ?? 0n),
              reservationId: reservation?.id,
              receivedAt,
              deadlineHeight: 200,
            });
          }
        });
      return places;
    },
    partsWith,
    start: (chain, rules) => {
      const pipeline = openPipeline(partsWith(chain, rules));
      pipelines.push(pipeline);
      return pipeline;
    },
    close: async () => {
      for (const pipeline of pipelines) await pipeline.close();
      await threads.close();
      await ledger.remove();
      removeFolder(root);
    },
  };
}

/** @param name - Makes an item of the same payload another one. */
function signItem(data: Uint8Array, name: string): SignedItem {
  const tags = [
    { name: "Content-Type", value: "text/plain" },
    { name: "Name", value: name },
  ];
  const bytes = createDataItem({ data, tags }, signer);
  const checked = checkItem(bytes, "strict");
  if (checked.kind !== "item") throw new Error(checked.reason);
  return { id: checked.header.id, bytes };
}
