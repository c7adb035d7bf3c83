import { read } from "../api";
import { type Result, useLoad } from "../load";
import { Chip, Empty, Facts, Loaded, Section } from "../parts/basics";

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

/** All of the governance, as names and texts. */
export function GovernanceFacts({ of, name }: { of: Result<Governance>; name: string }) {
  return (
    <Section title="Governance">
      <Loaded of={of}>
        {(governance) =>
          Object.keys(governance).length === 0 ? (
            <Empty>
              No owner, quality or tags. <code>arco governance set {name} arco.owner=TEAM</code> sets the first.
            </Empty>
          ) : (
            <Facts of={Object.entries(governance)} />
          )
        }
      </Loaded>
    </Section>
  );
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
