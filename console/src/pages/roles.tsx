import { read } from "../api";
import type { Catalog } from "../catalog";
import { shellWord, words } from "../format";
import { useLoad } from "../load";
import { managementPath, pages } from "../names";
import { DataTable, Empty, Heading, Loaded, Section } from "../parts/basics";
import { hasRealms } from "../session";
import { type Grant, GrantedOn } from "./grant-parts";
import { OwnRights } from "./own-rights";

interface Role {
  name: string;
}

/** The catalog roles of a catalog, and of one of them its grants and the principal roles that have it. */
export function RolesPage({ catalog, role }: { catalog: Catalog; role: string | null }) {
  const base = managementPath("catalogs", catalog.name, "catalog-roles");
  const crumbs: [string, string][] = [[catalog.name, pages.catalog(catalog.name)]];
  if (!hasRealms()) {
    return (
      <>
        <Heading title="Roles and grants" crumbs={crumbs} />
        <Empty>
          This server has no realm, so there are no roles, and everyone who can connect may do everything.{" "}
          <code>arco bootstrap</code> makes a realm, and <code>arco serve --auth internal</code> requires logins.
        </Empty>
      </>
    );
  }
  if (role !== null)
    return <RolePage base={base} role={role} crumbs={[...crumbs, ["Roles", pages.roles(catalog.name)]]} />;
  return (
    <>
      <Heading title="Roles and grants" crumbs={crumbs} />
      <OwnRights catalog={catalog} on={{ type: "catalog" }} />
      <RoleList base={base} catalog={catalog.name} />
    </>
  );
}

function RoleList({ base, catalog }: { base: string; catalog: string }) {
  const loaded = useLoad((signal) => read<{ roles: Role[] }>(base, { signal }), [base]);
  return (
    <Section title="Catalog roles">
      <Loaded of={loaded}>
        {({ roles }) =>
          roles.length === 0 ? (
            <Empty>
              No roles. <code>arco roles create NAME --catalog-role</code> makes one.
            </Empty>
          ) : (
            <ul class="lines">
              {roles.map(({ name }) => (
                <li key={name}>
                  <a href={pages.role(catalog, name)}>
                    <bdi>{name}</bdi>
                  </a>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Section>
  );
}

function RolePage({ base, role, crumbs }: { base: string; role: string; crumbs: [string, string][] }) {
  const path = `${base}/${encodeURIComponent(role)}`;
  const grants = useLoad((signal) => read<{ grants: Grant[] }>(`${path}/grants`, { signal }), [path]);
  const holders = useLoad((signal) => read<{ roles: Role[] }>(`${path}/principal-roles`, { signal }), [path]);
  return (
    <>
      <Heading title={role} kind="Catalog role" crumbs={crumbs} />
      <div class="halves">
        <Section title="Grants">
          <Loaded of={grants}>
            {(found) =>
              found.grants.length === 0 ? (
                <Empty>
                  No grants. <code>arco grants add {shellWord(role)} TABLE_READ_DATA</code> makes one.
                </Empty>
              ) : (
                <DataTable label="Grants" columns={["Privilege", "On"]}>
                  {found.grants.map((grant) => (
                    <tr key={JSON.stringify(grant)}>
                      <th scope="row">{words(grant.privilege)}</th>
                      <td>
                        <GrantedOn grant={grant} />
                      </td>
                    </tr>
                  ))}
                </DataTable>
              )
            }
          </Loaded>
        </Section>
        <Section title="Principal roles that have it">
          <Loaded of={holders}>
            {({ roles }) =>
              roles.length === 0 ? <Empty>None has it, so it has no effect.</Empty> : <Names of={roles} />
            }
          </Loaded>
        </Section>
      </div>
    </>
  );
}

function Names({ of }: { of: Role[] }) {
  return (
    <ul class="lines">
      {of.map(({ name }) => (
        <li key={name}>
          <bdi>{name}</bdi>
        </li>
      ))}
    </ul>
  );
}
