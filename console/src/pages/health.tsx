import { useState } from "preact/hooks";
import { ApiError, read } from "../api";
import { type Catalog, loadTable } from "../catalog";
import { findingsOf, readFiles } from "../files-health";
import { shellWord } from "../format";
import { type Finding, healthOf, targetOf, workOf } from "../health";
import { type Result, useLoad } from "../load";
import { dotted, type Namespace, pages } from "../names";
import { Chip, Code, DataTable, Failure, Loaded, Loading, Section, Time } from "../parts/basics";
import type { Governance } from "./governance";
import { type Entity, entityPath } from "./table-pages";
import { readTasks } from "./task-parts";
import type { Version } from "./timeline";

const STATES: Record<Finding["state"], string> = { good: "well", warn: "look at it", unknown: "not known" };
const KINDS: Record<Finding["state"], "good" | "warn" | "plain"> = { good: "good", warn: "warn", unknown: "plain" };

/** How a table is: what the catalog knows without a look at its files, and on demand what the files are. */
export function Health({ entity, governance }: { entity: Entity; governance: Result<Governance> }) {
  const { catalog, namespace, name } = entity;
  const timeline = entityPath(entity, "timeline");
  const loaded = useLoad(
    async (signal) => {
      const [{ metadata }, { versions }] = await Promise.all([
        loadTable(catalog, namespace, name, "refs", signal),
        read<{ versions: Version[] }>(timeline, { query: { pageSize: 1 }, signal }),
      ]);
      return { metadata, last: versions[0] };
    },
    [timeline],
  );
  const work = useLoad((signal) => readWork(entity, signal), [timeline]);
  return (
    <>
      <Section title="Health">
        <Loaded of={governance}>
          {({ "arco.quality": quality }) => (
            <Loaded of={loaded}>
              {({ metadata, last }) => (
                <Findings
                  of={[...healthOf(quality, metadata, last), ...(work.state === "loaded" ? [work.value] : [])]}
                />
              )}
            </Loaded>
          )}
        </Loaded>
        {work.state === "failed" && <Failure error={work.error} />}
        {work.state === "loading" && <Loading />}
      </Section>
      <Section title="Files">
        <Loaded of={loaded}>{({ metadata }) => <Files entity={entity} target={targetOf(metadata)} />}</Loaded>
        <Collected catalog={catalog} />
        <p>
          Work that waits, and work that failed, is among the <a href={pages.tasks(catalog.name)}>tasks</a>. More about
          the table, from its metadata:
        </p>
        <Code label="command that looks at the table" text={`arco info ${shellWord(dotted(namespace, name))}`} />
      </Section>
    </>
  );
}

/** Looks at the files of the table on demand: the server reads its manifests for that. */
function Files({ entity, target }: { entity: Entity; target: number }) {
  const [wanted, setWanted] = useState(false);
  if (wanted) return <FilesRead entity={entity} target={target} />;
  return (
    <p>
      <button type="button" onClick={() => setWanted(true)}>
        Look at the files
      </button>{" "}
      <span class="faint">The server reads the manifests of the current snapshot.</span>
    </p>
  );
}

function FilesRead({ entity, target }: { entity: Entity; target: number }) {
  const path = entityPath(entity);
  const read = useLoad((signal) => readFiles(path, target, signal), [path]);
  return <Loaded of={read}>{(files) => <Findings of={findingsOf(files, target)} />}</Loaded>;
}

/** How old the numbers of all tables are that the pipeline collects, and where they are; or what collects them. */
function Collected({ catalog }: { catalog: Catalog }) {
  const [system, table] = FILES_HEALTH;
  const loaded = useLoad((signal) => loadTable(catalog, system, table, "refs", signal), [catalog]);
  if (loaded.state === "loading") return <Loading />;
  if (loaded.state === "failed") {
    if (!(loaded.error instanceof ApiError && loaded.error.status === 404)) return <Failure error={loaded.error} />;
    return (
      <p>
        Numbers of all tables are not collected, or you may not read them. <code>arco pipeline run compact</code>{" "}
        collects them.
      </p>
    );
  }
  return (
    <p>
      The pipeline has collected numbers of all tables <Time ms={loaded.value.metadata["last-updated-ms"]} /> in{" "}
      <a href={pages.entity(catalog.name, "t", system, table)}>{dotted(system, table)}</a>.
    </p>
  );
}

/** The table of the pipeline with the numbers of files of all tables. */
const FILES_HEALTH: [Namespace, string] = [["system"], "files_health"];

/** What waits to maintain the table; for users who may not see tasks, the error in the words of the API. */
async function readWork({ catalog, namespace, name }: Entity, signal: AbortSignal): Promise<Finding> {
  try {
    const { items, next } = await readTasks(catalog, { unfinished: "true" }, null, signal);
    return workOf(namespace, name, items, next === null);
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 403)) throw error;
    return { about: "Waiting work", state: "unknown", text: error.message };
  }
}

function Findings({ of }: { of: Finding[] }) {
  return (
    <DataTable label="Health" columns={["Of", "State", "What is known"]}>
      {of.map(({ about, state, text }) => (
        <tr key={about}>
          <th scope="row">{about}</th>
          <td>
            <Chip kind={KINDS[state]}>{STATES[state]}</Chip>
          </td>
          <td>
            <bdi>{text}</bdi>
          </td>
        </tr>
      ))}
    </DataTable>
  );
}
