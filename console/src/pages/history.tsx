import type { Catalog } from "../catalog";
import { usePages } from "../load";
import { dotted, joined, levelsOf, type Namespace, pages } from "../names";
import { Form, Heading } from "../parts/basics";
import { PagedList } from "../parts/listing";
import type { Right } from "../rights";
import { navigate } from "../router";
import { type Operation, OperationLine, readHistory } from "./operations";
import { rightsToUndo, UndoLine } from "./undo";

/** What was done to the names of a catalog, newest first: who dropped a table, and whether that can be undone. */
export function HistoryPage({ catalog, namespace, table }: { catalog: Catalog; namespace: string; table: string }) {
  const levels = levelsOf(namespace);
  const filter = (data: FormData) =>
    navigate(
      pages.history(catalog.name, {
        namespace: joined(String(data.get("namespace")).split(".")),
        table: String(data.get("table")),
      }),
    );
  return (
    <>
      <Heading title="History" crumbs={[[catalog.name, pages.catalog(catalog.name)]]} />
      <Form class="row" aria-label="Filter the history" key={`${namespace}/${table}`} onSend={filter}>
        <label>
          Namespace
          <input name="namespace" defaultValue={dotted(levels)} spellcheck={false} />
        </label>
        <label>
          Table or view
          <input name="table" defaultValue={table} spellcheck={false} />
        </label>
        <button type="submit">Filter</button>
        {(namespace || table) && <a href={pages.history(catalog.name)}>All changes</a>}
      </Form>
      <HistoryList catalog={catalog} namespace={levels} table={table} />
    </>
  );
}

interface Line {
  operation: Operation;
  /** The right to undo it. */
  right: Promise<Right> | undefined;
}

/** What was done in a catalog, or to what is in a namespace or has a name in it, newest first. */
export function HistoryList({ catalog, namespace, table }: { catalog: Catalog; namespace: Namespace; table: string }) {
  const found = usePages<Line>(
    async (token, signal) => {
      const { items, next } = await readHistory(catalog, { namespace, table }, token, signal);
      const rights = rightsToUndo(catalog, items, signal);
      return { items: items.map((operation, at) => ({ operation, right: rights[at] })), next };
    },
    [catalog, joined(namespace), table],
  );
  return (
    <PagedList of={found} empty="No change that you may see.">
      {(items) => (
        <ol class="lines history">
          {items.map(({ operation, right }) => (
            <li key={`${operation.commit}/${operation.id}`}>
              <OperationLine catalog={catalog.name} operation={operation} />
              {operation.source?.client_info && <span class="faint"> through {operation.source.client_info}</span>}
              {operation.undo && right && (
                <UndoLine catalog={catalog} operation={operation} undo={operation.undo} right={right} />
              )}
            </li>
          ))}
        </ol>
      )}
    </PagedList>
  );
}
