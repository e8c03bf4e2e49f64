/**
 * Publication of roots of solvency: one root a period, whatever fails, crashes or runs beside it.
 * @module
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { createEthereumSigner } from "../../../src/arweave/signers/ethereum.ts";
import { signBytes } from "../../../src/cli/upload/local-item.ts";
import { encodeBase64url } from "../../../src/lib/base64url.ts";
import { silentLog } from "../../../src/lib/log.ts";
import { createMetrics } from "../../../src/lib/metrics.ts";
import {
  readBalances,
  rootTags,
  solvencyRoot,
  verifySolvency,
  writeRoot,
} from "../../../src/payment/operator/solvency.ts";
import { createPublication, type PublicationParts } from "../../../src/payment/operator/solvency-publication.ts";
import { findRoot, newestRoots, publishedRoot } from "../../../src/payment/operator/solvency-roots.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { openTestPayment, type TestPayment, testAddress } from "../../support/payment.ts";

const [minuteMs, dayMs] = [60_000, 86_400_000];
const noon = Date.parse("2030-11-05T12:00:00Z");
const midnight = Date.parse("2030-11-05T00:00:00Z");
const ada = testAddress("ada");
const signal = new AbortController().signal;

for (const kind of ledgerKinds())
  describeWith(kind.need, `publication of solvency on ${kind.name}`, () => {
    let payment: TestPayment;
    let uploads: string[];

    beforeEach(async () => {
      payment = await openTestPayment({ kind });
      payment.clock.set(noon - 2 * dayMs);
      await payment.credit(ada, 1_000n);
      payment.clock.set(noon);
      uploads = [];
    });
    afterEach(() => payment.close());

    const open = (more: Partial<PublicationParts> = {}, byte = 1) => {
      const metrics = createMetrics();
      const ledger = more.ledger ?? payment.database;
      // Each process has its own key, so that two roots of one moment differ.
      const [signer, secret] = [createEthereumSigner(new Uint8Array(32).fill(byte)), new Uint8Array(32).fill(byte)];
      const publication = createPublication({
        ...{ ledger, everyMs: dayMs, clock: payment.clock.now, log: silentLog, metrics },
        sign: async (at) => {
          const root = solvencyRoot(await readBalances(ledger, at, secret));
          const { id, bytes } = signBytes(writeRoot(root), rootTags, signer);
          return { id, item: encodeBase64url(bytes), secret };
        },
        upload: async (item) => {
          uploads.push(encodeBase64url(item));
        },
        ...more,
      });
      const metric = async (name: string) => new RegExp(`^${name} (.+)$`, "m").exec(await metrics.text())?.[1];
      return {
        ...publication,
        metric,
        count: (result: string) => metric(`solvency_publications_total{result="${result}"}`.replace(/[{}]/g, "\\$&")),
      };
    };
    const roots = () => payment.database.read((tx) => newestRoots(tx, 10));
    const failing = { upload: () => Promise.reject(new Error("the disk is full")) };

    test("has one root a day, of the balances at 00:00 UTC", async () => {
      const publication = open();
      await payment.credit(ada, 5n);
      for (let attempt = 0; attempt < 3; attempt += 1) await publication.step(signal);
      expect(uploads).toHaveLength(1);
      const [root, ...others] = await roots();
      expect(others).toEqual([]);
      expect(root).toMatchObject({ at: midnight, item: uploads[0], publishedAt: noon });
      expect(verifySolvency({ item: uploads[0] ?? "" })).toMatchObject({
        root: { at: midnight, accounts: 1, root: { winc: 1_000n }, id: root?.id },
      });
      expect(await payment.database.read((tx) => findRoot(tx, root?.id ?? ""))).toEqual(root);
      payment.clock.advance(dayMs);
      await publication.step(signal);
      expect((await roots()).map(({ at }) => at)).toEqual([midnight + dayMs, midnight]);
      expect(uploads).toHaveLength(2);
      expect(verifySolvency({ item: uploads[1] ?? "" })).toMatchObject({ root: { root: { winc: 1_005n } } });
      expect(await publication.metric("solvency_root_age_seconds")).toBe(String(12 * 60 * 60));
    });

    test("a day begins five minutes late, when its balances no longer change", async () => {
      const publication = open();
      payment.clock.set(midnight + 5 * minuteMs - 1);
      await publication.step(signal);
      payment.clock.advance(1);
      await publication.step(signal);
      expect((await roots()).map(({ at }) => at)).toEqual([midnight, midnight - dayMs]);
    });

    test("a failed upload is a reason, and the next attempt sends the same bytes", async () => {
      let isFull = true;
      const publication = open({
        upload: async (item) => {
          uploads.push(encodeBase64url(item));
          if (isFull) throw new Error("the disk is full");
        },
      });
      await expect(publication.step(signal)).rejects.toThrow("the disk is full");
      expect(publication.reasons()).toEqual([
        "The root of solvency of 2030-11-05T00:00:00.000Z is not published: the disk is full.",
      ]);
      expect([await publication.count("failed"), await publication.metric("solvency_root_age_seconds")]).toEqual([
        "1",
        undefined,
      ]);
      expect(await payment.database.read(publishedRoot)).toBeUndefined();
      isFull = false;
      payment.clock.advance(minuteMs);
      await publication.step(signal);
      expect(publication.reasons()).toEqual([]);
      expect([uploads.length, new Set(uploads).size]).toEqual([2, 1]);
      expect(await publication.count("published")).toBe("1");
    });

    test("a crash after the upload is continued by the next process, with the same bytes and another key", async () => {
      const crashing = open({
        ledger: {
          read: payment.database.read,
          write: async (work) => {
            if (uploads.length > 0) throw new Error("killed");
            return await payment.database.write(work);
          },
        },
      });
      await expect(crashing.step(signal)).rejects.toThrow("killed");
      await open({}, 2).step(signal);
      expect([uploads.length, new Set(uploads).size, (await roots()).length]).toEqual([2, 1, 1]);
      await open({}, 3).step(signal);
      expect(uploads).toHaveLength(2);
    });

    test("of two processes that sign at once, one publishes, and both know", async () => {
      const second = await payment.ledger.openAgain();
      const [one, two] = [open({}, 1), open({ ledger: second }, 2)];
      await Promise.all([one.step(signal), two.step(signal), one.step(signal), two.step(signal)]);
      expect([new Set(uploads).size, (await roots()).length]).toEqual([1, 1]);
      expect([one.reasons(), two.reasons()]).toEqual([[], []]);
      const counts = await Promise.all([one.count("published"), two.count("published")]);
      expect(counts.filter((count) => count === "1")).toHaveLength(1);
      await second.close();
    });

    test("a root that is an hour late is a reason without a failure too, and a new process has an hour", async () => {
      const publication = open();
      payment.clock.advance(60 * minuteMs - 1);
      expect(publication.reasons()).toEqual([]);
      payment.clock.advance(1);
      expect(publication.reasons()).toEqual(["The root of solvency of 2030-11-05T00:00:00.000Z is overdue."]);
      await publication.step(signal);
      expect(publication.reasons()).toEqual([]);
      payment.clock.set(midnight + dayMs + 65 * minuteMs - 1);
      expect(publication.reasons()).toEqual([]);
      payment.clock.advance(1);
      expect(publication.reasons()).toEqual(["The root of solvency of 2030-11-06T00:00:00.000Z is overdue."]);
    });

    test("a day that ended without an upload has no published root, and does not hold up the next one", async () => {
      await expect(open(failing).step(signal)).rejects.toThrow("the disk is full");
      payment.clock.advance(dayMs);
      await open().step(signal);
      expect((await roots()).map(({ at, publishedAt }) => [at, publishedAt])).toEqual([
        [midnight + dayMs, noon + dayMs],
        [midnight, undefined],
      ]);
    });

    test("a shorter interval goes on from the last root, and a longer one waits for its next moment", async () => {
      await open().step(signal);
      await open({ everyMs: 7 * dayMs }).step(signal);
      expect(await roots()).toHaveLength(1);
      await open({ everyMs: 60 * minuteMs }).step(signal);
      expect((await roots()).map(({ at }) => at)).toEqual([noon - 60 * minuteMs, midnight]);
    });
  });
