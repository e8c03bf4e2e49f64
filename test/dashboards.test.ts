/**
 * deploy/: the dashboard of Grafana and the alerts of Prometheus read metrics that the program serves, and the alerts
 * fire when they should, by Prometheus's own tool.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describeWith } from "./support/helpers.ts";
import { openUploadStack, type UploadStack } from "./support/upload-stack.ts";

const folder = resolve(import.meta.dir, "../deploy");
const alertsFile = join(folder, "alerts.yml");

type Panel = Readonly<{
  id: number;
  title: string;
  gridPos: Readonly<{ x: number; y: number; w: number; h: number }>;
  targets?: readonly Readonly<{ expr: string }>[];
}>;
const dashboard: Readonly<{ panels: readonly Panel[] }> = JSON.parse(
  readFileSync(join(folder, "grafana-dashboard.json"), "utf8"),
);
const queries = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
const alerts = readFileSync(alertsFile, "utf8");

/** Metrics that are there only when there is something to measure: payments in tokens, and a day of spending. */
const late = ["payment_token_watch_age_seconds", "upload_wallet_days_left"];
/** Of Prometheus itself. */
const others = ["up"];

/** The names of metrics in queries: what is neither a function nor a label. */
function metricsIn(text: string): Set<string> {
  const bare = text
    .replace(/"[^"]*"/g, "")
    .replace(/\{[^{}]*\}/g, " ")
    .replace(/\b(by|without) *\([^)]*\)/g, " ");
  const names = [...bare.matchAll(/\b([a-z][a-z0-9]*(?:_[a-z0-9]+)+|up)\b(?! *\()/g)].map(([, name]) => name ?? "");
  return new Set(names.map((name) => name.replace(/_(bucket|count|sum)$/, "")));
}

describe("the dashboard and the alerts", () => {
  let stack: UploadStack;
  let served: ReadonlySet<string>;
  beforeAll(async () => {
    stack = await openUploadStack();
    const text = await (await fetch(`${stack.content}/metrics`)).text();
    served = new Set([...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name ?? ""));
  }, 60_000);
  afterAll(() => stack.close());

  test("read only metrics that are served", () => {
    const alertQueries = [...alerts.matchAll(/expr: (?:>-)?([\s\S]*?)\n {8}(?:for|labels):/g)].map(
      ([, text]) => text ?? "",
    );
    expect(alertQueries).toHaveLength(12);
    const read = [...queries, ...alertQueries].flatMap((query) => [...metricsIn(query)]);
    expect(new Set(read).size).toBeGreaterThan(30);
    const known = new Set([...served, ...late, ...others]);
    expect([...new Set(read)].filter((name) => !known.has(name))).toEqual([]);
  });
});

test("the panels have numbers of their own, and do not overlap on the 24 columns", () => {
  const { panels } = dashboard;
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const taken = new Map<string, string>();
  for (const { title, gridPos } of panels) {
    expect([title, gridPos.x + gridPos.w <= 24]).toEqual([title, true]);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1)
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        expect([title, taken.get(`${x} ${y}`)]).toEqual([title, undefined]);
        taken.set(`${x} ${y}`, title);
      }
  }
});

const promtool = { there: Bun.which("promtool") !== null, what: "promtool (Debian's package prometheus)" };

describeWith(promtool, "promtool", () => {
  const work = mkdtempSync(join(tmpdir(), "cairn-alerts-"));
  afterAll(() => rmSync(work, { recursive: true }));
  const run = (...words: readonly string[]) => {
    const { exitCode, stdout, stderr } = Bun.spawnSync(["promtool", ...words], { timeout: 60_000 });
    return { exitCode, text: `${stdout}${stderr}` };
  };
  const write = (name: string, content: object) => {
    const file = join(work, name);
    // JSON is YAML too.
    writeFileSync(file, JSON.stringify(content));
    return file;
  };

  test("accepts the alerts, and every query of the dashboard", () => {
    expect(run("check", "rules", alertsFile)).toMatchObject({ exitCode: 0 });
    const rules = queries.map((expr, index) => ({
      record: `panel:${index}`,
      expr: expr.replaceAll("$instance", ".*"),
    }));
    const file = write("panels.yml", { groups: [{ name: "panels", rules }] });
    expect(run("check", "rules", file)).toMatchObject({ exitCode: 0 });
  });

  /** Series by minute, and whether the alert fires at that minute. */
  const cases: readonly (readonly [alert: string, series: string, values: string, minute: number, fires: boolean])[] = [
    ["CairnIsDown", 'up{job="cairn"}', "0x10", 3, true],
    ["CairnIsDown", 'up{job="cairn"}', "1x10", 3, false],
    ["CairnDoesNotFollow", "block_importer_running", "0x10", 6, true],
    ["CairnDoesNotFollow", "block_importer_running", "0x2 1x8", 6, false],
    ["CairnIsBehind", "chain_lag_blocks", "51x40", 31, true],
    ["CairnIsBehind", "chain_lag_blocks", "50x40", 31, false],
    ["CairnDiskFillsUp", 'disk_free_bytes{folder="data"}', "4e9x10", 6, true],
    ["CairnDiskFillsUp", 'disk_free_bytes{folder="data"}', "6e9x10", 6, false],
    ["CairnContentIsDamaged", "cache_damaged_total", "0x10 1x10", 15, true],
    ["CairnContentIsDamaged", "cache_damaged_total", "1x20", 15, false],
    ["CairnUploadsWait", 'upload_oldest_seconds{state="posted"}', "14401x10", 1, true],
    ["CairnUploadsWait", 'upload_oldest_seconds{state="posted"}', "14400x10", 1, false],
    ["CairnWalletRunsOut", "upload_wallet_days_left", "6.9x20", 11, true],
    ["CairnWalletRunsOut", "upload_wallet_days_left", "7x20", 11, false],
    ["CairnPricesAreOld", 'payment_price_age_seconds{source="feed"}', "3601x10", 1, true],
    ["CairnPricesAreOld", 'payment_price_age_seconds{source="feed"}', "3600x10", 1, false],
    ["CairnFails", 'http_request_duration_seconds_count{status_code="503"}', "0+60x40", 16, true],
    ["CairnFails", 'http_request_duration_seconds_count{status_code="404"}', "0+60x40", 16, false],
  ];

  test.each(cases)("%s of %s %s fires after %d minutes: %p", (alert, series, values, minute, fires) => {
    const file = write("test.yml", {
      rule_files: [alertsFile],
      evaluation_interval: "1m",
      tests: [
        {
          interval: "1m",
          input_series: [{ series, values }],
          promql_expr_test: [
            {
              expr: `count(ALERTS{alertname="${alert}",alertstate="firing"}) or vector(0)`,
              eval_time: `${minute}m`,
              exp_samples: [{ labels: "{}", value: fires ? 1 : 0 }],
            },
          ],
        },
      ],
    });
    expect(run("test", "rules", file)).toMatchObject({ exitCode: 0 });
  });
});
