import { loadView, type ViewMetadata } from "../catalog";
import { type Result, useLoad } from "../load";
import { dotted, joined } from "../names";
import { Chip, Code, DataTable, Facts, Loaded, Section, Time } from "../parts/basics";
import { type Governance, GovernanceFacts } from "./governance";
import { Properties, SchemaTable } from "./table-overview";
import { type Entity, securableOf } from "./table-pages";

/** What a view is: its SQL in each dialect, its columns and its versions. */
export function ViewOverview({ entity, governance }: { entity: Entity; governance: Result<Governance> }) {
  const { catalog, namespace, name } = entity;
  const loaded = useLoad((signal) => loadView(catalog, namespace, name, signal), [catalog, joined(namespace), name]);
  return (
    <>
      <Loaded of={loaded}>{({ metadata }) => <Contents metadata={metadata} />}</Loaded>
      <GovernanceFacts of={governance} catalog={catalog} on={securableOf(entity)} />
    </>
  );
}

function Contents({ metadata }: { metadata: ViewMetadata }) {
  const current = metadata.versions.find((each) => each["version-id"] === metadata["current-version-id"]);
  const schema = metadata.schemas.find((each) => each["schema-id"] === current?.["schema-id"]);
  return (
    <>
      {current?.representations.map(({ dialect, sql }) => (
        <Section key={dialect} title={`SQL for ${dialect}`}>
          <Code label={`text in ${dialect}`} text={sql} />
        </Section>
      ))}
      <Facts
        of={[
          ["Names without a namespace are in", current && dotted(current["default-namespace"])],
          ["Location", <code key="location">{metadata.location}</code>],
          ["Id", <code key="id">{metadata["view-uuid"]}</code>],
        ]}
      />
      {schema && (
        <Section title="Columns">
          <SchemaTable schema={schema} />
        </Section>
      )}
      <Versions metadata={metadata} />
      <Properties properties={metadata.properties ?? {}} />
    </>
  );
}

function Versions({ metadata }: { metadata: ViewMetadata }) {
  return (
    <Section title="Versions">
      <DataTable label="Versions" columns={[["Version", "number"], "Time", "Dialects", "Made by"]}>
        {metadata.versions.toReversed().map((each) => (
          <tr key={each["version-id"]}>
            <th scope="row" class="number">
              {each["version-id"]}{" "}
              {each["version-id"] === metadata["current-version-id"] && <Chip kind="accent">current</Chip>}
            </th>
            <td>
              <Time ms={each["timestamp-ms"]} />
            </td>
            <td>{each.representations.map(({ dialect }) => dialect).join(", ")}</td>
            <td class="faint">{each.summary["engine-name"]}</td>
          </tr>
        ))}
      </DataTable>
    </Section>
  );
}
