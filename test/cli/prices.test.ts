/**
 * An operator's price rules at the start: the example of the documentation, and faults, which end the start.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { isMisuse } from "../../src/app/complaints.ts";
import { openPrices } from "../../src/app/open-payment.ts";
import { readConfig } from "../../src/config/config.ts";
import { createClosers } from "../../src/lib/closers.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createMetrics } from "../../src/lib/metrics.ts";
import { defaultRules } from "../../src/payment/prices/price-rules.ts";
import { openTestPayment } from "../support/payment.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-rules-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Opens prices under a file of rules; feed and nodes say nothing. */
async function openWith(path: string) {
  const payment = await openTestPayment();
  const closers = createClosers((_name, error) => {
    throw error;
  });
  const { config } = readConfig({ PAYMENT_RULES_FILE: path, PRICE_FEED_URL: "http://127.0.0.1:1" }, "dev");
  try {
    const opened = openPrices(
      { config, log: silentLog, closers },
      {
        ledger: payment.database,
        metrics: createMetrics(),
        nodes: { ask: async () => ({ kind: "absent" }) },
      },
    );
    return { rules: opened.rules, notes: opened.check() };
  } finally {
    await closers.closeAll();
    await payment.close();
  }
}

const fileOf = (text: string): string => {
  const path = join(folder, `${Bun.hash(text)}.json`);
  writeFileSync(path, text);
  return path;
};

describe("PAYMENT_RULES_FILE", () => {
  test("accepts the example of the documentation", async () => {
    const page = readFileSync(resolve(import.meta.dir, "../../docs/price-rules.md"), "utf8");
    const { rules } = await openWith(fileOf(/```json\n([^`]+)```/.exec(page)?.[1] ?? ""));
    expect(rules.currencies.has("chf")).toBe(true);
    expect(rules.currencies.has("hkd")).toBe(false);
    expect(rules.currencies.get("usd")).toEqual(defaultRules.currencies.get("usd"));
    expect(rules.tokens.get("ethereum")).toEqual({ feedId: "ethereum", confirmations: 12n });
    expect(rules.fees.map(({ name }) => name)).toEqual(["Infrastructure fee"]);
    expect(rules.uploads[0]?.sizeMax).toBe(102_400n);
    expect(rules.promos[0]).toMatchObject({ code: "SPRING", group: "new", usesMax: 1_000n });
    expect(rules.promos[0]?.startsAt).toBe(BigInt(Date.UTC(2026, 2, 1)));
  });

  const faults: readonly (readonly [string, string])[] = [
    [fileOf('{"fees":[{}]}'), "missing field fees[0].name"],
    [fileOf("no JSON"), "invalid JSON"],
    [join(folder, "absent.json"), "ENOENT"],
    [folder, "EISDIR"],
    [fileOf(" ".repeat(8 * 2 ** 20 + 1)), "at most 8388608 are allowed"],
  ];
  test.each(faults)("%s ends the start", async (path, fault) => {
    const error = await openWith(path).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (!isMisuse(error)) throw error;
    expect(error.message).toStartWith("Bad settings:\n  PAYMENT_RULES_FILE: ");
    expect(error.message).toContain(fault);
  });
});

test("the health check lists unknown prices", async () => {
  const { notes } = await openWith(fileOf("{}"));
  expect(notes).toEqual(["The network's price is not known yet.", "The price feed is not known yet."]);
});
