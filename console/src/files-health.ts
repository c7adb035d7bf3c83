/** The files of a table's current snapshot, as the server plans a scan of all of them. */
import { post } from "./api";
import { bytes, count, plural } from "./format";
import { type Finding, MIN_INPUT_FILES, SMALL_PART } from "./health";

/** Requests for parts of a plan, each of up to 5,000 files. */
const MAX_PARTS = 4;

interface PlannedFile {
  "file-path": string;
  "file-size-in-bytes": number;
}

/** A part of a plan, as the API sends it. */
export interface PlannedFiles {
  "plan-tasks"?: string[];
  "file-scan-tasks"?: { "data-file": PlannedFile }[];
  "delete-files"?: PlannedFile[];
}

/** Counts of files in bytes. `partial` is whether there are more than were read. */
export interface FileCounts {
  data: number;
  bytes: number;
  largest: number;
  small: number;
  deletes: number;
  partial: boolean;
}

/** Reads the files of a table at a path of the API, or the first 25,000 of them. Throws what `post` throws. */
export async function readFiles(table: string, target: number, signal: AbortSignal): Promise<FileCounts> {
  const parts = [await post<PlannedFiles>(`${table}/plan`, {}, signal)];
  const tasks = [...(parts[0]?.["plan-tasks"] ?? [])];
  while (tasks.length > 0 && parts.length <= MAX_PARTS) {
    const part = await post<PlannedFiles>(`${table}/tasks`, { "plan-task": tasks.shift() }, signal);
    tasks.push(...(part["plan-tasks"] ?? []));
    parts.push(part);
  }
  return countFiles(parts, target, tasks.length > 0);
}

/** Counts the files in the parts of a plan. A delete file is in each part in which a data file needs it. */
export function countFiles(parts: readonly PlannedFiles[], target: number, partial: boolean): FileCounts {
  const sizes = parts.flatMap((part) => (part["file-scan-tasks"] ?? []).map((task) => sizeOf(task["data-file"])));
  const deletes = new Set(parts.flatMap((part) => (part["delete-files"] ?? []).map((file) => file["file-path"])));
  return {
    data: sizes.length,
    bytes: sizes.reduce((sum, size) => sum + size, 0),
    largest: sizes.reduce((largest, size) => Math.max(largest, size), 0),
    small: sizes.filter((size) => size < target * SMALL_PART).length,
    deletes: deletes.size,
    partial,
  };
}

/** Returns what counts of files show of a table's health. */
export function findingsOf(files: FileCounts, target: number): Finding[] {
  const many = files.small >= MIN_INPUT_FILES;
  const small = `${plural(files.small, "file")} of ${count(files.data)} below ${bytes(target * SMALL_PART)}`;
  return [
    {
      about: "Data files read",
      state: files.partial ? "unknown" : "good",
      text: `${plural(files.data, "file")}, ${bytes(files.bytes)}, the largest ${bytes(files.largest)}${files.partial ? "; there are more" : ""}`,
    },
    { about: "Small files", state: many ? "warn" : "good", text: small },
    { about: "Delete files in use", state: files.deletes > 0 ? "warn" : "good", text: count(files.deletes) },
  ];
}

function sizeOf(file: PlannedFile): number {
  return Number(file["file-size-in-bytes"]);
}
