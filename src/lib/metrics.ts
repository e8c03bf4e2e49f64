/**
 * Metrics in the Prometheus text format.
 *
 * Metrics that ar-io-node also has use its names, so dashboards carry over. A histogram looks up a series once; an
 * observation then costs a few additions, because every response is counted.
 * Source: Prometheus exposition format 0.0.4, "Histograms and summaries".
 * @module
 */
import { readdirSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, Gauge, Registry } from "prom-client";
import { yieldToEventLoop } from "./event-loop.ts";

/** Labels and their values; any other value is counted as {@link otherValue}. */
type LabelTable<Label extends string> = Readonly<Record<Label, readonly string[]>>;

/** Replaces values that the table of a label lacks. */
const otherValue = "other";

export type MetricRow<Label extends string> = Readonly<{
  name: string;
  help: string;
  labels?: LabelTable<Label>;
}>;

/** A metric whose value is read when the metrics are collected. */
export type ReadRow = Readonly<{ name: string; help: string; read: () => number }>;

/** Metrics by the value of one label, read when the metrics are collected. */
type ReadValues = Readonly<Record<string, number | bigint>>;

export type ReadRows = Readonly<{
  name: string;
  help: string;
  label: string;
  /** The values of the label; other values are added up as {@link otherValue}. */
  values: readonly string[];
  /** A rejected promise leaves the metric without values. A metric is a double: large amounts are rounded to it. */
  read: () => ReadValues | Promise<ReadValues>;
}>;

/** A counter; `inc` takes labels only if the metric has labels. */
type LabelledCounter<Label extends string> = Readonly<{
  inc: [Label] extends [never] ? (by?: number) => void : (labels: Readonly<Record<Label, string>>, by?: number) => void;
}>;

/**
 * A separate registry: two programs in one process (tests) do not mix their metrics. Labels have only values of their
 * tables, so clients cannot increase the number of series.
 */
export type Metrics = Readonly<{
  counter: <Label extends string = never>(row: MetricRow<Label>) => LabelledCounter<Label>;
  /** A counter whose value is read when the metrics are collected. */
  countOf: (row: ReadRow) => void;
  gauge: (row: MetricRow<never>) => Readonly<{ set: (value: number) => void }>;
  /** A gauge whose value is read when the metrics are collected. */
  gaugeOf: (row: ReadRow) => void;
  /** A gauge of value 1 whose labels have the information. */
  info: (row: Readonly<{ name: string; help: string; labels: Readonly<Record<string, string>> }>) => void;
  /** Gauges by the value of one label. */
  gaugesOf: (row: ReadRows) => void;
  /** A counter by several labels. The caller bounds the label values of its series. */
  counterSeries: <Label extends string>(row: CounterSeriesOptions<Label>) => CounterSeries<Label>;
  /** A histogram. The caller bounds the label values of its series. */
  histogram: <Label extends string = never>(row: HistogramOptions<Label>) => Histogram<Label>;
  /** All metrics as text, written in several iterations of the event loop. */
  text: () => Promise<string>;
}>;

/** Media type of `Metrics.text`. */
export const metricsContentType = "text/plain; version=0.0.4; charset=utf-8";

export function createMetrics(): Metrics {
  const registers = [new Registry()];
  const [registry] = registers;
  const ownFormats: Pick<Histogram<string>, "texts">[] = [];
  return {
    counter: <Label extends string>({ name, help, labels }: MetricRow<Label>) => {
      const counter = new Counter({ name, help, labelNames: Object.keys(labels ?? {}), registers });
      if (labels === undefined) return { inc: (by = 1) => counter.inc(by) } as LabelledCounter<Label>;
      const bounded = boundTo(labels);
      const inc = (given: Readonly<Record<Label, string>>, by = 1) => counter.inc(bounded(given), by);
      return { inc } as LabelledCounter<Label>;
    },
    countOf: ({ name, help, read }) => {
      new Counter({
        name,
        help,
        registers,
        collect() {
          this.reset();
          try {
            this.inc(read());
          } catch {
            this.remove(); // a metric that cannot be read has no value
          }
        },
      });
    },
    gauge: ({ name, help }) => {
      const gauge = new Gauge({ name, help, registers });
      return { set: (value) => gauge.set(value) };
    },
    gaugeOf: ({ name, help, read }) => {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          try {
            this.set(read());
          } catch {
            this.remove(); // as above
          }
        },
      });
    },
    info: ({ name, help, labels }) => {
      new Gauge({ name, help, labelNames: Object.keys(labels), registers }).set({ ...labels }, 1);
    },
    gaugesOf: ({ name, help, label, values, read }) => {
      const bounded = boundTo({ [label]: values });
      new Gauge({
        name,
        help,
        labelNames: [label],
        registers,
        async collect() {
          const stats = await readOrNothing(read);
          this.reset();
          for (const [value, metric] of Object.entries(stats)) this.inc(bounded({ [label]: value }), Number(metric));
        },
      });
    },
    counterSeries: (row) => {
      const counter = createCounterSeries(row);
      ownFormats.push(counter);
      return counter;
    },
    histogram: (row) => {
      const histogram = createHistogram(row);
      ownFormats.push(histogram);
      return histogram;
    },
    text: async () => {
      const others = registry === undefined ? "" : await registry.metrics();
      const texts = [others];
      for (const own of ownFormats) {
        texts.push("\n");
        for (const text of own.texts()) {
          texts.push(text);
          await yieldToEventLoop();
        }
      }
      return texts.join("");
    },
  };
}

function boundTo<Label extends string>(table: LabelTable<Label>) {
  const rows = Object.entries<readonly string[]>(table).map(([label, values]) => [label, new Set(values)] as const);
  return (given: Readonly<Record<Label, string>>): Record<string, string> => {
    const values: Readonly<Record<string, string>> = given;
    return Object.fromEntries(
      rows.map(([label, known]) => {
        const value = values[label] ?? otherValue;
        return [label, known.has(value) ? value : otherValue];
      }),
    );
  };
}

async function readOrNothing(read: ReadRows["read"]): Promise<ReadValues> {
  try {
    return await read();
  } catch {
    return {}; // a metric that cannot be read has no value
  }
}

/** Adds the metrics of the process: CPU, memory, open files, start time, delay of the event loop. */
export function addProcessMetrics(metrics: Metrics): void {
  const startedAt = Date.now() / 1_000 - process.uptime();
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  const seconds = (microseconds: number) => microseconds / 1e6;
  metrics.countOf({
    name: "process_cpu_user_seconds_total",
    help: "User CPU time spent, in seconds.",
    read: () => seconds(process.cpuUsage().user),
  });
  metrics.countOf({
    name: "process_cpu_system_seconds_total",
    help: "System CPU time spent, in seconds.",
    read: () => seconds(process.cpuUsage().system),
  });
  metrics.countOf({
    name: "process_cpu_seconds_total",
    help: "User and system CPU time spent, in seconds.",
    read: () => seconds(process.cpuUsage().user + process.cpuUsage().system),
  });
  metrics.gaugeOf({
    name: "process_start_time_seconds",
    help: "When the process started, in Unix seconds.",
    read: () => startedAt,
  });
  metrics.gaugeOf({
    name: "process_resident_memory_bytes",
    help: "Resident memory, in bytes.",
    read: () => process.memoryUsage.rss(),
  });
  metrics.gaugeOf({
    name: "process_open_fds",
    help: "Open file descriptors.",
    read: openDescriptors,
  });
  metrics.gaugeOf({
    name: "nodejs_eventloop_lag_max_seconds",
    help: "Longest delay of the event loop since the last scrape, in seconds.",
    read: () => delay.max / 1e9,
  });
  metrics.gaugeOf({
    name: "nodejs_eventloop_lag_p99_seconds",
    help: "99th percentile of the event loop's delay since the last scrape, in seconds.",
    read: () => {
      const lag = delay.percentile(99) / 1e9;
      delay.reset();
      return lag;
    },
  });
}

/** The number of open descriptors; 0 on systems that do not list them. */
function openDescriptors(): number {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return 0; // Only Linux lists them.
  }
}

/** One combination of label values. */
export type Series = Readonly<{ observe: (value: number) => void }>;

export type Histogram<Label extends string> = Readonly<{
  /** The series of label values, created at the first call. Callers bound the values and reuse the series. */
  series: (labels: Readonly<Record<Label, string>>) => Series;
  /** All series in the text format, in parts, so that the caller can yield to the event loop between them. */
  texts: () => Iterable<string>;
}>;

export type HistogramOptions<Label extends string> = Readonly<{
  name: string;
  help: string;
  labels: readonly Label[];
  /** Upper bounds, inclusive, ascending. */
  buckets: readonly number[];
}>;

/** Series of one text; writing them takes 0.2 ms. */
const seriesPerText = 50;

type Counts = { readonly labels: string; readonly buckets: number[]; sum: number };

export function createHistogram<Label extends string>(options: HistogramOptions<Label>): Histogram<Label> {
  const { name, help, labels, buckets } = options;
  const all = new Map<string, Counts & Series>();
  const create = (written: string): Counts & Series => {
    const counts: Counts = { labels: written, buckets: new Array(buckets.length + 1).fill(0), sum: 0 };
    return Object.assign(counts, {
      observe: (value: number) => {
        let at = 0;
        while (at < buckets.length && value > (buckets[at] ?? 0)) at += 1;
        counts.buckets[at] = (counts.buckets[at] ?? 0) + 1;
        counts.sum += value;
      },
    });
  };
  return {
    series: (values) => {
      const written = labelsText(labels, values);
      const found = all.get(written) ?? create(written);
      all.set(written, found);
      return found;
    },
    texts: function* () {
      let lines = [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`];
      let count = 0;
      for (const counts of all.values()) {
        writeSeries(lines, name, buckets, counts);
        count += 1;
        if (count % seriesPerText > 0) continue;
        yield `${lines.join("\n")}\n`;
        lines = [];
      }
      if (lines.length > 0) yield `${lines.join("\n")}\n`;
    },
  };
}

export type CounterSeriesOptions<Label extends string> = Readonly<{
  name: string;
  help: string;
  labels: readonly Label[];
}>;

export type CounterSeries<Label extends string> = Readonly<{
  /** The series of label values, created at the first call. Callers bound the values and reuse the series. */
  series: (labels: Readonly<Record<Label, string>>) => Readonly<{ add: (by: number) => void }>;
  /** All series in the text format; 0 without labels while there is none. */
  texts: () => Iterable<string>;
}>;

/** A counter whose series are looked up once, as those of a histogram. */
function createCounterSeries<Label extends string>(options: CounterSeriesOptions<Label>): CounterSeries<Label> {
  const { name, help, labels } = options;
  const all = new Map<string, { total: number; readonly add: (by: number) => void }>();
  const create = () => {
    const series = {
      total: 0,
      add: (by: number) => {
        series.total += by;
      },
    };
    return series;
  };
  return {
    series: (values) => {
      const written = labelsText(labels, values);
      const found = all.get(written) ?? create();
      all.set(written, found);
      return found;
    },
    texts: () => {
      const lines = [...all].map(([written, { total }]) => `${name}{${written}} ${total}\n`);
      if (lines.length === 0) lines.push(`${name} 0\n`);
      return [`# HELP ${name} ${help}\n# TYPE ${name} counter\n${lines.join("")}`];
    },
  };
}

function labelsText<Label extends string>(labels: readonly Label[], values: Readonly<Record<Label, string>>): string {
  return labels.map((label) => `${label}="${escaped(values[label])}"`).join(",");
}

function writeSeries(lines: string[], name: string, bounds: readonly number[], counts: Counts): void {
  const { labels } = counts;
  const more = labels === "" ? "" : `,${labels}`;
  const own = labels === "" ? "" : `{${labels}}`;
  let total = 0;
  for (const [at, count] of counts.buckets.entries()) {
    total += count;
    lines.push(`${name}_bucket{le="${bounds[at] ?? "+Inf"}"${more}} ${total}`);
  }
  lines.push(`${name}_sum${own} ${counts.sum}`, `${name}_count${own} ${total}`);
}

function escaped(value: string): string {
  return value.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n");
}
