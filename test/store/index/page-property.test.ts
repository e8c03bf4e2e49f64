/**
 * Reading all pages returns exactly the existing rows, in both orders, with any filters, while the chain grows and forks.
 * @module
 */

import { describe, expect, test } from "bun:test";
import { openIndexReader } from "../../../src/store/index/index-reader.ts";
import { openIndexWriter } from "../../../src/store/index/index-writer.ts";
import { inspectIndex } from "../../support/inspect-index.ts";
import { createRandom } from "../../support/random.ts";
import { seedsOr } from "../../support/seed.ts";
import { temporaryFolder } from "../folder.ts";
import { createFixture } from "./index-fixture.ts";
import { walkPages } from "./walk-pages.ts";

const seeds = seedsOr([1, 2, 3, 4]);
const stepsBefore = 200;
const walks = 60;
const tinyParts = { rowsMin: 3, sealRows: 30, levelRows: 20, fanIn: 3, inlineRowsMax: 1_000, mergedRowsMax: 1_000 };

describe("pages", () => {
  test.each(seeds)("with seed %d every page equals a full scan at that moment, and no row repeats", async (seed) => {
    using folder = temporaryFolder();
    const path = `${folder.path}/index.sqlite`;
    const random = createRandom(seed);
    const opened: (() => void)[] = [];
    const reader = { current: undefined as ReturnType<typeof openIndexReader> | undefined };
    const fixture = createFixture(random, (clock) => {
      // Tiny parts and steps cover every branch of sealing, merging and walking with few rows.
      const writer = openIndexWriter(path, seed % 4 === 0 ? { clock } : { clock, partSizes: tinyParts });
      const index = openIndexReader(path, seed % 2 === 0 ? {} : { windows: { min: 2, max: 40 } });
      reader.current = index;
      opened.push(index.close, writer.close);
      return { writer, reader: index };
    });
    if (reader.current === undefined) throw new Error("the there opens its index");

    for (let step = 0; step < stepsBefore; step += 1) fixture.step();
    for (let walk = 0; walk < walks; walk += 1) {
      const plan = fixture.plan();
      const change = random.chance(0.6) ? () => random.chance(0.3) && fixture.step() : () => undefined;
      await walkPages(fixture, reader.current.page, plan, change);
    }
    for (const close of opened) close();
    expect(inspectIndex(path).faults).toEqual([]);
  });
});
