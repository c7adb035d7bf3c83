/** What home and a catalog's first page show of a catalog: its last changes, and what needs attention. */
import { ApiError } from "../api";
import { openCatalog } from "../catalog";
import { useLoad } from "../load";
import { pages } from "../names";
import { Chip, Empty, Failure, Loaded } from "../parts/basics";
import { readOnlyBecause } from "../rights";
import { OperationLine, readHistory } from "./operations";
import { readTasks, type Task, TaskName } from "./task-parts";

/** The last few operations on a catalog. */
export function LastChanges({ name, count }: { name: string; count: number }) {
  const history = useLoad(
    async (signal) => readHistory(await openCatalog(name), { pageSize: count }, null, signal),
    [name, count],
  );
  return (
    <Loaded of={history}>
      {({ items, next }) =>
        items.length === 0 && next !== null ? (
          <p class="faint">None among the last commits.</p>
        ) : items.length === 0 ? (
          <Empty>
            Nothing was changed yet. Connect an engine, and create a namespace and a table:{" "}
            <a href={pages.namespaces(name)}>how</a>.
          </Empty>
        ) : (
          <ul class="lines">
            {items.map((each) => (
              <li key={`${each.commit}/${each.id}`}>
                <OperationLine catalog={name} operation={each} />
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  );
}

/** Why the catalog takes no changes if it does not. */
export function ReadOnly({ name }: { name: string }) {
  const found = useLoad((signal) => readOnlyBecause(name, signal), [name]);
  const reason = found.state === "loaded" ? found.value : null;
  if (reason === null) return null;
  return (
    <p class="attention">
      <Chip kind="warn">read-only</Chip> {reason}
    </p>
  );
}

/** Tasks that failed, which someone must look at. Nothing if there are none. */
export function FailedTasks({ name }: { name: string }) {
  const failed = useLoad((signal) => failedTasks(name, signal), [name]);
  if (failed.state === "failed") return <Failure error={failed.error} />;
  if (failed.state === "loading" || failed.value.length === 0) return null;
  return (
    <div class="attention">
      <h3>Needs attention</h3>
      <ul class="lines">
        {failed.value.map((task) => (
          <li key={task.id}>
            <Chip kind="bad">{task.stuck ? "stuck" : "failed"}</Chip> <TaskName catalog={name} task={task} />
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Tasks that failed; none for users who may not see tasks. */
async function failedTasks(name: string, signal: AbortSignal): Promise<Task[]> {
  try {
    return (await readTasks(await openCatalog(name), { status: "FAILURE" }, null, signal)).items;
  } catch (error) {
    if (error instanceof ApiError && [403, 404].includes(error.status)) return [];
    throw error;
  }
}
