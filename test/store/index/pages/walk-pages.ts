/**
 * Reading all pages of a plan, each compared with a full scan at that moment.
 * @module
 */
import { expect } from "bun:test";
import type { Page, PagePlan } from "../../../../src/store/index/index-types.ts";
import type { Place } from "../../../../src/store/index/place.ts";
import { comparePlaces } from "../../../support/places.ts";
import type { Fixture } from "../index-fixture.ts";
import { fullScan, pageRowText, rowText } from "../model.ts";

const changesMax = 30;

/** Reads all pages of a plan, and compares each with a full scan. @param change - Called after each page. */
export async function walkPages(
  fixture: Pick<Fixture, "rows">,
  page: (plan: PagePlan) => Page | Promise<Page>,
  plan: PagePlan,
  change: () => unknown,
): Promise<void> {
  const seen: { place: Place; text: string }[] = [];
  let status = new Set(fullScan(fixture.rows(), plan).map(rowText));
  let after: Place | undefined;
  let changes = 0;
  for (;;) {
    const response = await page({ ...plan, ...(after === undefined ? {} : { after }) });
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
    if (changes < changesMax) {
      changes += 1;
      await change();
      const current = new Set(fullScan(fixture.rows(), plan).map(rowText));
      status = new Set([...status].filter((text) => current.has(text)));
    }
  }
  const ordered = seen.every(({ place }, index) => {
    const before = seen[index - 1];
    return before === undefined || isAfter(place, before.place, plan.order);
  });
  expect(ordered).toBe(true);
  const texts = new Set(seen.map(({ text }) => text));
  expect([...status].filter((text) => !texts.has(text))).toEqual([]);
}

function isAfter(place: Place, other: Place, order: "asc" | "desc"): boolean {
  return order === "asc" ? comparePlaces(place, other) > 0 : comparePlaces(place, other) < 0;
}
