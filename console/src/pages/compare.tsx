import type { ComponentChildren } from "preact";
import { read } from "../api";
import { bytes, count } from "../format";
import type { Long } from "../json";
import { useLoad } from "../load";
import { Code, DataTable, Empty, Loaded, Section, Time } from "../parts/basics";
import { type Entity, entityPage, entityPath } from "./table-pages";

interface Changed<T> {
  from: T;
  to: T;
}

interface Column {
  id: number;
  name: string;
  type: string;
  required: boolean;
  doc: string | null;
}

/** Things by their names that were added, dropped or changed. */
interface Named<T> {
  added: Record<string, T>;
  dropped: Record<string, T>;
  changed: Record<string, Changed<T>>;
}

interface Numbered {
  default: Changed<number> | null;
  added: { id: number; fields: string[] }[];
  dropped: { id: number; fields: string[] }[];
}

interface Side {
  version: number | null;
  id: string;
  "at-ms": number;
}

interface Comparison {
  from: Side;
  to: Side;
  equal: boolean;
  fields: Record<string, Changed<unknown>>;
  schema: { added: Column[]; dropped: Column[]; changed: (Changed<Column> & { id: number; differs: string[] })[] };
  properties: Named<string>;
  "partition-specs"?: Numbered;
  "sort-orders"?: Numbered;
  refs?: Named<unknown>;
  size?: Record<string, Changed<number | null>>;
  snapshots?: {
    added: { "snapshot-id": Long; "timestamp-ms": number; operation: string | null }[];
    dropped: { "snapshot-id": Long }[];
    relation: string;
  };
  representations?: Named<string>;
}

/** What changed between two versions of a table or view. */
export function ComparePage({ entity, from, to }: { entity: Entity; from: string; to: string }) {
  const path = entityPath(entity, "compare");
  const loaded = useLoad(
    (signal) => read<Comparison>(path, { query: { from, to: to || null }, signal }),
    [path, from, to],
  );
  return (
    <Loaded of={loaded}>
      {(found) => (
        <>
          <div class="sides">
            <SideOf title="From" side={found.from} />
            <SideOf title="To" side={found.to} />
            <p>
              <a href={entityPage(entity, ["compare"], { from: found.to.id, to: found.from.id })}>
                The other way round
              </a>{" "}
              <a href={entityPage(entity, ["timeline"])}>All versions</a>
            </p>
          </div>
          {found.equal ? <Empty>These two versions are equal.</Empty> : <Differences of={found} />}
        </>
      )}
    </Loaded>
  );
}

function SideOf({ title, side }: { title: string; side: Side }) {
  return (
    <p>
      <span class="kind">{title}</span> version {side.version ?? "without a number"}, <Time ms={side["at-ms"]} />
    </p>
  );
}

function Differences({ of }: { of: Comparison }) {
  return (
    <>
      <Sizes of={of.size ?? {}} />
      <Columns of={of.schema} />
      {of["partition-specs"] && <Specs title="Partition specs" of={of["partition-specs"]} none="not partitioned" />}
      {of["sort-orders"] && <Specs title="Sort orders" of={of["sort-orders"]} none="not sorted" />}
      <NamedChanges title="Properties" of={of.properties} />
      {of.refs && <NamedChanges title="Branches and tags" of={of.refs} />}
      {of.representations && <Sql of={of.representations} />}
      <NamedChanges title="Metadata" of={{ added: {}, dropped: {}, changed: of.fields }} />
      {of.snapshots && <SnapshotChanges of={of.snapshots} />}
    </>
  );
}

function Sizes({ of }: { of: Record<string, Changed<number | null>> }) {
  const changed = Object.entries(of).filter(([, { from, to }]) => from !== to);
  if (changed.length === 0) return null;
  return (
    <Section title="Size">
      <DataTable label="Size" columns={["Of", ["From", "number"], ["To", "number"], ["Change", "number"]]}>
        {changed.map(([name, { from, to }]) => {
          const shown = name === "bytes" ? bytes : count;
          return (
            <tr key={name}>
              <th scope="row">{name.replaceAll("-", " ")}</th>
              <td class="number">{shown(from)}</td>
              <td class="number">{shown(to)}</td>
              <td class="number">{from === null || to === null ? "–" : difference(from, to, shown)}</td>
            </tr>
          );
        })}
      </DataTable>
    </Section>
  );
}

/** A difference with its sign. */
function difference(from: number, to: number, shown: (value: number) => string): string {
  return `${to < from ? "−" : "+"}${shown(Math.abs(to - from))}`;
}

type Mark = "added" | "dropped" | "changed";

/** A line for each of several things that have a mark, each of which has a key of its own. */
function marked<T>(
  mark: Mark,
  of: readonly T[],
  keyOf: (each: T) => string | number,
  shown: (each: T) => ComponentChildren,
): ComponentChildren[] {
  return of.map((each) => (
    <li key={`${mark} ${keyOf(each)}`} class={mark}>
      <span class="mark">{mark}</span> {shown(each)}
    </li>
  ));
}

function Lines({ title, aside, lines }: { title: string; aside?: ComponentChildren; lines: ComponentChildren[] }) {
  if (lines.length === 0) return null;
  return (
    <Section title={title} aside={aside}>
      <ul class="lines diff">{lines}</ul>
    </Section>
  );
}

const idOf = ({ id }: { id: number }) => id;

function Columns({ of }: { of: Comparison["schema"] }) {
  const shown = (column: Column) => (
    <>
      <bdi>{column.name}</bdi> <code>{column.type}</code> {column.required && "required"}{" "}
      <span class="faint">
        id {column.id} <bdi>{column.doc}</bdi>
      </span>
    </>
  );
  const lines = [
    ...marked("added", of.added, idOf, shown),
    ...marked("dropped", of.dropped, idOf, shown),
    ...marked("changed", of.changed, idOf, ({ from, to, differs }) => (
      <>
        {shown(from)} → {shown(to)} <span class="faint">({differs.join(", ")})</span>
      </>
    )),
  ];
  return <Lines title="Columns" lines={lines} />;
}

function Specs({ title, of, none }: { title: string; of: Numbered; none: string }) {
  const shown = ({ id, fields }: { id: number; fields: string[] }) => (
    <code>
      {id}: {fields.join(", ") || none}
    </code>
  );
  const current = of.default === null ? [] : [of.default];
  const lines = [
    ...marked("added", of.added, idOf, shown),
    ...marked("dropped", of.dropped, idOf, shown),
    ...marked(
      "changed",
      current,
      () => "current",
      ({ from, to }) => `current: ${from} → ${to}`,
    ),
  ];
  return <Lines title={title} lines={lines} />;
}

function NamedChanges({ title, of }: { title: string; of: Named<unknown> }) {
  const nameOf = ([name]: [string, unknown]) => name;
  const shown = ([name, value]: [string, unknown]) => (
    <>
      <bdi>{name}</bdi> = <bdi>{textOf(value)}</bdi>
    </>
  );
  const lines = [
    ...marked("added", Object.entries(of.added), nameOf, shown),
    ...marked("dropped", Object.entries(of.dropped), nameOf, shown),
    ...marked("changed", Object.entries(of.changed), nameOf, ([name, { from, to }]) => (
      <>
        <bdi>{name}</bdi>: <bdi>{textOf(from)}</bdi> → <bdi>{textOf(to)}</bdi>
      </>
    )),
  ];
  return <Lines title={title} lines={lines} />;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function Sql({ of }: { of: Named<string> }) {
  const changed = Object.entries(of.changed);
  const one = [...Object.entries(of.added), ...Object.entries(of.dropped)];
  if (changed.length + one.length === 0) return null;
  return (
    <Section title="SQL">
      {one.map(([dialect, sql]) => (
        <Code key={dialect} label={`SQL for ${dialect}, ${dialect in of.added ? "added" : "dropped"}`} text={sql} />
      ))}
      {changed.map(([dialect, { from, to }]) => (
        <div key={dialect} class="halves">
          <Code label={`SQL for ${dialect} before`} text={from} />
          <Code label={`SQL for ${dialect} after`} text={to} />
        </div>
      ))}
    </Section>
  );
}

const RELATIONS: Record<string, string> = {
  equal: "Both have the snapshot of the other.",
  ahead: "The second was made from the first.",
  behind: "The first was made from the second: it was rolled back.",
  diverged: "Each has snapshots that the other has not.",
  unknown: "How they are related is not known: snapshots between them have expired.",
};

function SnapshotChanges({ of }: { of: NonNullable<Comparison["snapshots"]> }) {
  const snapshotId = (each: { "snapshot-id": Long }) => String(each["snapshot-id"]);
  const lines = [
    ...marked("added", of.added, snapshotId, (each) => (
      <>
        <code>{snapshotId(each)}</code> {each.operation} <Time ms={each["timestamp-ms"]} />
      </>
    )),
    ...marked("dropped", of.dropped, snapshotId, (each) => <code>{snapshotId(each)}</code>),
  ];
  return <Lines title="Snapshots" aside={<span class="faint">{RELATIONS[of.relation]}</span>} lines={lines} />;
}
