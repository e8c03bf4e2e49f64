/**
 * Reading all pages returns exactly the existing rows, in both orders, with any filters, while the chain grows and forks.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { openIndexReader } from "../../../../src/store/index/index-reader.ts";
import { openIndexWriter } from "../../../../src/store/index/index-writer.ts";
import { inspectIndex } from "../../../support/inspect-index.ts";
import { createRandom } from "../../../support/random.ts";
import { seedsOr } from "../../../support/seed.ts";
import { temporaryFolder } from "../../folder.ts";
import { createFixture } from "../index-fixture.ts";
import { createMergeSteps, type MergeSteps } from "../parts/merge-steps.ts";
import { createStaleTests } from "../stale-tests.ts";
import { walkPages } from "./walk-pages.ts";

const seedCount = Number(process.env["PAGE_SEEDS"] ?? 4);
const firstSeed = Number(process.env["PAGE_FIRST"] ?? 1);
/** A deep rollback removes a row with an unwanted tag, and another row without it takes its place. */
const seedOfReplacedRow = 57;
const seeds = seedsOr([...Array.from({ length: seedCount }, (_, index) => firstSeed + index), seedOfReplacedRow]);
const stepsBefore = Number(process.env["PAGE_STEPS"] ?? 200);
const walks = Number(process.env["PAGE_WALKS"] ?? 60);
const tinyParts = { rowsMin: 3, sealRows: 30, levelRows: 20, fanIn: 3, mergedRowsMin: 200, mergedRowsMax: 1_000 };

describe("pages", () => {
  test.each(seeds)("with seed %d every page equals a full scan at that moment, and no row repeats", async (seed) => {
    using folder = temporaryFolder();
    const path = `${folder.path}/index.sqlite`;
    const random = createRandom(seed);
    const opened: (() => void)[] = [];
    const background: { merges?: MergeSteps } = {};
    const reader = { current: undefined as ReturnType<typeof openIndexReader> | undefined };
    const fixture = createFixture(random, (clock) => {
      // Tiny parts and steps cover every branch of sealing, merging and walking with few rows. Merges are made at once,
      // or in steps between the calls.
      const partSizes = { ...tinyParts, inlineRowsMax: seed % 4 === 1 ? 1_000 : 8 };
      const writer = openIndexWriter(path, seed % 4 === 0 ? { clock } : { clock, partSizes });
      const merges = createMergeSteps(writer, path, random);
      const tests = seed % 3 === 0 ? undefined : createStaleTests(writer, path, random);
      const index = openIndexReader(path, seed % 2 === 0 ? {} : { windows: { min: 2, max: 40 } });
      reader.current = index;
      if (tests !== undefined) opened.push(tests.close);
      opened.push(index.close, merges.close, writer.close);
      background.merges = merges;
      return { writer: tests?.writer ?? writer, reader: index };
    });
    const merge = () => {
      for (let count = random.below(6); count > 0; count -= 1) background.merges?.step();
    };
    if (reader.current === undefined) throw new Error("the there opens its index");

    for (let step = 0; step < stepsBefore; step += 1) {
      fixture.step();
      merge();
    }
    for (let walk = 0; walk < walks; walk += 1) {
      const plan = fixture.plan();
      const isChanging = random.chance(0.6);
      const change = () => {
        if (random.chance(0.3)) merge();
        if (isChanging && random.chance(0.3)) fixture.step();
      };
      await walkPages(fixture, reader.current.page, plan, change);
    }
    background.merges?.finish();
    for (const close of opened) close();
    expect(inspectIndex(path).faults).toEqual([]);
  });
});
