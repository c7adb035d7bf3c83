import {
  currentSnapshot,
  loadTable,
  type PartitionField,
  type Schema,
  type SortField,
  type TableMetadata,
} from "../catalog";
import { bytes, count, plural } from "../format";
import { type Result, useLoad } from "../load";
import { joined } from "../names";
import { Chip, DataTable, Empty, Facts, Loaded, Section, Time } from "../parts/basics";
import { rowsOf } from "../schema";
import { type Governance, GovernanceFacts } from "./governance";
import { type Entity, entityPage, securableOf } from "./table-pages";

/** What a table is: its columns, how its rows are partitioned and sorted, its branches and its properties. */
export function TableOverview({ entity, governance }: { entity: Entity; governance: Result<Governance> }) {
  const { catalog, namespace, name } = entity;
  const loaded = useLoad(
    (signal) => loadTable(catalog, namespace, name, "refs", signal),
    [catalog, joined(namespace), name],
  );
  return (
    <>
      <Loaded of={loaded}>
        {({ metadata, "metadata-location": location }) => (
          <>
            <Summary metadata={metadata} location={location} />
            <Columns metadata={metadata} />
            <div class="halves">
              <Partitioning metadata={metadata} />
              <Sorting metadata={metadata} />
            </div>
            <Refs metadata={metadata} entity={entity} />
            <Properties properties={metadata.properties ?? {}} />
          </>
        )}
      </Loaded>
      <GovernanceFacts of={governance} catalog={catalog} on={securableOf(entity)} />
    </>
  );
}

function Summary({ metadata, location }: { metadata: TableMetadata; location: string }) {
  const current = currentSnapshot(metadata);
  const totals = current?.summary ?? {};
  return (
    <Facts
      of={[
        ["Last change", <Time key="time" ms={metadata["last-updated-ms"]} />],
        ["Rows", current ? count(totals["total-records"]) : "none yet"],
        ["Data files", current && count(totals["total-data-files"])],
        ["Size", current && bytes(totals["total-files-size"])],
        ["Format version", metadata["format-version"]],
        ["Location", <code key="location">{metadata.location}</code>],
        ["Metadata file", <code key="metadata">{location}</code>],
        ["Id", <code key="id">{metadata["table-uuid"]}</code>],
      ]}
    />
  );
}

function Columns({ metadata }: { metadata: TableMetadata }) {
  const schema = metadata.schemas.find((each) => each["schema-id"] === metadata["current-schema-id"]);
  const aside = `schema ${metadata["current-schema-id"]} of ${metadata.schemas.length}`;
  return (
    <Section title="Columns" aside={<span class="faint">{aside}</span>}>
      {schema && <SchemaTable schema={schema} />}
    </Section>
  );
}

/** The fields of a schema, also those inside of others. */
export function SchemaTable({ schema }: { schema: Schema }) {
  const identifying = new Set(schema["identifier-field-ids"] ?? []);
  return (
    <DataTable label="Columns" columns={[["Id", "number"], "Name", "Type", "Value", "Description"]}>
      {rowsOf(schema.fields).map((row) => (
        <tr key={row.id}>
          <td class="number faint">{row.id}</td>
          <th scope="row">
            {row.path.slice(0, -1).map((above) => (
              <span key={above} class="faint">
                <bdi>{above}</bdi>.
              </span>
            ))}
            <bdi>{row.path.at(-1)}</bdi> {identifying.has(row.id) && <Chip kind="accent">identifier</Chip>}
          </th>
          <td>
            <code>{row.type}</code>
          </td>
          <td>{row.required ? "required" : <span class="faint">optional</span>}</td>
          <td>
            <bdi>{row.doc}</bdi>
          </td>
        </tr>
      ))}
    </DataTable>
  );
}

/** Returns the name of a column by its id, for partition specs and sort orders. */
function namer(metadata: TableMetadata): (field: PartitionField | SortField) => string {
  const names = new Map(
    metadata.schemas.flatMap(({ fields }) => rowsOf(fields)).map((row) => [row.id, row.path.join(".")]),
  );
  return (field) => {
    const ids = field["source-ids"] ?? (field["source-id"] === undefined ? [] : [field["source-id"]]);
    return ids.map((id) => names.get(id) ?? `column ${id}`).join(", ");
  };
}

function transformed(transform: string, column: string): string {
  return transform === "identity" ? column : `${transform}(${column})`;
}

function Partitioning({ metadata }: { metadata: TableMetadata }) {
  const nameOf = namer(metadata);
  return (
    <Section title="Partition specs">
      <ul class="lines">
        {metadata["partition-specs"].map((spec) => (
          <li key={spec["spec-id"]}>
            <span class="faint">{spec["spec-id"]}</span>{" "}
            {spec.fields.length === 0 ? (
              "not partitioned"
            ) : (
              <code>{spec.fields.map((field) => transformed(field.transform, nameOf(field))).join(", ")}</code>
            )}{" "}
            {spec["spec-id"] === metadata["default-spec-id"] && <Chip kind="accent">current</Chip>}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Sorting({ metadata }: { metadata: TableMetadata }) {
  const nameOf = namer(metadata);
  const shown = (field: SortField) =>
    `${transformed(field.transform, nameOf(field))} ${field.direction} ${field["null-order"]}`;
  return (
    <Section title="Sort orders">
      <ul class="lines">
        {metadata["sort-orders"].map((order) => (
          <li key={order["order-id"]}>
            <span class="faint">{order["order-id"]}</span>{" "}
            {order.fields.length === 0 ? "not sorted" : <code>{order.fields.map(shown).join(", ")}</code>}{" "}
            {order["order-id"] === metadata["default-sort-order-id"] && <Chip kind="accent">current</Chip>}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Refs({ metadata, entity }: { metadata: TableMetadata; entity: Entity }) {
  const refs = Object.entries(metadata.refs ?? {});
  return (
    <Section title="Branches and tags" aside={<a href={entityPage(entity, ["snapshots"])}>All snapshots</a>}>
      {refs.length === 0 ? (
        <Empty>No snapshot yet: the first write makes the branch main.</Empty>
      ) : (
        <DataTable label="Branches and tags" columns={["Name", "Kind", "Snapshot", "Kept"]}>
          {refs.map(([ref, { "snapshot-id": id, type, ...kept }]) => (
            <tr key={ref}>
              <th scope="row">
                <bdi>{ref}</bdi>
              </th>
              <td>{type}</td>
              <td>
                <code>{String(id)}</code>
              </td>
              <td class="faint">{Object.keys(kept).length > 0 ? JSON.stringify(kept) : "by the table's properties"}</td>
            </tr>
          ))}
        </DataTable>
      )}
    </Section>
  );
}

/** The properties of a table or view. */
export function Properties({ properties }: { properties: Record<string, string> }) {
  const entries = Object.entries(properties);
  return (
    <Section
      title="Properties"
      aside={<span class="faint">{plural(entries.length, "property").replace("ys", "ies")}</span>}
    >
      {entries.length === 0 ? (
        <Empty>No properties. Engines set them, as Spark does with ALTER TABLE ... SET TBLPROPERTIES.</Empty>
      ) : (
        <DataTable label="Properties" columns={["Name", "Value"]}>
          {entries.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">
                <bdi>{name}</bdi>
              </th>
              <td>
                <bdi>{value}</bdi>
              </td>
            </tr>
          ))}
        </DataTable>
      )}
    </Section>
  );
}
