/** Operations of a catalog's history: how they are read, and how one is shown. */
import { read } from "../api";
import type { Catalog } from "../catalog";
import type { Page } from "../load";
import { dotted, joined, type Namespace, pages } from "../names";
import { Chip, Time } from "../parts/basics";

export interface Undo {
  possible: boolean;
  state: string;
  "until-ms": number | null;
  "purge-task": string | null;
  "blocked-by": { reason: string; type?: string; namespace: string[] | null; name: string | null } | null;
}

export interface Operation {
  id: string | null;
  commit: string;
  sequence: number;
  "at-ms": number | null;
  kind: string;
  principal: string | null;
  source: { kind: string; client_info?: string } | null;
  namespace: string[] | null;
  name: string | null;
  to: { namespace: string[]; name: string } | null;
  detail: Record<string, unknown>;
  undo: Undo | null;
}

export interface HistoryQuery {
  pageSize?: number;
  namespace?: Namespace;
  table?: string | undefined;
}

/** Returns a page of a catalog's operations, newest first. */
export async function readHistory(
  catalog: Catalog,
  { pageSize, namespace, table }: HistoryQuery,
  token: string | null,
  signal: AbortSignal,
): Promise<Page<Operation>> {
  const query = {
    pageSize: pageSize ?? null,
    namespace: namespace && namespace.length > 0 ? joined(namespace) : null,
    table: table || null,
    pageToken: token,
  };
  const found = await read<{ operations: Operation[]; "next-page-token": string | null }>(
    `v1/${catalog.prefix}/history`,
    { query, signal },
  );
  return { items: found.operations, next: found["next-page-token"] };
}

/** What an operation did, to what, who did it and when, on one line. */
export function OperationLine({ catalog, operation }: { catalog: string; operation: Operation }) {
  const { namespace, name, to } = operation;
  return (
    <>
      <Chip kind={operation.kind.startsWith("drop") ? "warn" : "plain"}>{operation.kind.replaceAll("-", " ")}</Chip>{" "}
      {namespace && <Named catalog={catalog} kind={operation.kind} namespace={namespace} name={name} />}
      {to && (
        <>
          {" to "}
          <Named catalog={catalog} kind={operation.kind} namespace={to.namespace} name={to.name} />
        </>
      )}{" "}
      <span class="faint">
        {operation.principal !== null && (
          <>
            by <bdi>{operation.principal}</bdi>{" "}
          </>
        )}
        {operation["at-ms"] !== null && <Time ms={operation["at-ms"]} />} <bdi>{detailOf(operation.detail)}</bdi>
      </span>
    </>
  );
}

const DETAILS = ["privilege", "role", "principal_role", "governance", "purge"];

/** The other facts of an operation as text, such as the privilege of a grant. */
export function detailOf(detail: Readonly<Record<string, unknown>>): string {
  return DETAILS.filter((name) => detail[name])
    .map((name) => `${name.replaceAll("_", " ")} ${[detail[name]].flat().join(", ")}`)
    .join(", ");
}

function Named({
  catalog,
  kind,
  namespace,
  name,
}: {
  catalog: string;
  kind: string;
  namespace: string[];
  name: string | null;
}) {
  if (name === null) {
    return (
      <a href={pages.namespace(catalog, namespace)}>
        <bdi>{dotted(namespace)}</bdi>
      </a>
    );
  }
  const of = kind.includes("view") ? "v" : kind.includes("table") || kind === "undrop" ? "t" : null;
  const shown = <bdi>{dotted(namespace, name)}</bdi>;
  return of === null ? shown : <a href={pages.entity(catalog, of, namespace, name)}>{shown}</a>;
}
