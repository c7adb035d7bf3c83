/** Tasks of a catalog: how they are read, and how one is named. */
import { read } from "../api";
import type { Catalog } from "../catalog";
import { words } from "../format";
import type { Page } from "../load";
import { dotted, joined, pages } from "../names";

export interface Task {
  id: string;
  unreadable?: string;
  type: string;
  namespace: string[] | null;
  name: string | null;
  status: string;
  version: number;
  attempts: number;
  "created-at-ms": number;
  "changed-at-ms": number;
  "next-run-at-ms": number | null;
  held: boolean;
  undone: boolean;
  stuck: boolean;
  retriable: boolean;
  progress: Record<string, unknown>;
  result: string | null;
}

/** Selects tasks: of one status, or those that have not ended. */
export interface TaskFilter {
  status?: string;
  unfinished?: "true";
}

/** Returns a page of a catalog's tasks: all, or those that are selected. */
export async function readTasks(
  catalog: Catalog,
  filter: TaskFilter,
  token: string | null,
  signal: AbortSignal,
): Promise<Page<Task>> {
  const found = await read<{ tasks: Task[]; "next-page-token": string | null }>(`v1/${catalog.prefix}/tasks`, {
    query: { ...filter, pageToken: token },
    signal,
  });
  return { items: found.tasks, next: found["next-page-token"] };
}

/** What a task does, and to which table. */
export function TaskName({ catalog, task }: { catalog: string; task: Task }) {
  const what = task.unreadable ? "Damaged record" : words(task.type);
  return (
    <>
      {what}{" "}
      {task.name ? (
        <a href={pages.history(catalog, { namespace: joined(task.namespace ?? []), table: task.name })}>
          <bdi>{dotted(task.namespace ?? [], task.name)}</bdi>
        </a>
      ) : (
        <code>{task.id}</code>
      )}
    </>
  );
}
