/**
 * Reading all pages returns exactly the existing rows, in both orders, with any filters, while the chain grows and forks.
 * @module
 */

import { describe, expect, test } from "bun:test";
import { openIndexReader } from "../../../src/store/index/index-reader.ts";
import type { PagePlan } from "../../../src/store/index/index-types.ts";
import { openIndexWriter } from "../../../src/store/index/index-writer.ts";
import type { Place } from "../../../src/store/index/place.ts";
import { inspectIndex } from "../../support/inspect-index.ts";
import { comparePlaces } from "../../support/places.ts";
import { createRandom } from "../../support/random.ts";
import { seedsOr } from "../../support/seed.ts";
import { temporaryFolder } from "../folder.ts";
import { createFixture, type Fixture } from "./index-fixture.ts";
import { fullScan, pageRowText, rowText } from "./model.ts";

const seeds = seedsOr([1, 2, 3, 4]);
const stepsBefore = 200;
const walks = 60;
const stepsPerWalkMax = 30;
const tinyParts = { rowsMin: 3, sealRows: 30, levelRows: 20, fanIn: 3, mergedRowsMax: 1_000 };

describe("pages", () => {
  test.each(seeds)("with seed %d every page equals a full scan at that moment, and no row repeats", (seed) => {
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
    if (reader.current === undefined) throw new Error("the world opens its index");

    for (let step = 0; step < stepsBefore; step += 1) fixture.step();
    for (let walk = 0; walk < walks; walk += 1) {
      const plan = fixture.plan();
      walkAll(fixture, reader.current.page, plan, random.chance(0.6) ? () => random.chance(0.3) : () => false);
    }
    for (const close of opened) close();
    expect(inspectIndex(path).faults).toEqual([]);
  });
});

type PageOf = (plan: PagePlan) => ReturnType<ReturnType<typeof openIndexReader>["page"]>;

function walkAll(fixture: Fixture, page: PageOf, plan: PagePlan, happens: () => boolean): void {
  const seen: { place: Place; text: string }[] = [];
  let standing = new Set(fullScan(fixture.rows(), plan).map(rowText));
  let after: Place | undefined;
  let steps = 0;
  for (;;) {
    const response = page({ ...plan, ...(after === undefined ? {} : { after }) });
    const now = fullScan(fixture.rows(), plan);
    const rest = now.filter(({ place }) => after === undefined || isAfter(place, after, plan.order));
    const expected = { rows: rest.slice(0, plan.limit).map(rowText), hasNextPage: rest.length > plan.limit };
    const found = { rows: response.rows.map(pageRowText), hasNextPage: response.hasNextPage };
    // The plan is part of what is compared, so that a failure shows it.
    expect({ plan, after, ...found }).toEqual({ plan, after, ...expected });

    seen.push(...response.rows.map((row) => ({ place: row.place, text: pageRowText(row) })));
    if (!response.hasNextPage) break;
    after = response.rows.at(-1)?.place;
    // A chain that grows faster than it is read would never end.
    for (; steps < stepsPerWalkMax && happens(); steps += 1) {
      fixture.step();
      const current = new Set(fullScan(fixture.rows(), plan).map(rowText));
      standing = new Set([...standing].filter((text) => current.has(text)));
    }
  }
  const ordered = seen.every(({ place }, index) => {
    const before = seen[index - 1];
    return before === undefined || isAfter(place, before.place, plan.order);
  });
  expect(ordered).toBe(true);
  const texts = new Set(seen.map(({ text }) => text));
  expect([...standing].filter((text) => !texts.has(text))).toEqual([]);
}

function isAfter(place: Place, other: Place, order: "asc" | "desc"): boolean {
  return order === "asc" ? comparePlaces(place, other) > 0 : comparePlaces(place, other) < 0;
}
