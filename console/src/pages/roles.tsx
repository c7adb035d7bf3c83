import { read } from "../api";
import type { Catalog } from "../catalog";
import { shellWord } from "../format";
import { type Result, useLoad } from "../load";
import { managementPath, pages } from "../names";
import { DataTable, Empty, Heading, Loaded, Section } from "../parts/basics";
import { ChangeButton, ChangeForm } from "../parts/change";
import { type Grant, type Right, useRight, useRights } from "../rights";
import { hasRealms } from "../session";
import {
  creatingCatalogRole,
  deletingCatalogRole,
  givingCatalogRole,
  managing,
  revoking,
  takingCatalogRole,
} from "./grant-changes";
import { GrantToRole } from "./grant-form";
import { describe, GrantedOn } from "./grant-parts";
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
    return (
      <RolePage
        base={base}
        catalog={catalog.name}
        role={role}
        crumbs={[...crumbs, ["Roles", pages.roles(catalog.name)]]}
      />
    );
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
  const right = useRight(catalog, [{ type: "catalog", privilege: "CATALOG_ROLE_CREATE" }]);
  return (
    <Section title="Catalog roles">
      <ChangeForm
        label="Create a catalog role"
        right={right}
        intent={(data) => creatingCatalogRole(catalog, String(data.get("name")))}
      >
        <label>
          Name of the catalog role
          <input name="name" required spellcheck={false} autocomplete="off" />
        </label>
      </ChangeForm>
      <Loaded of={loaded}>
        {({ roles }) =>
          roles.length === 0 ? (
            <Empty>No roles.</Empty>
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

const DROPS: Grant = { type: "catalog", privilege: "CATALOG_ROLE_DROP" };
const ASSIGNS: Grant = { type: "catalog", privilege: "CATALOG_ROLE_MANAGE_GRANTS" };

interface RoleProps {
  base: string;
  catalog: string;
  role: string;
  crumbs: [string, string][];
}

function RolePage({ base, catalog, role, crumbs }: RoleProps) {
  const path = `${base}/${encodeURIComponent(role)}`;
  const grants = useLoad((signal) => read<{ grants: Grant[] }>(`${path}/grants`, { signal }), [path]);
  const held = grants.state === "loaded" ? grants.value.grants : null;
  const checks = grants.state === "loading" ? [] : [DROPS, ASSIGNS, ...(held ?? []).map(managing)]; // one batch
  const right = useRights(catalog, checks);
  return (
    <>
      <Heading title={role} kind="Catalog role" crumbs={crumbs}>
        {held !== null && (
          <p>
            <ChangeButton
              label="Delete the role"
              about={role}
              right={right(DROPS)}
              intent={() => deletingCatalogRole(catalog, role)}
            />
          </p>
        )}
      </Heading>
      <div class="halves">
        <Section title="Grants">
          <Loaded of={grants}>
            {(found) => <Grants catalog={catalog} role={role} grants={found.grants} right={right} />}
          </Loaded>
        </Section>
        <Section title="Principal roles that have it">
          <Holders path={path} catalog={catalog} role={role} right={right(ASSIGNS)} />
        </Section>
      </div>
    </>
  );
}

interface GrantsProps {
  catalog: string;
  role: string;
  grants: Grant[];
  right: (check: Grant) => Result<Right>;
}

function Grants({ catalog, role, grants, right }: GrantsProps) {
  return (
    <>
      <GrantToRole catalog={catalog} role={role} />
      {grants.length === 0 ? (
        <Empty>
          No grants. <code>arco grants add {shellWord(role)} TABLE_READ_DATA</code> makes one, too.
        </Empty>
      ) : (
        <DataTable label="Grants" columns={["Privilege", "On", "Change"]}>
          {grants.map((grant) => (
            <tr key={JSON.stringify(grant)}>
              <th scope="row">{grant.privilege}</th>
              <td>
                <GrantedOn catalog={catalog} grant={grant} />
              </td>
              <td>
                <ChangeButton
                  label="Revoke"
                  about={describe(catalog, grant)}
                  right={right(managing(grant))}
                  intent={() => revoking(catalog, role, grant)}
                />
              </td>
            </tr>
          ))}
        </DataTable>
      )}
    </>
  );
}

interface HoldersProps {
  path: string;
  catalog: string;
  role: string;
  right: Result<Right>;
}

function Holders({ path, catalog, role, right }: HoldersProps) {
  const holders = useLoad((signal) => read<{ roles: Role[] }>(`${path}/principal-roles`, { signal }), [path]);
  return (
    <>
      <ChangeForm
        label="Give it to a principal role"
        right={right}
        intent={(data) => givingCatalogRole(catalog, role, String(data.get("name")))}
      >
        <label>
          Name of the principal role
          <input name="name" required spellcheck={false} autocomplete="off" />
        </label>
      </ChangeForm>
      <Loaded of={holders}>
        {({ roles }) =>
          roles.length === 0 ? (
            <Empty>None has it, so it has no effect.</Empty>
          ) : (
            <ul class="lines">
              {roles.map(({ name }) => (
                <li key={name}>
                  <bdi>{name}</bdi>{" "}
                  <ChangeButton
                    label="Take away"
                    about={name}
                    right={right}
                    intent={() => takingCatalogRole(catalog, role, name)}
                  />
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </>
  );
}
