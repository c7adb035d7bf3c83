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
      <Fields of={of.fields} />
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

function Line({ mark, children }: { mark: "added" | "dropped" | "changed"; children: ComponentChildren }) {
  return (
    <li class={mark}>
      <span class="mark">{mark}</span> {children}
    </li>
  );
}

function Lines({ title, lines }: { title: string; lines: ComponentChildren[] }) {
  if (lines.length === 0) return null;
  return (
    <Section title={title}>
      <ul class="lines diff">{lines}</ul>
    </Section>
  );
}

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
    ...of.added.map((each) => (
      <Line key={`+${each.id}`} mark="added">
        {shown(each)}
      </Line>
    )),
    ...of.dropped.map((each) => (
      <Line key={`-${each.id}`} mark="dropped">
        {shown(each)}
      </Line>
    )),
    ...of.changed.map(({ id, from, to, differs }) => (
      <Line key={id} mark="changed">
        {shown(from)} → {shown(to)} <span class="faint">({differs.join(", ")})</span>
      </Line>
    )),
  ];
  return <Lines title="Columns" lines={lines} />;
}

function Specs({ title, of, none }: { title: string; of: Numbered; none: string }) {
  const shown = ({ id, fields }: { id: number; fields: string[] }) => `${id}: ${fields.join(", ") || none}`;
  const lines = [
    ...of.added.map((each) => (
      <Line key={`+${each.id}`} mark="added">
        <code>{shown(each)}</code>
      </Line>
    )),
    ...of.dropped.map((each) => (
      <Line key={`-${each.id}`} mark="dropped">
        <code>{shown(each)}</code>
      </Line>
    )),
    ...(of.default
      ? [
          <Line key="default" mark="changed">
            current: {of.default.from} → {of.default.to}
          </Line>,
        ]
      : []),
  ];
  return <Lines title={title} lines={lines} />;
}

function NamedChanges({ title, of }: { title: string; of: Named<unknown> }) {
  const lines = [
    ...Object.entries(of.added).map(([name, value]) => (
      <Line key={`+${name}`} mark="added">
        <bdi>{name}</bdi> = <bdi>{textOf(value)}</bdi>
      </Line>
    )),
    ...Object.entries(of.dropped).map(([name, value]) => (
      <Line key={`-${name}`} mark="dropped">
        <bdi>{name}</bdi> = <bdi>{textOf(value)}</bdi>
      </Line>
    )),
    ...Object.entries(of.changed).map(([name, { from, to }]) => (
      <Line key={name} mark="changed">
        <bdi>{name}</bdi>: <bdi>{textOf(from)}</bdi> → <bdi>{textOf(to)}</bdi>
      </Line>
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

function Fields({ of }: { of: Record<string, Changed<unknown>> }) {
  const lines = Object.entries(of).map(([name, { from, to }]) => (
    <Line key={name} mark="changed">
      {name}: <bdi>{textOf(from)}</bdi> → <bdi>{textOf(to)}</bdi>
    </Line>
  ));
  return <Lines title="Metadata" lines={lines} />;
}

const RELATIONS: Record<string, string> = {
  equal: "Both have the snapshot of the other.",
  ahead: "The second was made from the first.",
  behind: "The first was made from the second: it was rolled back.",
  diverged: "Each has snapshots that the other has not.",
  unknown: "How they are related is not known: snapshots between them have expired.",
};

function SnapshotChanges({ of }: { of: NonNullable<Comparison["snapshots"]> }) {
  const lines = [
    ...of.added.map((each) => (
      <Line key={`+${each["snapshot-id"]}`} mark="added">
        <code>{String(each["snapshot-id"])}</code> {each.operation} <Time ms={each["timestamp-ms"]} />
      </Line>
    )),
    ...of.dropped.map((each) => (
      <Line key={`-${each["snapshot-id"]}`} mark="dropped">
        <code>{String(each["snapshot-id"])}</code>
      </Line>
    )),
  ];
  if (lines.length === 0) return null;
  return (
    <Section title="Snapshots" aside={<span class="faint">{RELATIONS[of.relation]}</span>}>
      <ul class="lines diff">{lines}</ul>
    </Section>
  );
}
