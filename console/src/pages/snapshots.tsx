import { Component } from "preact";
import { useMemo, useState } from "preact/hooks";
import { loadTable, type Snapshot } from "../catalog";
import { bytes, count } from "../format";
import { loadPart, useLoad } from "../load";
import { joined } from "../names";
import { Chip, DataTable, Empty, Failure, Loaded, Section, Time } from "../parts/basics";
import { Chart, type Point } from "../parts/chart";
import { type Entity, entityPage } from "./table-pages";

/** The number of rows that are added at a time. */
const GROUP = 50;

/** The snapshots of a table, newest first, with their totals as charts. */
export function Snapshots({ entity }: { entity: Entity }) {
  const { catalog, namespace, name } = entity;
  const loaded = useLoad(
    (signal) => loadTable(catalog, namespace, name, "all", signal),
    [catalog, joined(namespace), name],
  );
  return (
    <Loaded of={loaded}>
      {({ metadata }) => {
        const snapshots = (metadata.snapshots ?? []).toSorted((a, b) => b["timestamp-ms"] - a["timestamp-ms"]);
        if (snapshots.length === 0) {
          return (
            <Empty>
              No snapshot yet. Write the first rows: <a href={entityPage(entity, ["connect"])}>how to connect</a>.
            </Empty>
          );
        }
        const refs = Object.entries(metadata.refs ?? {}).map(([ref, { "snapshot-id": id }]): [string, string] => [
          ref,
          String(id),
        ]);
        return (
          <>
            <Charts snapshots={snapshots} />
            <SnapshotTable snapshots={snapshots} refs={refs} />
          </>
        );
      }}
    </Loaded>
  );
}

function Charts({ snapshots }: { snapshots: Snapshot[] }) {
  const series = useMemo(
    () => ({
      rows: pointsOf(snapshots, "total-records"),
      files: pointsOf(snapshots, "total-data-files"),
      size: pointsOf(snapshots, "total-files-size"),
    }),
    [snapshots],
  );
  const loaded = useLoad(() => loadPart(import("../parts/plot")), []);
  const plot = loaded.state === "loaded" ? loaded.value.plot : null;
  return (
    <>
      <div class="charts">
        <Chart title="Rows" points={series.rows} format={whole} plot={plot} />
        <Chart title="Data files" points={series.files} format={whole} plot={plot} />
        <Chart title="Size" points={series.size} format={bytes} plot={plot} />
      </div>
      {loaded.state === "failed" && <Failure error={loaded.error} />}
    </>
  );
}

function whole(value: number): string {
  return count(Math.round(value));
}

/** Returns a total of the summaries over time, oldest first; snapshots whose summary lacks it are left out. */
export function pointsOf(snapshots: readonly Snapshot[], total: string): Point[] {
  return snapshots
    .flatMap(({ "timestamp-ms": ms, summary }) => {
      const value = Number(summary?.[total] ?? Number.NaN);
      return Number.isFinite(value) ? [{ ms, value }] : [];
    })
    .reverse();
}

function SnapshotTable({ snapshots, refs }: { snapshots: Snapshot[]; refs: [string, string][] }) {
  const [shown, setShown] = useState(1);
  const groups = useMemo(() => grouped(snapshots, GROUP), [snapshots]);
  return (
    <Section title="Snapshots" aside={<span class="faint">{count(snapshots.length)}</span>}>
      <DataTable
        label="Snapshots"
        columns={[
          "Snapshot",
          "Time",
          "Operation",
          ["Added rows", "number"],
          ["Deleted rows", "number"],
          ["Rows", "number"],
          ["Files", "number"],
          ["Size", "number"],
        ]}
      >
        {groups.slice(0, shown).map((group) => (
          <Rows key={String(group[0]?.["snapshot-id"])} snapshots={group} refs={refs} />
        ))}
      </DataTable>
      {shown < groups.length && (
        <button type="button" class="more" onClick={() => setShown(shown + 1)}>
          Show more
        </button>
      )}
    </Section>
  );
}

function grouped(snapshots: readonly Snapshot[], size: number): Snapshot[][] {
  const starts = Array.from({ length: Math.ceil(snapshots.length / size) }, (_, place) => place * size);
  return starts.map((start) => snapshots.slice(start, start + size));
}

/** Some rows of the table, which are not rendered again with each group that follows. */
class Rows extends Component<{ snapshots: Snapshot[]; refs: [string, string][] }> {
  override shouldComponentUpdate(next: { snapshots: Snapshot[] }) {
    return next.snapshots !== this.props.snapshots;
  }

  override render({ snapshots, refs }: { snapshots: Snapshot[]; refs: [string, string][] }) {
    const number = (snapshot: Snapshot, field: string) => count(snapshot.summary?.[field]);
    return (
      <>
        {snapshots.map((each) => (
          <tr key={String(each["snapshot-id"])}>
            <th scope="row">
              <code>{String(each["snapshot-id"])}</code>{" "}
              {refs
                .filter(([, id]) => id === String(each["snapshot-id"]))
                .map(([ref]) => (
                  <Chip key={ref} kind="accent">
                    {ref}
                  </Chip>
                ))}
            </th>
            <td>
              <Time ms={each["timestamp-ms"]} />
            </td>
            <td>{each.summary?.operation}</td>
            <td class="number">{number(each, "added-records")}</td>
            <td class="number">{number(each, "deleted-records")}</td>
            <td class="number">{number(each, "total-records")}</td>
            <td class="number">{number(each, "total-data-files")}</td>
            <td class="number">{bytes(each.summary?.["total-files-size"])}</td>
          </tr>
        ))}
      </>
    );
  }
}
