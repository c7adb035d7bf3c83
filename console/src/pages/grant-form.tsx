/** Forms by which a privilege is granted: to a role on anything in the catalog, or on one thing to any role. */
import { useState } from "preact/hooks";
import { read } from "../api";
import { useLoad } from "../load";
import { managementPath } from "../names";
import { Loading } from "../parts/basics";
import { ChangeForm } from "../parts/change";
import PRIVILEGES from "../privileges.json";
import { ALLOWED, type Grant } from "../rights";
import { granting } from "./grant-changes";
import type { Securable } from "./own-rights";
import { namespaceIn, PlaceFields } from "./place-fields";

type Type = Securable["type"];

const TYPES: readonly Type[] = ["catalog", "namespace", "table", "view"];
/** The dialog checks the right, once it is known to what. */
const CHECKED_LATER = { state: "loaded", value: ALLOWED } as const;

function PrivilegeField({ type }: { type: Type }) {
  return (
    <label>
      Privilege
      <select name="privilege" required>
        <Unchosen />
        {PRIVILEGES[type].map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    </label>
  );
}

/** What a list shows before something is chosen. The form is not complete with it. */
function Unchosen() {
  return <option value="">choose…</option>;
}

/** Grants a catalog role a privilege on anything, by its name. */
export function GrantToRole({ catalog, role }: { catalog: string; role: string }) {
  const [type, setType] = useState<Type>("catalog");
  const grantIn = (data: FormData): Grant => ({
    type,
    ...(type === "catalog" ? {} : { namespace: namespaceIn(data) }),
    ...(type === "table" || type === "view" ? { [`${type}Name`]: String(data.get("name")) } : {}),
    privilege: String(data.get("privilege")),
  });
  return (
    <ChangeForm
      label="Grant a privilege"
      whole
      right={CHECKED_LATER}
      intent={(data) => granting(catalog, role, grantIn(data))}
    >
      <PlaceFields label="On" types={TYPES} type={type} setType={setType} />
      <PrivilegeField type={type} />
    </ChangeForm>
  );
}

/** Grants any catalog role a privilege on one thing. The roles are read when this is opened. */
export function GrantOn({ catalog, on }: { catalog: string; on: Securable }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>Grant a privilege here</summary>
      {open && <RoleAndPrivilege catalog={catalog} on={on} />}
    </details>
  );
}

function RoleAndPrivilege({ catalog, on }: { catalog: string; on: Securable }) {
  const path = managementPath("catalogs", catalog, "catalog-roles");
  const loaded = useLoad((signal) => read<{ roles: { name: string }[] }>(path, { signal }), [path]);
  if (loaded.state === "loading") return <Loading />;
  return (
    <ChangeForm
      label="Grant a privilege"
      whole
      right={CHECKED_LATER}
      intent={(data) =>
        granting(catalog, String(data.get("role")), { ...on, privilege: String(data.get("privilege")) })
      }
    >
      <RoleField names={loaded.state === "loaded" ? loaded.value.roles.map(({ name }) => name) : null} />
      <PrivilegeField type={on.type} />
    </ChangeForm>
  );
}

/** The catalog roles to choose from; for who may not list them a field for the name. */
function RoleField({ names }: { names: readonly string[] | null }) {
  if (names === null) {
    return (
      <label>
        To the catalog role
        <input name="role" required spellcheck={false} autocomplete="off" />
      </label>
    );
  }
  return (
    <label>
      To the catalog role
      <select name="role" required>
        <Unchosen />
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
