import { useState } from "preact/hooks";
import { read } from "../api";
import type { Catalog } from "../catalog";
import { shellWord } from "../format";
import { type Result, useLoad } from "../load";
import { apiPath, dotted } from "../names";
import { Chip, Empty, Facts, Loaded, Section } from "../parts/basics";
import { ChangeButton, type Intent } from "../parts/change";
import { useRight } from "../rights";
import type { Securable } from "./own-rights";

/** Owner, quality and tags of a namespace, table or view, which are the catalog's and not properties of the table. */
export type Governance = Record<string, string>;

/** Loads the governance of a namespace, table or view, whose parts of a page share it. */
export function useGovernance(path: string): Result<Governance> {
  return useLoad(
    async (signal) => {
      const found = await read<{ governance?: Governance } & Governance>(path, { signal });
      return found.governance ?? found;
    },
    [path],
  );
}

interface FactsProps {
  of: Result<Governance>;
  catalog: Catalog;
  on: Securable;
}

/** All of the governance, as names and texts. */
export function GovernanceFacts({ of, catalog, on }: FactsProps) {
  const name = shellWord(dotted(on.namespace ?? [], nameOf(on)));
  const option = on.type === "namespace" ? "--namespace " : "";
  return (
    <Section title="Governance">
      <Loaded of={of}>
        {(governance) =>
          Object.keys(governance).length === 0 ? (
            <Empty>
              No owner, quality or tags. <code>arco governance set {option + name} arco.owner=TEAM</code> sets the
              first.
            </Empty>
          ) : (
            <Facts of={Object.entries(governance)} />
          )
        }
      </Loaded>
      {of.state === "loaded" && (
        <Protection catalog={catalog} on={on} guarded={of.value["arco.protected"] === "true"} />
      )}
    </Section>
  );
}

interface ProtectionProps {
  catalog: Catalog;
  on: Securable;
  guarded: boolean;
}

/** Protects something, or lifts that. The right is checked when this is opened, which is rarely. */
function Protection(props: ProtectionProps) {
  const [open, setOpen] = useState(false);
  return (
    <details class="note" onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>Protection against drops</summary>
      {open && <ProtectionButton {...props} />}
    </details>
  );
}

function ProtectionButton({ catalog, on, guarded }: ProtectionProps) {
  const reads = `${on.type.toUpperCase()}_READ_PROPERTIES`;
  const right = useRight(
    catalog.name,
    ["CATALOG_MANAGE_ACCESS", reads].map((privilege) => ({ ...on, privilege })),
  );
  const about = `${on.type} ${dotted(on.namespace ?? [], nameOf(on))}`;
  return (
    <p>
      {guarded ? "It is protected. " : "It is not protected. "}
      <ChangeButton
        label={guarded ? "Lift the protection" : "Protect"}
        about={about}
        right={right}
        intent={() => protecting(catalog, on, about, !guarded)}
      />
    </p>
  );
}

function protecting(catalog: Catalog, on: Securable, about: string, guard: boolean): Intent {
  const [not, may] =
    on.type === "namespace"
      ? ["dropped", "dropped"]
      : ["dropped, replaced or renamed", "dropped, replaced and renamed"];
  const effect = guard ? `can't be ${not} until its protection is lifted` : `may be ${may} again`;
  const rest = on.type === "namespace" ? [] : [`${on.type}s`, nameOf(on) ?? ""];
  return {
    title: guard ? "Protect" : "Lift the protection",
    summary: (
      <>
        The <bdi>{about}</bdi> {effect}.
      </>
    ),
    confirm: guard ? "Protect" : "Lift the protection",
    change: {
      method: "POST",
      path: apiPath(catalog.prefix, on.namespace ?? [], ...rest, "governance"),
      body: { "arco.protected": guard ? "true" : null },
      type: "application/merge-patch+json",
    },
    keyed: catalog.takesKeys,
    done: `The ${about} is ${guard ? "protected" : "no longer protected"}.`,
  };
}

function nameOf({ tableName, viewName }: Securable): string | undefined {
  return tableName ?? viewName;
}

/** Quality, owner, protection and tags as short words beside a name. */
export function GovernanceChips({ of }: { of: Result<Governance> }) {
  if (of.state !== "loaded") return null;
  const { "arco.quality": quality, "arco.owner": owner, "arco.protected": guarded } = of.value;
  const tags = Object.entries(of.value).filter(([key]) => key.startsWith("arco.tag."));
  return (
    <p class="chips">
      {quality && <Chip kind="good">{quality}</Chip>}
      {owner && <Chip title="Owner">owner {owner}</Chip>}
      {guarded === "true" && <Chip kind="accent">protected</Chip>}
      {tags.map(([key, value]) => (
        <Chip key={key}>
          {key.slice("arco.tag.".length)}: {value}
        </Chip>
      ))}
    </p>
  );
}
