import type { Catalog } from "../catalog";
import { shellWord } from "../format";
import { usePages } from "../load";
import { dotted, joined, levelsOf, pages } from "../names";
import { Chip, Code, Form, Heading, Time } from "../parts/basics";
import { PagedList } from "../parts/listing";
import { navigate } from "../router";
import { type Operation, OperationLine, readHistory, type Undo } from "./operations";

/** What was done to the names of a catalog, newest first: who dropped a table, and whether that can be undone. */
export function HistoryPage({ catalog, namespace, table }: { catalog: Catalog; namespace: string; table: string }) {
  const levels = levelsOf(namespace);
  const found = usePages(
    (token, signal) => readHistory(catalog, { namespace: levels, table }, token, signal),
    [catalog, namespace, table],
  );
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
      <PagedList of={found} empty="No change that you may see.">
        {(items) => (
          <ol class="lines history">
            {items.map((each) => (
              <li key={`${each.commit}/${each.id}`}>
                <OperationLine catalog={catalog.name} operation={each} />
                {each.source?.client_info && <span class="faint"> through {each.source.client_info}</span>}
                {each.undo && <UndoLine operation={each} undo={each.undo} />}
              </li>
            ))}
          </ol>
        )}
      </PagedList>
    </>
  );
}

const BLOCKS: Record<string, string> = {
  "name-taken": "something else has the name now",
  "dropped-later": "something of the same name was dropped later, and an undrop restores that",
  "namespace-missing": "its namespace is gone",
};

function UndoLine({ operation, undo }: { operation: Operation; undo: Undo }) {
  const blocked = undo["blocked-by"];
  if (undo.possible) {
    return (
      <details class="undo">
        <summary>
          <Chip kind="good">can be undone</Chip>{" "}
          {undo["until-ms"] !== null && (
            <span class="faint">
              until <Time ms={undo["until-ms"]} aged={false} /> at least
            </span>
          )}
        </summary>
        <Code
          label="command that undoes the drop"
          text={`arco undrop ${shellWord(dotted(operation.namespace ?? [], operation.name))}`}
        />
      </details>
    );
  }
  return (
    <div class="undo faint">
      {undo.state === "restored" ? "undone since" : undo.state === "dropped" ? "can't be undone" : undo.state}
      {blocked && `: ${BLOCKS[blocked.reason] ?? blocked.reason}`}
    </div>
  );
}
