import { read } from "../api";
import type { Catalog } from "../catalog";
import { words } from "../format";
import { useLoad, usePages } from "../load";
import { dotted, pages } from "../names";
import { Chip, Code, DataTable, Facts, Form, Heading, Loaded, Section, Time } from "../parts/basics";
import { ChangeButton, type Intent } from "../parts/change";
import { PagedList } from "../parts/listing";
import { useRight } from "../rights";
import { navigate } from "../router";
import { readTasks, type Task, type TaskFilter, TaskName } from "./task-parts";

const STATES = ["SUBMITTED", "ACQUIRING_RESOURCES", "RUNNING", "RETRY_SCHEDULED", "SUCCESS", "FAILURE"];
const ALL = "all";

/** Work that outlives requests, such as purges: what is owed and what failed, or the tasks of one status, or all. */
export function TasksPage({ catalog, status }: { catalog: Catalog; status: string }) {
  const filter = status === ALL ? {} : { status };
  return (
    <>
      <Heading title="Tasks" crumbs={[[catalog.name, pages.catalog(catalog.name)]]} />
      <Form
        class="row"
        aria-label="Filter the tasks"
        onSend={(data) => navigate(pages.tasks(catalog.name, String(data.get("status"))))}
      >
        <label>
          Status
          <select name="status">
            <option value="">owed or failed</option>
            {[ALL, ...STATES].map((each) => (
              <option key={each} value={each} selected={each === status}>
                {words(each)}
              </option>
            ))}
          </select>
        </label>
        <button type="submit">Filter</button>
      </Form>
      {status === "" ? (
        <>
          <Section title="Owed">
            <TaskList
              catalog={catalog}
              label="Tasks that have not ended"
              filter={{ unfinished: "true" }}
              empty="Nothing is owed: no task waits or runs."
            />
          </Section>
          <Section title="Failed">
            <TaskList catalog={catalog} label="Failed tasks" filter={{ status: "FAILURE" }} empty="No task failed." />
          </Section>
        </>
      ) : (
        <TaskList
          catalog={catalog}
          label="Tasks"
          filter={filter}
          empty="No tasks. A drop with purge makes one, and so does maintenance by policies."
        />
      )}
    </>
  );
}

interface ListProps {
  catalog: Catalog;
  label: string;
  filter: TaskFilter;
  empty: string;
}

function TaskList({ catalog, label, filter, empty }: ListProps) {
  const found = usePages(
    (token, signal) => readTasks(catalog, filter, token, signal),
    [catalog, JSON.stringify(filter)],
  );
  return (
    <PagedList of={found} empty={empty}>
      {(items) => (
        <DataTable
          label={label}
          columns={["Task", "Status", ["Attempts", "number"], "Changed", "Next run", "Last result"]}
        >
          {items.map((task) => (
            <TaskRow key={task.id} catalog={catalog} task={task} />
          ))}
        </DataTable>
      )}
    </PagedList>
  );
}

function TaskRow({ catalog, task }: { catalog: Catalog; task: Task }) {
  const named = (
    <th scope="row">
      <a href={pages.task(catalog.name, task.id)}>{task.id.slice(0, 8)}</a>{" "}
      <TaskName catalog={catalog.name} task={task} />
    </th>
  );
  if (task.unreadable) {
    return (
      <tr>
        {named}
        <td colSpan={5}>{task.unreadable}</td>
      </tr>
    );
  }
  return (
    <tr>
      {named}
      <td>
        <Status task={task} />
      </td>
      <td class="number">{task.attempts}</td>
      <td>
        <Time ms={task["changed-at-ms"]} />
      </td>
      <td>{task["next-run-at-ms"] && <Time ms={task["next-run-at-ms"]} aged={false} />}</td>
      <td>{task.result}</td>
    </tr>
  );
}

/** One task, with its progress as stored. */
export function TaskPage({ catalog, id }: { catalog: Catalog; id: string }) {
  const path = `v1/${catalog.prefix}/tasks/${encodeURIComponent(id)}`;
  const loaded = useLoad((signal) => read<Task & { payload?: unknown }>(path, { signal }), [path]);
  const crumbs: [string, string][] = [
    [catalog.name, pages.catalog(catalog.name)],
    ["Tasks", pages.tasks(catalog.name)],
  ];
  return (
    <>
      <Heading title={id} kind="Task" crumbs={crumbs} />
      <Loaded of={loaded}>
        {(task) => (
          <>
            <Facts
              of={[
                ["What", <TaskName key="name" catalog={catalog.name} task={task} />],
                ["Status", <Status key="status" task={task} />],
                ["Attempts", task.attempts],
                ["Created", <Time key="created" ms={task["created-at-ms"]} />],
                ["Changed", <Time key="changed" ms={task["changed-at-ms"]} />],
                ["Next run", task["next-run-at-ms"] && <Time key="next" ms={task["next-run-at-ms"]} aged={false} />],
                ["Last result", task.result],
              ]}
            />
            {task.retriable && <Retry catalog={catalog} task={task} />}
            <Section title="Progress">
              <Code label="progress as stored" text={JSON.stringify(task.progress, null, 2)} />
            </Section>
            {task.payload !== undefined && (
              <Section title="What it works on">
                <Code label="payload as stored" text={JSON.stringify(task.payload, null, 2)} />
              </Section>
            )}
          </>
        )}
      </Loaded>
    </>
  );
}

/** Submits a failed task again, for who may change all that is in the catalog. */
function Retry({ catalog, task }: { catalog: Catalog; task: Task }) {
  const right = useRight(catalog.name, [{ type: "catalog", privilege: "CATALOG_MANAGE_CONTENT" }]);
  const name = task.name === null ? task.id : dotted(task.namespace ?? [], task.name);
  const intent = (): Intent => ({
    title: "Try again",
    summary: (
      <>
        The failed task “{words(task.type)}” for <bdi>{name}</bdi> is submitted again, and goes on from the progress
        that it has.
      </>
    ),
    confirm: "Try again",
    change: { method: "POST", path: `v1/${catalog.prefix}/tasks/${encodeURIComponent(task.id)}/retry`, body: {} },
    keyed: false,
    done: `The task for ${name} is submitted again.`,
  });
  return (
    <Section title="Try again">
      <p>
        <ChangeButton label="Try again" about={name} right={right} intent={intent} />
      </p>
      <Code label="command that retries the task" text={`arco tasks retry ${task.id}`} />
    </Section>
  );
}

function Status({ task }: { task: Task }) {
  const kind = task.status === "SUCCESS" ? "good" : task.status === "FAILURE" ? "bad" : "plain";
  return (
    <>
      <Chip kind={kind}>{words(task.status)}</Chip> {task.stuck && <Chip kind="bad">stuck</Chip>}{" "}
      {task.undone && <Chip>drop undone</Chip>}
    </>
  );
}
