/**
 * A line chart with a readout that follows the pointer and the arrow keys.
 * @module
 */
import { type KeyboardEvent, type PointerEvent, useState } from "react";
import type { HistoryRange } from "../../src/lib/metrics-history.ts";

/** One line of a chart. */
export type Series = Readonly<{ metric: string; label: string }>;

export type LineChartProps = Readonly<{
  title: string;
  series: readonly Series[];
  range: HistoryRange;
  /** A value with its unit. */
  write: (value: number) => string;
}>;

const width = 600;
const height = 150;

export function LineChart({ title, series, range, write }: LineChartProps) {
  const [chosen, setChosen] = useState<number>();
  const lines = series.map(({ metric, label }) => ({ label, values: range.values[metric] ?? [] }));
  const count = Math.max(0, ...lines.map(({ values }) => values.length));
  const at = Math.min(chosen ?? count - 1, count - 1);
  const top = Math.max(...lines.flatMap(({ values }) => values).map((value) => value ?? 0), 0);
  const shown = (value: number | null | undefined) => (value === null || value === undefined ? "–" : write(value));
  const readout = lines.map(({ label, values }) => `${label} ${shown(values[at])}`).join(", ");

  const follow = (event: PointerEvent<SVGSVGElement>) => {
    const { left, width: shownWidth } = event.currentTarget.getBoundingClientRect();
    setChosen(Math.round(Math.max(0, Math.min(1, (event.clientX - left) / shownWidth)) * (count - 1)));
  };
  const step = ({ key, preventDefault }: Pick<KeyboardEvent, "key" | "preventDefault">) => {
    const steps: Readonly<Record<string, number>> = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: count - 1 };
    const next = steps[key];
    if (next === undefined) return;
    preventDefault();
    setChosen(Math.max(0, Math.min(count - 1, next)));
  };

  return (
    <section className="chart" aria-label={title}>
      <h3>{title}</h3>
      {count < 2 ? (
        <p className="empty">Nothing yet: the first values come within {2 * range.stepSeconds} s of the start.</p>
      ) : (
        <>
          <p className="legend">
            <time>{timeText(range, count, at)}</time>
            {lines.map(({ label, values }, index) => (
              <span key={label} className={`line${index}`}>
                {label} <b>{shown(values[at])}</b>
              </span>
            ))}
          </p>
          <div
            className="plot"
            role="slider"
            tabIndex={0}
            aria-label={`${title}, time`}
            aria-valuemin={0}
            aria-valuemax={count - 1}
            aria-valuenow={at}
            aria-valuetext={`${timeText(range, count, at)}: ${readout}`}
            onKeyDown={(event) => step({ key: event.key, preventDefault: () => event.preventDefault() })}
          >
            <svg
              viewBox={`0 0 ${width} ${height}`}
              preserveAspectRatio="none"
              aria-hidden="true"
              onPointerMove={follow}
              onPointerLeave={() => setChosen(undefined)}
            >
              <path className="grid" d={`M0 ${height}H${width}M0 ${height / 2}H${width}M0 0H${width}`} />
              <path className="cursor" d={`M${xOf(at, count)} 0V${height}`} />
              {lines.map(({ label, values }, index) => (
                <path key={label} className={`line${index}`} d={pathOf(values, count, top)} />
              ))}
            </svg>
            <span className="top">{write(top)}</span>
          </div>
        </>
      )}
    </section>
  );
}

function xOf(at: number, count: number): number {
  return count < 2 ? 0 : Math.round((at / (count - 1)) * width * 10) / 10;
}

/** The line of the values; it is interrupted where a value is not known. */
function pathOf(values: readonly (number | null)[], count: number, top: number): string {
  let path = "";
  let isDrawn = false;
  for (const [at, value] of values.entries()) {
    if (value === null) {
      isDrawn = false;
      continue;
    }
    const y = top === 0 ? height : Math.round((1 - value / top) * height * 10) / 10;
    // A line of one point has a length of 0 and round ends, which show it.
    path += `${isDrawn ? "L" : "M"}${xOf(at, count)} ${y}${isDrawn ? "" : "h0"}`;
    isDrawn = true;
  }
  return path;
}

function timeText({ endsAt, stepSeconds }: HistoryRange, count: number, at: number): string {
  const time = new Date((endsAt ?? 0) - (count - 1 - at) * stepSeconds * 1_000);
  return time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}
