/** Places the nodes and edges of a lineage graph by dagre, in a part of the console that is loaded with the first graph. */
import { Graph, layout } from "@dagrejs/dagre";
import { type LineageEdge, type LineageNode, labelOf } from "../lineage-graph";

export interface PlacedNode {
  node: LineageNode;
  label: string;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface PlacedEdge {
  key: string;
  path: string;
  /** The arrow head at the end of the path. */
  head: string;
  verified: boolean;
}

export interface Layout {
  width: number;
  height: number;
  nodes: PlacedNode[];
  edges: PlacedEdge[];
}

const NODE_HEIGHT = 36;
const LETTER_WIDTH = 8;
const MAX_LETTERS = 32;
const MARGIN = 12;

/** Returns where each node and edge is, from left to right. An edge without an origin is left out. */
export function layoutOf(nodes: readonly LineageNode[], edges: readonly LineageEdge[]): Layout {
  const graph = new Graph({ multigraph: false });
  graph.setGraph({ rankdir: "LR", nodesep: 16, ranksep: 56, marginx: MARGIN, marginy: MARGIN });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) {
    const label = shortened(labelOf(node));
    graph.setNode(node.id, { width: label.length * LETTER_WIDTH + 28, height: NODE_HEIGHT });
  }
  const proofs = new Map<string, boolean>();
  for (const { from, to, confidence } of edges) {
    if (from === null) continue;
    const key = `${from}/${to}`;
    proofs.set(key, proofs.get(key) === true || confidence === "Verified");
    graph.setEdge(from, to);
  }
  layout(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return {
    width: Math.ceil(width),
    height: Math.ceil(height),
    nodes: nodes.map((node) => placed(node, graph.node(node.id) as Required<Point> & Size)),
    edges: graph.edges().map((edge) => {
      const key = `${edge.v}/${edge.w}`;
      const { points } = graph.edge(edge) as { points: Point[] };
      return { key, path: pathOf(points), head: headOf(points), verified: proofs.get(key) ?? false };
    }),
  };
}

interface Point {
  x: number;
  y: number;
}

interface Size {
  width: number;
  height: number;
}

function placed(node: LineageNode, { x, y, width, height }: Point & Size): PlacedNode {
  return { node, label: shortened(labelOf(node)), x: x - width / 2, y: y - height / 2, width, height };
}

function shortened(label: string): string {
  const letters = [...label];
  return letters.length <= MAX_LETTERS ? label : `${letters.slice(0, MAX_LETTERS - 1).join("")}…`;
}

function pathOf(points: readonly Point[]): string {
  return points.map(({ x, y }, at) => `${at === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
}

const ARROW_LENGTH = 7;

function headOf(points: readonly Point[]): string {
  const end = points.at(-1);
  const before = points.at(-2);
  if (!end || !before) return "";
  const length = Math.hypot(end.x - before.x, end.y - before.y) || 1;
  const along = { x: ((end.x - before.x) / length) * ARROW_LENGTH, y: ((end.y - before.y) / length) * ARROW_LENGTH };
  const back = { x: end.x - along.x, y: end.y - along.y };
  const corners = [-0.5, 0.5].map((side) => ({ x: back.x + side * along.y, y: back.y - side * along.x }));
  return `${pathOf([end, ...corners])}Z`;
}
