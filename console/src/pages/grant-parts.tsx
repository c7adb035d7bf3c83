/** Privileges and grants: how they are shown. */
import { dotted, pages } from "../names";
import type { Grant } from "../rights";

/** By which grant, and in which catalog role, someone has a privilege. */
export function Because({ catalog, role, grant }: { catalog: string; role: string | null; grant: Grant }) {
  return (
    <>
      {grant.privilege} on <GrantedOn catalog={catalog} grant={grant} />
      {role !== null && (
        <span class="faint">
          {" "}
          in <a href={pages.role(catalog, role)}>{role}</a>
        </span>
      )}
    </>
  );
}

/** What a grant is on: its type and its name. */
export function GrantedOn({ catalog, grant }: { catalog: string; grant: Grant }) {
  return (
    <>
      {grant.type} <bdi>{nameOf(catalog, grant)}</bdi>
    </>
  );
}

/** A grant as one text. */
export function describe(catalog: string, grant: Grant): string {
  return `${grant.privilege} on ${grant.type} ${nameOf(catalog, grant)}`.trim();
}

/** The name of what a grant in a catalog is on; empty for one on the realm. */
function nameOf(catalog: string, { type, namespace, tableName, viewName, policyName }: Grant): string {
  return type === "catalog" ? catalog : dotted(namespace ?? [], tableName ?? viewName ?? policyName);
}
