import { post } from "../api";
import type { Catalog } from "../catalog";
import { useLoad } from "../load";
import { managementPath, type Namespace } from "../names";
import { Chip, DataTable, Loaded, Section } from "../parts/basics";
import type { Grant } from "../rights";
import { hasRealms, login } from "../session";
import { Because } from "./grant-parts";

/** What a privilege is on, in the form of a grant. */
export interface Securable {
  type: "catalog" | "namespace" | "table" | "view";
  namespace?: Namespace;
  tableName?: string;
  viewName?: string;
}

interface Outcome {
  allowed: boolean;
  principal: string | null;
  reason?: string;
  catalogRole?: string;
  grant?: Grant;
}

const ON_NAMES = ["LIST", "READ_PROPERTIES", "WRITE_PROPERTIES", "DROP"];
const PRIVILEGES: Record<Securable["type"], string[]> = {
  catalog: ["NAMESPACE_LIST", "NAMESPACE_CREATE", "CATALOG_MANAGE_METADATA", "CATALOG_MANAGE_CONTENT"],
  namespace: [...ON_NAMES.map((each) => `NAMESPACE_${each}`), "TABLE_CREATE", "VIEW_CREATE"],
  table: [...ON_NAMES.map((each) => `TABLE_${each}`), "TABLE_READ_DATA", "TABLE_WRITE_DATA"],
  view: ON_NAMES.map((each) => `VIEW_${each}`),
};

/** What the user may do to something and by which grant, or which privilege is lacking, in the words of the API. */
export function OwnRights({ catalog, on }: { catalog: Catalog; on: Securable }) {
  return hasRealms() && login.value !== null ? <Checked catalog={catalog} on={on} /> : null;
}

/** Who the user is to the catalog, as it was at the sign-in. */
function Caller() {
  const { name, roles } = login.value ?? {};
  if (roles === undefined) return null;
  return (
    <p class="faint">
      You are <bdi>{name}</bdi>, {roles.length === 0 ? "without a principal role" : "with the principal roles"}{" "}
      {roles.map((role, at) => (
        <span key={role}>
          {at > 0 && ", "}
          <bdi>{role}</bdi>
        </span>
      ))}
    </p>
  );
}

function Checked({ catalog, on }: { catalog: Catalog; on: Securable }) {
  const privileges = [...PRIVILEGES[on.type], "CATALOG_MANAGE_ACCESS"];
  const checks = privileges.map((privilege) => ({ ...on, privilege }));
  const path = managementPath("catalogs", catalog.name, "check");
  const loaded = useLoad(
    async (signal) => (await post<{ results: Outcome[] }>(path, { checks }, signal)).results,
    [path, JSON.stringify(on)],
  );
  return (
    <Section title="What you may do">
      <Caller />
      <Loaded of={loaded}>
        {(results) => (
          <DataTable label="What you may do" columns={["To", "You may", "Why"]}>
            {results.map((each, at) => (
              <tr key={privileges[at]}>
                <th scope="row">{privileges[at]}</th>
                <td>{each.allowed ? <Chip kind="good">yes</Chip> : <Chip kind="bad">no</Chip>}</td>
                <td>
                  {each.grant ? (
                    <Because catalog={catalog.name} role={each.catalogRole ?? null} grant={each.grant} />
                  ) : (
                    <bdi>{each.reason}</bdi>
                  )}
                </td>
              </tr>
            ))}
          </DataTable>
        )}
      </Loaded>
    </Section>
  );
}
