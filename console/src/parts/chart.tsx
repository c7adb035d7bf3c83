/** A small chart of a number over time. The numbers stand in a table beside it, which readers of the screen get. */
import { useEffect, useRef } from "preact/hooks";
import { localTime } from "../format";
import type { plot } from "./plot";

/** Draws a chart, from the file of the console with the library for it. */
export type Plot = typeof plot;

export interface Point {
  ms: number;
  value: number;
}

export function Chart({
  title,
  points,
  format,
  plot,
}: {
  title: string;
  points: readonly Point[];
  format: (value: number) => string;
  plot: Plot | null;
}) {
  const box = useRef<HTMLDivElement>(null);
  const last = points.at(-1);
  useEffect(() => (plot && box.current ? plot(box.current, points, format) : undefined), [plot, points]);
  if (!last) return null;
  return (
    <figure class="chart">
      <figcaption>
        {title} <strong>{format(last.value)}</strong>
      </figcaption>
      <div
        class="plot"
        ref={box}
        role="img"
        aria-label={`${title}: ${format(last.value)} at ${localTime(last.ms)}, of ${points.length} snapshots`}
      />
    </figure>
  );
}
