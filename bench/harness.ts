/**
 * Shared parts of the benches: rounds that alternate with a reference in the same run, medians, and rows of the table.
 *
 * The machines are noisy, so the ratio is the result; absolute numbers are only for orientation. The tests run each
 * bench in small, so that it stays valid; `bun run bench` runs it in large.
 * @module
 */

/** One line of the table. */
export type BenchRow = Readonly<{
  name: string;
  /** The measured value with its unit. */
  metric: string;
  /** The reference of the same run, with its value. */
  reference?: string;
  /** Value divided by reference. */
  ratio?: number;
  /** The target. */
  target?: string;
}>;

export type BenchSize = "small" | "large";

/** A bench: measures and returns its rows; throws when the measured work gave a wrong result. */
export type Bench = Readonly<{
  name: string;
  /** @param given - `items`: another number of items, for benches that can. */
  measure: (size: BenchSize, given?: Readonly<{ items: number | undefined }>) => Promise<readonly BenchRow[]>;
}>;

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** The least value that a share of all values does not exceed (nearest rank). @param values - One or more. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN;
}

/** The result of a round: units of work, and a digest that must be equal in all rounds. */
export type Outcome = Readonly<{ amount: number; digest: string }>;

export type Work = () => Outcome | Promise<Outcome>;

/**
 * Runs work and reference alternately, after one uncounted round of each.
 *
 * @returns Medians of units per second, and of the ratio of each round.
 * @throws Error when the digests of the rounds differ.
 */
export async function inOrder(work: Work, reference: Work, rounds: number) {
  await work();
  await reference();
  const pairs: { rate: number; against: number }[] = [];
  const digests = new Set<string>();
  for (let round = 0; round < rounds; round += 1) {
    const mine = await timed(work);
    const theirs = await timed(reference);
    digests.add(mine.digest);
    pairs.push({ rate: mine.rate, against: theirs.rate });
  }
  if (digests.size !== 1) throw new Error("the results of the rounds differ");
  return {
    rate: median(pairs.map(({ rate }) => rate)),
    against: median(pairs.map(({ against }) => against)),
    ratio: median(pairs.map(({ rate, against }) => rate / against)),
  };
}

/** Runs work once, and measures its units per second. */
export async function timed(work: Work): Promise<Readonly<{ rate: number; digest: string; seconds: number }>> {
  const start = Bun.nanoseconds();
  const { amount, digest } = await work();
  const seconds = (Bun.nanoseconds() - start) / 1e9;
  return { rate: amount / seconds, digest, seconds };
}

/** A rate as text: 12.3 k/s. */
export function perSecond(rate: number, unit: string): string {
  if (rate >= 1e6) return `${(rate / 1e6).toFixed(2)} M ${unit}/s`;
  if (rate >= 1e3) return `${(rate / 1e3).toFixed(1)} k ${unit}/s`;
  return `${rate.toFixed(1)} ${unit}/s`;
}

/** The rows as a Markdown table. */
export function table(rows: readonly BenchRow[]): string {
  const cells = rows.map((row) => [
    row.name,
    row.metric,
    row.reference ?? "",
    row.ratio === undefined ? "" : row.ratio.toFixed(2),
    row.target ?? "",
  ]);
  const head = ["what", "value", "reference", "ratio", "target"];
  const widths = head.map((title, column) => Math.max(title.length, ...cells.map((cell) => cell[column]?.length ?? 0)));
  const line = (parts: readonly string[]) =>
    `| ${parts.map((part, column) => part.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...cells.map(line)].join("\n");
}
