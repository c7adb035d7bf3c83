/** Names in addresses: of the API, whose namespaces are levels, and of this console's pages. */
import { href } from "./router";

export const LEVELS = "\u001f";

export type Namespace = readonly string[];

/** Returns a namespace as one text, as APIs and addresses have it. Unlike `dotted`, it differs for any two namespaces. */
export function joined(namespace: Namespace): string {
  return namespace.join(LEVELS);
}

/** Returns the namespace that `joined` made a text of. */
export function levelsOf(text: string): Namespace {
  return text ? text.split(LEVELS) : [];
}

/** The kinds of things with a page of their own below a namespace, as the first part of their addresses. */
export type Kind = "t" | "v";

/** Returns the path of the catalog API to a namespace, or to something in it. */
export function apiPath(prefix: string, namespace: Namespace, ...rest: string[]): string {
  const parts = [joined(namespace), ...rest].map(encodeURIComponent);
  return `v1/${prefix}/namespaces/${parts.join("/")}`;
}

/** Returns the path of the management API to something. */
export function managementPath(...parts: string[]): string {
  return `api/management/v1/${parts.map(encodeURIComponent).join("/")}`;
}

/** Returns a namespace, and a name in it, as people write them. */
export function dotted(namespace: Namespace, name?: string | null): string {
  return [...namespace, ...(name === undefined || name === null ? [] : [name])].join(".");
}

/** The addresses of the console's pages. */
export const pages = {
  home: () => href([]),
  catalog: (catalog: string) => href(["c", catalog]),
  search: (catalog: string, q: string, type?: string) => href(["c", catalog, "search"], { q, type }),
  namespaces: (catalog: string) => href(["c", catalog, "namespaces"]),
  history: (catalog: string, query: Record<string, string | undefined> = {}) => href(["c", catalog, "history"], query),
  tasks: (catalog: string, status?: string) => href(["c", catalog, "tasks"], { status }),
  task: (catalog: string, id: string) => href(["c", catalog, "tasks", id]),
  policies: (catalog: string) => href(["c", catalog, "policies"]),
  roles: (catalog: string) => href(["c", catalog, "roles"]),
  role: (catalog: string, role: string) => href(["c", catalog, "roles", role]),
  principals: () => href(["principals"]),
  namespace: (catalog: string, namespace: Namespace, ...rest: string[]) =>
    href(["c", catalog, "n", joined(namespace), ...rest]),
  entity: (
    catalog: string,
    kind: Kind,
    namespace: Namespace,
    name: string,
    rest: readonly string[] = [],
    query: Record<string, string | undefined> = {},
  ) => href(["c", catalog, kind, joined(namespace), name, ...rest], query),
};
