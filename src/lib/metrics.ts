/**
 * Figures about the running program, in the Prometheus text format.
 *
 * Names are the peer's where it has them, so that operators' dashboards carry over.
 * @module
 */
import { readdirSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, Gauge, Histogram, Registry } from "prom-client";

/** What a figure is called and means. */
export type MetricRow<Label extends string> = Readonly<{
  name: string;
  help: string;
  labels?: readonly Label[];
}>;

/** A figure that is kept elsewhere and asked for when the figures are read. */
export type ReadRow = Readonly<{ name: string; help: string; read: () => number }>;

/** Such figures by the value of one label; the values must be few. */
export type ReadRows = Readonly<{
  name: string;
  help: string;
  label: string;
  /** With a promise, the figures wait for it; when it rejects, so do they. */
  read: () => Readonly<Record<string, number>> | Promise<Readonly<Record<string, number>>>;
}>;

/** A registry of its own: two programs in one process (tests) do not mix their figures. */
export type Metrics = Readonly<{
  /** A count that only grows. */
  counter: <Label extends string = never>(row: MetricRow<Label>) => Counter<Label>;
  /** A count that is kept elsewhere. */
  countOf: (row: ReadRow) => void;
  /** A figure that rises and falls. */
  gauge: <Label extends string = never>(row: MetricRow<Label>) => Gauge<Label>;
  /** A figure that rises and falls and is kept elsewhere. */
  gaugeOf: (row: ReadRow) => void;
  /** Such figures by the value of one label. */
  gaugesOf: (row: ReadRows) => void;
  /** How values spread over buckets; buckets are upper bounds, inclusive, ascending. */
  histogram: <Label extends string = never>(
    row: MetricRow<Label> & { buckets: readonly number[] },
  ) => Histogram<Label>;
  /** All figures as text. */
  text: () => Promise<string>;
}>;

/** Media type of `Metrics.text`. Source: contract.md §3. */
export const metricsContentType = "text/plain; version=0.0.4; charset=utf-8";

/** Creates an empty registry. */
export function createMetrics(): Metrics {
  const registers = [new Registry()];
  const [registry] = registers;
  return {
    counter: ({ name, help, labels }) =>
      new Counter({ name, help, labelNames: [...(labels ?? [])], registers }),
    countOf: ({ name, help, read }) => {
      new Counter({
        name,
        help,
        registers,
        collect() {
          this.reset();
          this.inc(read());
        },
      });
    },
    gauge: ({ name, help, labels }) => new Gauge({ name, help, labelNames: [...(labels ?? [])], registers }),
    gaugeOf: ({ name, help, read }) => {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read());
        },
      });
    },
    gaugesOf: ({ name, help, label, read }) => {
      new Gauge({
        name,
        help,
        labelNames: [label],
        registers,
        async collect() {
          const figures = await read();
          this.reset();
          for (const [value, figure] of Object.entries(figures)) this.set({ [label]: value }, figure);
        },
      });
    },
    histogram: ({ name, help, labels, buckets }) =>
      new Histogram({ name, help, labelNames: [...(labels ?? [])], buckets: [...buckets], registers }),
    text: async () => (registry === undefined ? "" : await registry.metrics()),
  };
}

/** Adds the figures of this process: CPU, memory, open files, start, delay of the event loop. */
export function addProcessFigures(metrics: Metrics): void {
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
    help: "Longest delay of the event loop since the figures were last read, in seconds.",
    read: () => delay.max / 1e9,
  });
  metrics.gaugeOf({
    name: "nodejs_eventloop_lag_p99_seconds",
    help: "99th percentile of the event loop's delay since the figures were last read, in seconds.",
    read: () => {
      const lag = delay.percentile(99) / 1e9;
      delay.reset();
      return lag;
    },
  });
}

/** Descriptors that are open; 0 on systems that do not tell. */
function openDescriptors(): number {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return 0; // Only Linux lists them.
  }
}
