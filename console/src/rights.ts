/** Whether the user may change something: what the API that checks privileges answers, before a page offers it. */
import { post, read } from "./api";
import { type Result, useLoad } from "./load";
import { managementPath } from "./names";
import { hasRealms } from "./session";

/** A grant as the APIs show it: a privilege, and what it is on. */
export interface Grant {
  type: string;
  namespace?: readonly string[];
  tableName?: string;
  viewName?: string;
  policyName?: string;
  privilege: string;
}

/** Whether something is allowed, and if not, why. */
export interface Right {
  allowed: boolean;
  reason: string;
}

/** The maximum number of privileges in one request. */
const BATCH = 1000;
/** What needs no check. */
export const ALLOWED: Right = { allowed: true, reason: "" };

/** Returns a right for each privilege on something, in order, by one request. If that fails, all are refused for it. */
export async function checkRights(
  catalog: string,
  checks: readonly Grant[],
  signal: AbortSignal,
): Promise<readonly Right[]> {
  if (checks.length === 0) return [];
  try {
    if (hasRealms()) return await checked(catalog, checks, signal);
    const reason = await readOnlyBecause(catalog, signal);
    return checks.map(() => (reason === null ? ALLOWED : { allowed: false, reason: `Read-only: ${reason}` }));
  } catch (error) {
    return checks.map(() => ({ allowed: false, reason: (error as Error).message }));
  }
}

async function checked(catalog: string, checks: readonly Grant[], signal: AbortSignal): Promise<Right[]> {
  const path = managementPath("catalogs", catalog, "check");
  const found: Right[] = [];
  for (let at = 0; at < checks.length; at += BATCH) {
    const batch = checks.slice(at, at + BATCH);
    const { results } = await post<{ results: { allowed: boolean; reason?: string }[] }>(
      path,
      { checks: batch },
      signal,
    );
    found.push(...results.map(({ allowed, reason }) => ({ allowed, reason: reason ?? "" })));
  }
  return found;
}

/** Returns the right to what takes several privileges. */
export function allOf(rights: readonly Right[]): Right {
  return rights.find(({ allowed }) => !allowed) ?? ALLOWED;
}

/** Returns the right to what takes several privileges, once all are known. */
export function bothOf(rights: readonly Result<Right>[]): Result<Right> {
  return rights.find((each) => each.state !== "loaded" || !each.value.allowed) ?? { state: "loaded", value: ALLOWED };
}

/** The right to each of several privileges on something, checked in one batch: the function that finds it. */
export function useRights(catalog: string, checks: readonly Grant[]): (check: Grant) => Result<Right> {
  const keys = [...new Set(checks.map(keyOf))];
  const found = useLoad(
    (signal) =>
      checkRights(
        catalog,
        keys.map((key) => JSON.parse(key)),
        signal,
      ),
    [catalog, keys.join()],
  );
  return (check) => rightAt(found, keys.indexOf(keyOf(check)));
}

function keyOf(check: Grant): string {
  return JSON.stringify(check);
}

/** The right to one thing that takes several privileges. */
export function useRight(catalog: string, checks: readonly Grant[]): Result<Right> {
  return useLoad(
    async (signal) => allOf(await checkRights(catalog, checks, signal)),
    [catalog, JSON.stringify(checks)],
  );
}

/** The right to each of several privileges on the realm itself. They are checked in one of its catalogs; without any the
 * server judges each change. */
export function useRealmRights(privileges: readonly string[]): (privilege: string) => Result<Right> {
  const found = useLoad(
    async (signal) => {
      const { catalogs } = await read<{ catalogs: { name: string }[] }>(managementPath("catalogs"), { signal });
      const checks = privileges.map((privilege) => ({ type: "catalog", privilege }));
      return catalogs[0] ? checkRights(catalogs[0].name, checks, signal) : privileges.map(() => ALLOWED);
    },
    [privileges.join()],
  );
  return (privilege) => rightAt(found, privileges.indexOf(privilege));
}

/** Returns one of several rights, as far as they are known. What failed to be checked is refused. */
function rightAt(rights: Result<readonly Right[]>, at: number): Result<Right> {
  if (rights.state === "failed") {
    return { state: "loaded", value: { allowed: false, reason: rights.error.message } };
  }
  const value = rights.state === "loaded" ? rights.value[at] : undefined;
  return value === undefined ? { state: "loading" } : { state: "loaded", value };
}

/** Why a catalog takes no changes, which servers without realms answer; null if it takes them. */
export async function readOnlyBecause(name: string, signal: AbortSignal): Promise<string | null> {
  if (hasRealms()) return null;
  const health = await read<{ warehouses: { name: string; read_only_because: string | null }[] }>("health", { signal });
  return health.warehouses.find((each) => each.name === name)?.read_only_because ?? null;
}
