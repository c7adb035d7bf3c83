import { ApiError, read } from "../api";
import { loadTable } from "../catalog";
import { shellWord } from "../format";
import { type Finding, healthOf, workOf } from "../health";
import { type Result, useLoad } from "../load";
import { dotted, pages } from "../names";
import { Chip, Code, DataTable, Failure, Loaded, Loading, Section } from "../parts/basics";
import type { Governance } from "./governance";
import { type Entity, entityPath } from "./table-pages";
import { readTasks } from "./task-parts";
import type { Version } from "./timeline";

const STATES: Record<Finding["state"], string> = { good: "well", warn: "look at it", unknown: "not known" };
const KINDS: Record<Finding["state"], "good" | "warn" | "plain"> = { good: "good", warn: "warn", unknown: "plain" };

/** How a table is, as far as the catalog knows without a look at its files. */
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
      <Section title="Not collected here">
        <p>
          The catalog reads no manifests for a page. The command below counts small files and manifests, and where the
          pipeline runs, <code>system.files_health</code> has them for all tables. Work that waits, and work that
          failed, is among the <a href={pages.tasks(catalog.name)}>tasks</a>.
        </p>
        <Code label="command that looks at the files" text={`arco info ${shellWord(dotted(namespace, name))}`} />
      </Section>
    </>
  );
}

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
