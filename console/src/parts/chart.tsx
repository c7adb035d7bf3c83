/** A small chart of a number over time. The numbers stand in a table beside it, which readers of the screen get. */
import { useEffect, useRef } from "preact/hooks";
import { localTime } from "../format";

export interface Point {
  ms: number;
  value: number;
}

export function Chart({
  title,
  points,
  format,
}: {
  title: string;
  points: readonly Point[];
  format: (value: number) => string;
}) {
  const box = useRef<HTMLDivElement>(null);
  const last = points.at(-1);
  useEffect(() => {
    let left = false;
    let destroy = () => {};
    void import("./plot").then(({ plot }) => {
      if (!left && box.current) destroy = plot(box.current, points, format);
    });
    return () => {
      left = true;
      destroy();
    };
  }, [points]);
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
