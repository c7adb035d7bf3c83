/** Draws a chart by uPlot, in a part of the console that is loaded with the first chart. */
import uPlot from "uplot";
import { localTime } from "../format";
import type { Point } from "./chart";

const HEIGHT = 120;

const DAY_MS = 86_400_000;

/** A time on an axis: the day, or the time of day where the axis is not longer than that. */
function labelOf(ms: number, spanMs: number): string {
  return spanMs > DAY_MS ? localTime(ms).slice(0, 10) : localTime(ms).slice(11);
}

/** Draws into an element that has a width, follows that width, and returns what removes the chart. */
export function plot(box: HTMLElement, points: readonly Point[], format: (value: number) => string): () => void {
  const colours = getComputedStyle(box);
  const line = colours.getPropertyValue("--accent");
  const text = colours.getPropertyValue("--faint");
  const span = (points.at(-1)?.ms ?? 0) - (points[0]?.ms ?? 0);
  const grid = { stroke: colours.getPropertyValue("--line"), width: 1 };
  const axis = { stroke: text, grid, ticks: { show: false }, font: "11px system-ui" };
  const chart = new uPlot(
    {
      width: box.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      scales: { y: { range: (_, min, max) => [Math.min(0, min), max > 0 ? max * 1.1 : 1] } },
      series: [{}, { stroke: line, width: 2, fill: `${line}22`, points: { show: points.length < 40, size: 5 } }],
      axes: [
        { ...axis, size: 24, space: 96, values: (_, values) => values.map((at) => labelOf(at * 1000, span)) },
        { ...axis, size: 64, space: 34, values: (_, values) => values.map(format) },
      ],
    },
    [points.map(({ ms }) => ms / 1000), points.map(({ value }) => value)],
    box,
  );
  const resizing = new ResizeObserver(() => chart.setSize({ width: box.clientWidth, height: HEIGHT }));
  resizing.observe(box);
  return () => {
    resizing.disconnect();
    chart.destroy();
  };
}
