import { read } from "../api";
import { type LineageEdge, type LineageNode, labelOf } from "../lineage-graph";
import { loadPart, useLoad } from "../load";
import { pages } from "../names";
import { Chip, DataTable, Empty, Form, Loaded, Section, Time } from "../parts/basics";
import type { Layout } from "../parts/graph-layout";
import { navigate } from "../router";
import { type Entity, entityPage, entityPath } from "./table-pages";

interface Graph {
  root: string;
  nodes: LineageNode[];
  edges: LineageEdge[];
  "cut-off": string[];
  searched: { days: string[]; events: number };
  notes: string[];
}

/** From what a table was made, and what was made from it, as a graph and as a table. */
export function Lineage({ entity, direction, depth }: { entity: Entity; direction: string; depth: string }) {
  const path = entityPath(entity, "lineage");
  const loaded = useLoad(
    (signal) => read<Graph>(path, { query: { direction, depth }, signal }),
    [path, direction, depth],
  );
  const choose = (data: FormData) => {
    const query = { direction: String(data.get("direction")), depth: String(data.get("depth")) };
    navigate(entityPage(entity, ["lineage"], query));
  };
  return (
    <>
      <Form class="row" aria-label="Choose the part of the graph" onSend={choose}>
        <Choice label="Direction" name="direction" value={direction} options={["both", "upstream", "downstream"]} />
        <Choice label="Steps" name="depth" value={depth} options={["1", "2", "3", "4", "5"]} />
        <button type="submit">Show</button>
      </Form>
      <Loaded of={loaded}>
        {(graph) => (
          <>
            {graph.edges.length === 0 ? (
              <Empty>
                No run that read or wrote this was reported. Spark reports its runs by OpenLineage's listener, and the
                pipeline by its receipts.
              </Empty>
            ) : (
              <>
                <Drawing catalog={entity.catalog.name} graph={graph} />
                <EdgeTable catalog={entity.catalog.name} graph={graph} />
              </>
            )}
            {graph["cut-off"].length > 0 && (
              <p class="notice">The graph is cut off: it has reached the limit of {graph["cut-off"].join(" and ")}.</p>
            )}
            {graph.notes.map((note) => (
              <p key={note} class="note faint">
                {note}
              </p>
            ))}
          </>
        )}
      </Loaded>
    </>
  );
}

function Choice({ label, name, value, options }: { label: string; name: string; value: string; options: string[] }) {
  return (
    <label>
      {label}
      <select name={name}>
        {options.map((each) => (
          <option key={each} value={each} selected={each === value}>
            {each}
          </option>
        ))}
      </select>
    </label>
  );
}

function targetOf(catalog: string, { type, namespace, name }: LineageNode): string | undefined {
  if ((type !== "table" && type !== "view") || namespace === null || name === null) return undefined;
  return pages.entity(catalog, type === "table" ? "t" : "v", namespace, name, ["lineage"]);
}

function Drawing({ catalog, graph }: { catalog: string; graph: Graph }) {
  const loaded = useLoad(async () => {
    const { layoutOf } = await loadPart(import("../parts/graph-layout"));
    return layoutOf(graph.nodes, graph.edges);
  }, [graph]);
  return <Loaded of={loaded}>{(layout) => <Picture catalog={catalog} graph={graph} layout={layout} />}</Loaded>;
}

function Picture({ catalog, graph, layout }: { catalog: string; graph: Graph; layout: Layout }) {
  return (
    <div class="graph" tabIndex={0} role="region" aria-label="Graph of the lineage">
      <svg
        viewBox={`0 0 ${layout.width} ${layout.height}`}
        width={layout.width}
        height={layout.height}
        role="group"
        aria-label="From left to right: from what, to what"
      >
        {layout.edges.map((edge) => (
          <g key={edge.key} class={edge.verified ? "edge verified" : "edge"}>
            <path d={edge.path} />
            <path class="head" d={edge.head} />
          </g>
        ))}
        {layout.nodes.map(({ node, x, y, width, height, label }) => (
          <NodeBox
            key={node.id}
            kind={node.id === graph.root ? "root" : node.type}
            target={targetOf(catalog, node)}
            label={label}
            title={labelOf(node)}
            box={{ x, y, width, height }}
          />
        ))}
      </svg>
      <p class="faint">
        <span class="key verified" /> verified by the catalog <span class="key" /> declared by a client, not verified
      </p>
    </div>
  );
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

function NodeBox({
  kind,
  target,
  label,
  title,
  box,
}: {
  kind: string;
  target: string | undefined;
  label: string;
  title: string;
  box: Box;
}) {
  const shape = (
    <g class={`node ${kind}`}>
      <title>{title}</title>
      <rect {...box} rx="6" />
      <text x={box.x + box.width / 2} y={box.y + box.height / 2} text-anchor="middle" dominant-baseline="central">
        {label}
      </text>
    </g>
  );
  return target ? <a href={target}>{shape}</a> : shape;
}

function EdgeTable({ catalog, graph }: { catalog: string; graph: Graph }) {
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]));
  const named = (id: string | null) => {
    const node = id === null ? undefined : nodes.get(id);
    if (!node) return <span class="faint">not known</span>;
    const target = targetOf(catalog, node);
    const shown = <bdi>{labelOf(node)}</bdi>;
    return target ? <a href={target}>{shown}</a> : shown;
  };
  return (
    <Section title="Runs">
      <DataTable label="Runs" columns={["From", "To", "Proof", "Job", "Who", "Time"]}>
        {graph.edges.map((edge) => (
          <tr key={`${edge.from}/${edge.to}/${edge["run-id"]}`}>
            <td>{named(edge.from)}</td>
            <td>{named(edge.to)}</td>
            <td>
              {edge.confidence === "Verified" ? <Chip kind="good">verified</Chip> : <Chip kind="warn">declared</Chip>}
            </td>
            <td>
              <bdi>{edge.job?.name}</bdi>
            </td>
            <td>
              <bdi>{edge.principal}</bdi>
            </td>
            <td>{edge["at-ms"] !== null && <Time ms={edge["at-ms"]} />}</td>
          </tr>
        ))}
      </DataTable>
    </Section>
  );
}
