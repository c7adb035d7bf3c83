/** Whether a drop can be undone, by whom, and how. */
import type { Catalog } from "../catalog";
import { shellWord } from "../format";
import { useLoad } from "../load";
import { apiPath, dotted } from "../names";
import { Chip, Code, Time } from "../parts/basics";
import { ChangeButton, type Intent } from "../parts/change";
import { allOf, checkRights, type Grant, type Right } from "../rights";
import type { Operation, Undo } from "./operations";

/** Returns for each operation whether the user may undo it, by one batch for those that can be undone. */
export function rightsToUndo(
  catalog: Catalog,
  operations: readonly Operation[],
  signal: AbortSignal,
): Promise<Right>[] {
  const checks = operations.map(checksOf);
  const batch = checkRights(catalog.name, checks.flat(), signal);
  let next = 0;
  return checks.map(({ length }) => {
    const at = next;
    next += length;
    return batch.then((rights) => allOf(rights.slice(at, at + length)));
  });
}

/** The privileges that undoing takes: to drop what comes back, and to create its name. For a missing namespace it is the
 * one to create that. */
function checksOf({ kind, namespace, name, undo }: Operation): Grant[] {
  if (namespace === null || name === null) return [];
  const levels = [...namespace];
  if (undo?.["blocked-by"]?.reason === MISSING)
    return [{ ...within(levels.slice(0, -1)), privilege: "NAMESPACE_CREATE" }];
  if (!undo?.possible) return [];
  const [type, field] = kind === "drop-view" ? ["view", "viewName"] : ["table", "tableName"];
  return [
    { type, namespace: levels, [field]: name, privilege: `${type.toUpperCase()}_DROP` },
    { ...within(levels), privilege: `${type.toUpperCase()}_CREATE` },
  ];
}

function within(levels: string[]): Omit<Grant, "privilege"> {
  return levels.length === 0 ? { type: "catalog" } : { type: "namespace", namespace: levels };
}

const MISSING = "namespace-missing";
const BLOCKS: Record<string, string> = {
  "name-taken": "something else has the name now",
  "dropped-later": "something of the same name was dropped later, and an undrop restores that",
  [MISSING]: "its namespace is gone",
};

interface Props {
  catalog: Catalog;
  operation: Operation;
  undo: Undo;
  right: Promise<Right>;
}

/** Whether a drop can be undone, with a button that undoes it, or what prevents it. */
export function UndoLine({ catalog, operation, undo, right }: Props) {
  const may = useLoad(() => right, [right]);
  const name = dotted(operation.namespace ?? [], operation.name);
  if (undo.possible) {
    return (
      <div class="undo">
        <Chip kind="good">can be undone</Chip>{" "}
        {undo["until-ms"] !== null && (
          <span class="faint">
            until <Time ms={undo["until-ms"]} aged={false} /> at least
          </span>
        )}{" "}
        <ChangeButton label="Undo the drop" about={name} right={may} intent={() => undropping(catalog, operation)} />
        <details>
          <summary class="faint">by a command</summary>
          <Code label="command that undoes the drop" text={`arco undrop ${shellWord(name)}`} />
        </details>
      </div>
    );
  }
  const blocked = undo["blocked-by"];
  return (
    <div class="undo faint">
      {undo.state === "restored" ? "undone" : undo.state === "dropped" ? "can't be undone" : undo.state}
      {blocked && `: ${BLOCKS[blocked.reason] ?? blocked.reason}`}
      {blocked?.reason === MISSING && (
        <>
          . Once <bdi>{dotted(operation.namespace ?? [])}</bdi> is created again, it can be, by who may drop tables in
          the whole catalog{" "}
          <ChangeButton
            label="Create the namespace"
            about={dotted(operation.namespace ?? [])}
            right={may}
            intent={() => creating(catalog, operation.namespace ?? [])}
          />
        </>
      )}
    </div>
  );
}

function undropping(catalog: Catalog, { kind, namespace, name, principal, undo }: Operation): Intent {
  const full = dotted(namespace ?? [], name);
  const what = kind.replace("drop-", "").replaceAll("-", " ");
  return {
    title: "Undo the drop",
    summary: (
      <>
        The {what} <bdi>{full}</bdi> comes back as it was when{" "}
        {principal === null ? "it was dropped" : <bdi>{principal} dropped it</bdi>}
        {undo?.["purge-task"] && ", and the purge of its files is cancelled"}.
      </>
    ),
    confirm: "Undo the drop",
    change: { method: "POST", path: apiPath(catalog.prefix, namespace ?? [], "tables", name ?? "", "undrop") },
    keyed: catalog.takesKeys,
    done: `${full} is back.`,
  };
}

function creating(catalog: Catalog, namespace: string[]): Intent {
  const full = dotted(namespace);
  return {
    title: "Create the namespace",
    summary: (
      <>
        The namespace <bdi>{full}</bdi> is created, empty and without the properties and grants that it had.
      </>
    ),
    confirm: "Create the namespace",
    change: { method: "POST", path: `v1/${catalog.prefix}/namespaces`, body: { namespace } },
    keyed: catalog.takesKeys,
    done: `The namespace ${full} is created.`,
  };
}
