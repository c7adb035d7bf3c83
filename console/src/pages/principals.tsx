/** The principals and principal roles of the realm, for those who may list them, and to change for who may. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { read } from "../api";
import { nameIn } from "../identity";
import { type Result, useLoad } from "../load";
import { managementPath, pages } from "../names";
import { Empty, Heading, Loaded, Section } from "../parts/basics";
import { ChangeButton, ChangeForm, type Intent } from "../parts/change";
import { ALLOWED, type Right, useRealmRights } from "../rights";
import { login } from "../session";
import { creatingPrincipal, creatingRole, deleting, giving, resetting, rotating, taking } from "./principal-changes";

interface Named {
  name: string;
  clientId?: string;
}

const PRIVILEGES = [
  "PRINCIPAL_CREATE",
  "PRINCIPAL_DROP",
  "PRINCIPAL_RESET_CREDENTIALS",
  "PRINCIPAL_ROLE_CREATE",
  "PRINCIPAL_ROLE_DROP",
  "PRINCIPAL_ROLE_MANAGE_GRANTS",
];

export function PrincipalsPage() {
  const right = useRealmRights(PRIVILEGES);
  const principals = useLoad((signal) => list("principals", "principals", signal), []);
  const roles = useLoad((signal) => list("principal-roles", "roles", signal), []);
  return (
    <>
      <Heading title="Principals and principal roles" crumbs={[["Catalogs", pages.home()]]} />
      <OwnCredentials />
      <div class="halves">
        <Section title="Principals">
          <Loaded of={principals}>
            {(names) => (
              <>
                <NewPrincipal right={right("PRINCIPAL_CREATE")} />
                <Opening names={names} inside={({ name }) => <Principal name={name} roles={roles} right={right} />} />
              </>
            )}
          </Loaded>
        </Section>
        <Section title="Principal roles">
          <Loaded of={roles}>
            {(names) => (
              <>
                <NewRole right={right("PRINCIPAL_ROLE_CREATE")} />
                <Opening names={names} inside={({ name }) => <PrincipalRole name={name} right={right} />} />
              </>
            )}
          </Loaded>
        </Section>
      </div>
    </>
  );
}

async function list(path: string, field: string, signal: AbortSignal): Promise<Named[]> {
  return (await read<Record<string, Named[]>>(managementPath(path), { signal }))[field] ?? [];
}

/** A new secret for the user, whose name the token has if this server made it. */
function OwnCredentials() {
  const name = nameIn(login.value?.token ?? "");
  if (name === null) return null;
  return (
    <p>
      <ChangeButton
        label="Rotate your credentials"
        about={name}
        right={{ state: "loaded", value: ALLOWED }}
        intent={() => rotating(name)}
      />
    </p>
  );
}

function NewPrincipal({ right }: { right: Result<Right> }) {
  const intent = (data: FormData) => creatingPrincipal(String(data.get("name")), data.get("rotates") === "on");
  return (
    <ChangeForm label="Create a principal" right={right} intent={intent}>
      <label>
        Name of the principal
        <input name="name" required spellcheck={false} autocomplete="off" />
      </label>
      <label class="check">
        <input type="checkbox" name="rotates" /> must rotate its credentials first
      </label>
    </ChangeForm>
  );
}

function NewRole({ right }: { right: Result<Right> }) {
  return (
    <ChangeForm label="Create a principal role" right={right} intent={(data) => creatingRole(String(data.get("name")))}>
      <label>
        Name of the principal role
        <input name="name" required spellcheck={false} autocomplete="off" />
      </label>
    </ChangeForm>
  );
}

/** Names of which each can be opened. */
function Opening({ names, inside }: { names: Named[]; inside: (each: Named) => ComponentChildren }) {
  return (
    <ul class="lines">
      {names.map((each) => (
        <li key={each.name}>
          <Opened each={each} inside={inside} />
        </li>
      ))}
    </ul>
  );
}

function Opened({ each, inside }: { each: Named; inside: (each: Named) => ComponentChildren }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>
        <bdi>{each.name}</bdi> <span class="faint">{each.clientId ?? ""}</span>
      </summary>
      {open && inside(each)}
    </details>
  );
}

type Rights = (privilege: string) => Result<Right>;

function Principal({ name, roles, right }: { name: string; roles: Result<Named[]>; right: Rights }) {
  const manages = right("PRINCIPAL_ROLE_MANAGE_GRANTS");
  return (
    <div class="stack">
      <Members
        path={managementPath("principals", name, "principal-roles")}
        field="roles"
        empty="No principal roles."
        right={manages}
        taking={(role) => taking(name, role)}
      />
      {roles.state === "loaded" && (
        <ChangeForm label="Give the role" right={manages} intent={(data) => giving(name, String(data.get("role")))}>
          <label>
            <span>
              Principal role for <bdi>{name}</bdi>
            </span>
            <select name="role" required>
              {roles.value.map((each) => (
                <option key={each.name} value={each.name}>
                  {each.name}
                </option>
              ))}
            </select>
          </label>
        </ChangeForm>
      )}
      <p class="actions">
        <ChangeButton
          label="Reset the credentials"
          about={name}
          right={right("PRINCIPAL_RESET_CREDENTIALS")}
          intent={() => resetting(name)}
        />
        <ChangeButton
          label="Delete"
          about={`principal ${name}`}
          right={right("PRINCIPAL_DROP")}
          intent={() => deleting("principal", name)}
        />
      </p>
    </div>
  );
}

function PrincipalRole({ name, right }: { name: string; right: Rights }) {
  return (
    <div class="stack">
      <Members
        path={managementPath("principal-roles", name, "principals")}
        field="principals"
        empty="No principals."
        right={right("PRINCIPAL_ROLE_MANAGE_GRANTS")}
        taking={(principal) => taking(principal, name)}
      />
      <p class="actions">
        <ChangeButton
          label="Delete"
          about={`principal role ${name}`}
          right={right("PRINCIPAL_ROLE_DROP")}
          intent={() => deleting("principal role", name)}
        />
      </p>
    </div>
  );
}

interface MembersProps {
  path: string;
  field: string;
  empty: string;
  right: Result<Right>;
  taking: (name: string) => Intent;
}

/** The roles of a principal, or the principals of a role, each of which can be taken away. */
function Members({ path, field, empty, right, taking }: MembersProps) {
  const loaded = useLoad((signal) => read<Record<string, Named[]>>(path, { signal }), [path]);
  return (
    <Loaded of={loaded}>
      {({ [field]: names = [] }) =>
        names.length === 0 ? (
          <Empty>{empty}</Empty>
        ) : (
          <ul class="lines">
            {names.map(({ name }) => (
              <li key={name}>
                <bdi>{name}</bdi>{" "}
                <ChangeButton label="Take away" about={name} right={right} intent={() => taking(name)} />
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  );
}
