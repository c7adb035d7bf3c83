/** Privileges and grants: how they are shown. */
import { words } from "../format";
import { dotted, pages } from "../names";

/** A grant as the APIs show it. */
export interface Grant {
  type: string;
  namespace?: readonly string[];
  tableName?: string;
  viewName?: string;
  policyName?: string;
  privilege: string;
}

/** By which grant, and in which catalog role, someone has a privilege. */
export function Because({ catalog, role, grant }: { catalog: string; role: string | null; grant: Grant }) {
  return (
    <>
      {words(grant.privilege)} on <GrantedOn grant={grant} />
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
export function GrantedOn({ grant }: { grant: Grant }) {
  return (
    <>
      {grant.type} <bdi>{dotted(grant.namespace ?? [], grant.tableName ?? grant.viewName ?? grant.policyName)}</bdi>
    </>
  );
}

/** A grant as one text. */
export function describe({ type, namespace, tableName, viewName, policyName, privilege }: Grant): string {
  return `${words(privilege)} on ${type} ${dotted(namespace ?? [], tableName ?? viewName ?? policyName)}`.trim();
}
