/** Privileges and grants: how they are shown. */
import { dotted } from "../names";
import { href } from "../router";

/** A grant as the APIs show it. */
export interface Grant {
  type: string;
  namespace?: string[];
  tableName?: string;
  viewName?: string;
  privilege: string;
}

/** By which grant, and in which catalog role, someone has a privilege. */
export function Because({ catalog, role, grant }: { catalog: string; role: string | null; grant: Grant }) {
  const where = dotted(grant.namespace ?? [], grant.tableName ?? grant.viewName);
  return (
    <>
      {words(grant.privilege)} on {grant.type} <bdi>{where}</bdi>
      {role !== null && (
        <span class="faint">
          {" "}
          in <a href={href(["c", catalog, "roles", role])}>{role}</a>
        </span>
      )}
    </>
  );
}

/** A privilege as people read it. */
export function words(privilege: string): string {
  return privilege.toLowerCase().replaceAll("_", " ");
}
