import { read } from "../api";
import { useLoad } from "../load";
import { Chip, Empty, Facts, Loaded, Section } from "../parts/basics";

type Governance = Record<string, string>;

/** Owner, quality and tags of a namespace, table or view, from the catalog and not from the table's own properties. */
export function GovernanceFacts({ path, name }: { path: string; name: string }) {
  const loaded = useLoad((signal) => readGovernance(path, signal), [path]);
  return (
    <Section title="Governance">
      <Loaded of={loaded}>
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

/** Quality, owner and protection as short words beside a name. */
export function GovernanceChips({ path }: { path: string }) {
  const loaded = useLoad((signal) => readGovernance(path, signal), [path]);
  if (loaded.state !== "loaded") return null;
  const { "arco.quality": quality, "arco.owner": owner, "arco.protected": guarded } = loaded.value;
  const tags = Object.entries(loaded.value).filter(([key]) => key.startsWith("arco.tag."));
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

async function readGovernance(path: string, signal: AbortSignal): Promise<Governance> {
  const found = await read<{ governance?: Governance } & Governance>(path, { signal });
  return found.governance ?? found;
}
