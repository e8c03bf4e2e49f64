/**
 * What every bench shares: rounds that alternate with a reference in the same run, medians, and rows for the table.
 *
 * These machines are noisy, so the ratio is the result; absolute numbers are for orientation. A bench runs small in
 * the tests, so that it does not rot, and large in `bun run bench`.
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

/** How large a bench runs. */
export type BenchSize = "small" | "large";

/** A bench: measures and returns its rows; throws when the measured work gave a wrong result. */
export type Bench = Readonly<{ name: string; measure: (size: BenchSize) => Promise<readonly BenchRow[]> }>;

/** The middle of some numbers. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** What one round did: how many units of work, and a digest on which all rounds must agree. */
export type Outcome = Readonly<{ amount: number; digest: string }>;

/** Work that can be repeated. */
export type Work = () => Outcome | Promise<Outcome>;

/**
 * Runs two works alternately, A B A B …, after one uncounted round of each.
 *
 * @returns Medians of units a second, and of the ratio round by round.
 * @throws Error when a work's rounds do not agree on their digest.
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
  if (digests.size !== 1) throw new Error("the rounds do not agree on what they computed");
  return {
    rate: median(pairs.map(({ rate }) => rate)),
    against: median(pairs.map(({ against }) => against)),
    ratio: median(pairs.map(({ rate, against }) => rate / against)),
  };
}

/** Units a second of one run. */
export async function timed(work: Work): Promise<Readonly<{ rate: number; digest: string; seconds: number }>> {
  const start = Bun.nanoseconds();
  const { amount, digest } = await work();
  const seconds = (Bun.nanoseconds() - start) / 1e9;
  return { rate: amount / seconds, digest, seconds };
}

/** A rate for people: 12.3 k/s. */
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
