/** What home and a catalog's first page show of a catalog: its last changes, and what needs attention. */
import { ApiError, read } from "../api";
import { openCatalog } from "../catalog";
import { useLoad } from "../load";
import { pages } from "../names";
import { Chip, Empty, Failure, Loaded } from "../parts/basics";
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
      {({ items }) =>
        items.length === 0 ? (
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

/** Why the catalog takes no changes if it does not, and tasks that need someone. Nothing if all is well. */
export function Attention({ name }: { name: string }) {
  const readOnly = useLoad((signal) => readOnlyBecause(name, signal), [name]);
  const failed = useLoad((signal) => failedTasks(name, signal), [name]);
  const tasks = failed.state === "loaded" ? failed.value : [];
  const reason = readOnly.state === "loaded" ? readOnly.value : null;
  if (failed.state === "failed") return <Failure error={failed.error} />;
  if (reason === null && tasks.length === 0) return null;
  return (
    <div class="attention">
      <h3>Needs attention</h3>
      <ul class="lines">
        {reason !== null && (
          <li>
            <Chip kind="warn">read-only</Chip> {reason}
          </li>
        )}
        {tasks.map((task) => (
          <li key={task.id}>
            <Chip kind="bad">{task.stuck ? "stuck" : "failed"}</Chip> <TaskName catalog={name} task={task} />
          </li>
        ))}
      </ul>
    </div>
  );
}

async function readOnlyBecause(name: string, signal: AbortSignal): Promise<string | null> {
  const health = await read<{ warehouses: { name: string; read_only_because: string | null }[] }>("health", { signal });
  return health.warehouses.find((each) => each.name === name)?.read_only_because ?? null;
}

/** Tasks that failed; none for users who may not see tasks. */
async function failedTasks(name: string, signal: AbortSignal): Promise<Task[]> {
  try {
    return (await readTasks(await openCatalog(name), "FAILURE", null, signal)).items;
  } catch (error) {
    if (error instanceof ApiError && [403, 404].includes(error.status)) return [];
    throw error;
  }
}
