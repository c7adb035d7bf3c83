/** The catalog that a page is about: its prefix in paths, and lists that several pages read. */
import { computed } from "@preact/signals";
import { read } from "./api";
import type { Long } from "./json";
import type { Page } from "./load";
import { apiPath, joined, type Namespace } from "./names";
import type { Field } from "./schema";
import { login } from "./session";

export interface Catalog {
  name: string;
  prefix: string;
  /** Properties of Iceberg by which engines reach the catalog's files; none if the server names none. */
  fileIo: Readonly<Record<string, string>>;
  /** Whether a change that is sent again under its idempotency key is carried out once. */
  takesKeys: boolean;
}

export interface Snapshot {
  "snapshot-id": Long;
  "parent-snapshot-id"?: Long;
  "timestamp-ms": number;
  summary?: Record<string, string>;
  "schema-id"?: number;
}

export interface Schema {
  "schema-id": number;
  fields: Field[];
  "identifier-field-ids"?: number[];
}

export interface TableMetadata {
  "format-version": number;
  "table-uuid": string;
  location: string;
  "last-updated-ms": number;
  "current-schema-id": number;
  schemas: Schema[];
  "default-spec-id": number;
  "partition-specs": { "spec-id": number; fields: PartitionField[] }[];
  "default-sort-order-id": number;
  "sort-orders": { "order-id": number; fields: SortField[] }[];
  properties?: Record<string, string>;
  "current-snapshot-id"?: Long;
  snapshots?: Snapshot[];
  refs?: Record<string, { "snapshot-id": Long; type: string; [setting: string]: unknown }>;
}

export interface PartitionField {
  "source-id"?: number;
  "source-ids"?: number[];
  "field-id": number;
  name: string;
  transform: string;
}

export interface SortField {
  "source-id"?: number;
  "source-ids"?: number[];
  transform: string;
  direction: string;
  "null-order": string;
}

export interface ViewMetadata {
  "view-uuid": string;
  location: string;
  "current-version-id": number;
  schemas: Schema[];
  versions: ViewVersion[];
  properties?: Record<string, string>;
}

export interface ViewVersion {
  "version-id": number;
  "schema-id": number;
  "timestamp-ms": number;
  summary: Record<string, string>;
  representations: { type: string; sql: string; dialect: string }[];
  "default-catalog"?: string;
  "default-namespace": string[];
}

export interface LoadedEntity<Metadata> {
  "metadata-location": string;
  metadata: Metadata;
}

const opened = new Map<string, Promise<Catalog>>();
computed(() => login.value?.token).subscribe(() => opened.clear()); // each login opens catalogs by its own rights

/** Returns the catalog with a name, from memory if a page opened it before with this login. */
export function openCatalog(name: string): Promise<Catalog> {
  const known = opened.get(name);
  if (known) return known;
  const opening = readCatalog(name);
  opened.set(name, opening);
  opening.catch(() => opened.delete(name));
  return opening;
}

async function readCatalog(name: string): Promise<Catalog> {
  const config = await read<Config>("v1/config", { query: { warehouse: name } });
  return {
    name,
    prefix: config.overrides.prefix ?? encodeURIComponent(name),
    fileIo: config["file-io"] ?? {},
    takesKeys: config["idempotency-key-lifetime"] !== undefined,
  };
}

interface Config {
  overrides: Record<string, string>;
  "file-io"?: Record<string, string>;
  "idempotency-key-lifetime"?: string;
}

interface Listing {
  identifiers?: { namespace: string[]; name: string }[];
  namespaces?: string[][];
  "next-page-token"?: string | null;
}

const PAGE_SIZE = 200;

/** Returns a page of the namespaces directly below another, or of those at the top. */
export async function listNamespaces(
  catalog: Catalog,
  parent: Namespace,
  token: string | null,
  signal: AbortSignal,
): Promise<Page<string[]>> {
  const query = { parent: joined(parent) || null, pageToken: token ?? "", pageSize: PAGE_SIZE };
  const found = await read<Listing>(`v1/${catalog.prefix}/namespaces`, { query, signal });
  return { items: found.namespaces ?? [], next: found["next-page-token"] ?? null };
}

/** Returns a page of the names of tables or views in a namespace. */
export async function listNames(
  catalog: Catalog,
  namespace: Namespace,
  of: "tables" | "views",
  token: string | null,
  signal: AbortSignal,
): Promise<Page<string>> {
  const query = { pageToken: token ?? "", pageSize: PAGE_SIZE };
  const found = await read<Listing>(apiPath(catalog.prefix, namespace, of), { query, signal });
  return { items: (found.identifiers ?? []).map(({ name }) => name), next: found["next-page-token"] ?? null };
}

/** The snapshot that a table is at; undefined if it has none, or if it is not among those that were loaded. */
export function currentSnapshot(table: TableMetadata): Snapshot | undefined {
  return table.snapshots?.find((each) => String(each["snapshot-id"]) === String(table["current-snapshot-id"]));
}

/** Loads a table. With `refs` it has the snapshots alone that a branch or tag names. */
export function loadTable(
  catalog: Catalog,
  namespace: Namespace,
  name: string,
  snapshots: "refs" | "all",
  signal: AbortSignal,
): Promise<LoadedEntity<TableMetadata>> {
  return read(apiPath(catalog.prefix, namespace, "tables", name), { query: { snapshots }, signal });
}

export function loadView(
  catalog: Catalog,
  namespace: Namespace,
  name: string,
  signal: AbortSignal,
): Promise<LoadedEntity<ViewMetadata>> {
  return read(apiPath(catalog.prefix, namespace, "views", name), { signal });
}
