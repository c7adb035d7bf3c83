import { ApiError, read } from "../api";
import type { Catalog } from "../catalog";
import { type Page, type Result, usePages } from "../load";
import { pages } from "../names";
import { DataTable, Empty, Failure, Section } from "../parts/basics";
import { ChangeButton } from "../parts/change";
import { PagedList } from "../parts/listing";
import { type Grant, type Right, useRights } from "../rights";
import { hasRealms } from "../session";
import { managing, revoking } from "./grant-changes";
import { GrantOn } from "./grant-form";
import { Because, describe } from "./grant-parts";
import { OwnRights, type Securable } from "./own-rights";

interface AccessRow {
  "principal-role": string;
  principal: string | null;
  privileges: { privilege: string; "catalog-role": string | null; grant: Grant }[];
}

interface AccessPage extends Page<AccessRow> {
  checked: boolean;
}

/** Who can do what here, and by which grant, and what the user may do. */
export function Access({ catalog, path, on }: { catalog: Catalog; path: string; on: Securable }) {
  return (
    <>
      <AccessOfAll catalog={catalog} path={path} on={on} />
      <OwnRights catalog={catalog} on={on} />
    </>
  );
}

function AccessOfAll({ catalog, path, on }: { catalog: Catalog; path: string; on: Securable }) {
  const rows = usePages<AccessRow & { checked: boolean }>(
    async (token, signal) => {
      const found = await readAccess(path, token, signal);
      return { items: found.items.map((each) => ({ ...each, checked: found.checked })), next: found.next };
    },
    [path],
  );
  const revocable = rows.items
    .flatMap(({ privileges }) => privileges)
    .filter((each) => each["catalog-role"] !== null && isOn(each.grant, on));
  const right = useRights(
    catalog.name,
    revocable.map(({ grant }) => managing(grant)),
  );
  if (rows.error instanceof ApiError && rows.error.status === 403) return <Denied error={rows.error} />;
  return (
    <Section title="Who can do what">
      {rows.items[0] && !rows.items[0].checked && <Unchecked />}
      {hasRealms() && <GrantOn catalog={catalog.name} on={on} />}
      <PagedList of={rows} empty={<NobodyOrUnchecked />}>
        {(items) => (
          <DataTable label="Access" columns={["Principal role", "Principal", "May", "Because of", "Change"]}>
            {items.flatMap((row) =>
              row.privileges.map((each, at) => (
                <tr key={`${row["principal-role"]}/${row.principal}/${each.privilege}/${each["catalog-role"]}`}>
                  {at === 0 && (
                    <>
                      <th scope="row" rowSpan={row.privileges.length}>
                        <bdi>{row["principal-role"]}</bdi>
                      </th>
                      <td rowSpan={row.privileges.length}>
                        {row.principal === null ? <span class="faint">none yet</span> : <bdi>{row.principal}</bdi>}
                      </td>
                    </>
                  )}
                  <td>{each.privilege}</td>
                  <td>
                    <Because catalog={catalog.name} role={each["catalog-role"]} grant={each.grant} />
                  </td>
                  <td>
                    {isFirstOfGrant(row, at) && (
                      <Revoke
                        catalog={catalog.name}
                        on={on}
                        role={each["catalog-role"]}
                        grant={each.grant}
                        right={right}
                      />
                    )}
                  </td>
                </tr>
              )),
            )}
          </DataTable>
        )}
      </PagedList>
    </Section>
  );
}

/** Whether no privilege above the one at `at` is due to the same grant, which is revoked by one button. */
function isFirstOfGrant({ privileges }: AccessRow, at: number): boolean {
  const keys = privileges.map((each) => JSON.stringify([each["catalog-role"], each.grant]));
  return keys.indexOf(keys[at] ?? "") === at;
}

/** Whether a grant is on this, and not on what contains it. */
function isOn(grant: Grant, on: Securable): boolean {
  return JSON.stringify(placeOf(grant)) === JSON.stringify(placeOf(on));
}

function placeOf({ type, namespace, tableName, viewName }: Securable | Grant) {
  return [type, namespace, tableName, viewName];
}

interface RevokeProps {
  catalog: string;
  on: Securable;
  role: string | null;
  grant: Grant;
  right: (check: Grant) => Result<Right>;
}

/** Revokes the grant that gives a privilege here, also to others. One on what contains this gives it elsewhere, too, and is
 * revoked on the page of its role. A grant on the realm, which needs no catalog role, stays. */
function Revoke({ catalog, on, role, grant, right }: RevokeProps) {
  if (role === null) return null;
  if (!isOn(grant, on)) {
    return (
      <a href={pages.role(catalog, role)}>
        Grants of <bdi>{role}</bdi>
      </a>
    );
  }
  return (
    <ChangeButton
      label="Revoke"
      about={`${describe(catalog, grant)} from ${role}`}
      right={right(managing(grant))}
      intent={() => revoking(catalog, role, grant)}
    />
  );
}

async function readAccess(path: string, token: string | null, signal: AbortSignal): Promise<AccessPage> {
  const answer = await read<{ checked: boolean; access: AccessRow[]; "next-page-token": string | null }>(path, {
    query: { pageToken: token },
    signal,
  });
  return { checked: answer.checked, items: answer.access, next: answer["next-page-token"] };
}

function Denied({ error }: { error: ApiError }) {
  return (
    <>
      <Failure error={error} />
      <Empty>Those who may manage grants here can see who has access.</Empty>
    </>
  );
}

function Unchecked() {
  return <p class="notice">This server checks no grants: everyone who can connect may do everything.</p>;
}

function NobodyOrUnchecked() {
  return (
    <>
      No role has access by a grant. On a server without logins that is so, and everyone who can connect may do
      everything; with logins, <code>arco grants add</code> makes a grant.
    </>
  );
}
