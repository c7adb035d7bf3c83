import { readText } from "../api";
import { parseExact, prettyField } from "../json";
import { useLoad } from "../load";
import { Chip, Code, Empty, Facts, Loaded, Section, Time } from "../parts/basics";
import { type Entity, entityPage, entityPath } from "./table-pages";
import { type Version, Who } from "./timeline";

/** One version: who made it, and the receipt as it is stored. */
export function ReceiptPage({ entity, version }: { entity: Entity; version: string }) {
  const path = entityPath(entity, "timeline", version);
  const loaded = useLoad(async (signal) => ofText(await readText(path, { signal })), [path]);
  return (
    <Loaded of={loaded}>
      {({ entry, receipt }) => (
        <>
          <Section
            title={`Version ${entry.version ?? "without a number"}`}
            aside={<a href={entityPage(entity, ["compare"], { from: entry.id })}>Compare with the current version</a>}
          >
            <Facts
              of={[
                ["Time", <Time key="time" ms={entry["at-ms"]} />],
                ["Clock", entry["at-by"] === "catalog" ? "the catalog's" : "the writer's"],
                ["Who", <Who key="who" version={entry} />],
                ["External write", entry.external ? "yes" : entry.external === null ? "not known" : "no"],
                ["Receipt", <Chip key="receipt">{entry.receipt}</Chip>],
                ["Snapshot", entry["snapshot-id"] !== null && <code key="id">{String(entry["snapshot-id"])}</code>],
                ["Metadata file", <code key="file">{entry["metadata-location"]}</code>],
              ]}
            />
          </Section>
          <Section title="Receipt as stored">
            {receipt === null ? (
              <Empty>
                There is no receipt of this version. <code>arco reconcile</code> writes those that a process owed when
                it ended.
              </Empty>
            ) : (
              <Code label="receipt" text={receipt} />
            )}
          </Section>
          <p>
            <a href={entityPage(entity, ["timeline"])}>All versions</a>
          </p>
        </>
      )}
    </Loaded>
  );
}

function ofText(text: string): { entry: Version; receipt: string | null } {
  const { entry, receipt } = parseExact(text) as { entry: Version; receipt: unknown };
  return { entry, receipt: receipt === null ? null : prettyField(text, "receipt") };
}
