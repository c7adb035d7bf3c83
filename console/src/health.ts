/** What the catalog itself knows of the health of a table: what was declared, the last write, and its totals. */
import { currentSnapshot, type TableMetadata } from "./catalog";
import { bytes, count, plural, words } from "./format";
import { joined, type Namespace } from "./names";

export interface Finding {
  about: string;
  state: "good" | "warn" | "unknown";
  text: string;
}

/** The last version of a table, as its timeline has it. */
export interface LastVersion {
  version: number | null;
  receipt: "committed" | "pending" | "missing" | "none";
}

/** Iceberg's size of a data file where a table has no property for it. */
const DEFAULT_TARGET_BYTES = 512 * 1024 * 1024;
/** Files count as small below this part of the size that they should have, as for compaction. */
export const SMALL_PART = 3 / 4;
/** Fewer files than these are not compacted, so they do not count as small. */
export const MIN_INPUT_FILES = 5;

/** Returns what the governance, the metadata and the last version of a table show of its health. */
export function healthOf(quality: string | undefined, table: TableMetadata, last: LastVersion | undefined): Finding[] {
  return [qualityOf(quality), receiptOf(last), ...filesOf(table)];
}

/** A task that has not ended, of maintenance if it is about a table that exists. */
export interface WaitingTask {
  type: string;
  namespace: readonly string[] | null;
  name: string | null;
  status: string;
}

/** Returns what waits or runs to maintain a table, among tasks that are all that have not ended, or some if not `all`. */
export function workOf(namespace: Namespace, name: string, tasks: readonly WaitingTask[], all: boolean): Finding {
  const about = "Waiting work";
  const found = tasks.filter(
    (each) =>
      each.type === "TABLE_MAINTENANCE" && each.name === name && joined(each.namespace ?? []) === joined(namespace),
  );
  if (found.length > 0)
    return { about, state: "warn", text: `maintenance: ${found.map(({ status }) => words(status)).join(", ")}` };
  if (all) return { about, state: "good", text: "none" };
  return { about, state: "unknown", text: "none among the first tasks of the catalog: more wait" };
}

function qualityOf(quality: string | undefined): Finding {
  if (quality) return { about: "Quality", state: "good", text: quality };
  return { about: "Quality", state: "unknown", text: "not declared" };
}

const RECEIPTS: Record<LastVersion["receipt"], Pick<Finding, "state" | "text">> = {
  committed: { state: "good", text: "its receipt is committed" },
  pending: { state: "warn", text: "its receipt is pending: arco reconcile writes it" },
  missing: { state: "warn", text: "its receipt is missing, so who wrote it is not known" },
  none: { state: "unknown", text: "another catalog wrote it" },
};

function receiptOf(last: LastVersion | undefined): Finding {
  if (!last) return { about: "Last write", state: "unknown", text: "not known" };
  const { state, text } = RECEIPTS[last.receipt];
  return { about: "Last write", state, text: `version ${last.version ?? "without a number"}, ${text}` };
}

function filesOf(table: TableMetadata): Finding[] {
  const current = currentSnapshot(table);
  if (!current) return [{ about: "Data files", state: "unknown", text: "no snapshot yet" }];
  const total = (name: string) => numberOf(current.summary?.[`total-${name}`]);
  return [dataFiles(total("data-files"), total("files-size"), targetOf(table)), deleteFiles(total("delete-files"))];
}

function dataFiles(files: number | null, size: number | null, target: number): Finding {
  if (files === null || size === null) return { about: "Data files", state: "unknown", text: "not in the summary" };
  if (files === 0) return { about: "Data files", state: "good", text: "none" };
  const average = size / files;
  const small = files >= MIN_INPUT_FILES && average < target * SMALL_PART;
  const text = `${plural(files, "file")}, ${bytes(average)} on average, ${bytes(target)} wanted`;
  return { about: "Data files", state: small ? "warn" : "good", text: small ? `small: ${text}` : text };
}

function deleteFiles(files: number | null): Finding {
  if (files === null) return { about: "Delete files", state: "unknown", text: "not in the summary" };
  return { about: "Delete files", state: files === 0 ? "good" : "warn", text: files === 0 ? "none" : count(files) };
}

/** The size in bytes that the data files of a table should have. */
export function targetOf(table: TableMetadata): number {
  return numberOf(table.properties?.["write.target-file-size-bytes"]) || DEFAULT_TARGET_BYTES;
}

function numberOf(text: string | undefined): number | null {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : null;
}
