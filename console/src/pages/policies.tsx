import { read } from "../api";
import type { Catalog } from "../catalog";
import { type Result, useLoad, usePages } from "../load";
import { dotted, joined, type Namespace, pages } from "../names";
import { Chip, Code, DataTable, Empty, Facts, Heading, Loaded, Section } from "../parts/basics";
import { ChangeButton } from "../parts/change";
import { PagedList } from "../parts/listing";
import { bothOf, type Right, useRights } from "../rights";
import { crumbsOf } from "./namespace";
import { NamespaceTree } from "./namespaces";
import { AttachForm, detaching, policyPath, type Target, takenTo } from "./policy-changes";

interface Policy {
  "policy-type": string;
  inheritable: boolean;
  name: string;
  description?: string;
  content?: string;
  version: number;
}

export interface Applicable extends Policy {
  inherited: boolean;
  namespace: string[];
}

/** The policies that apply to the whole catalog. Others belong to namespaces. */
export function PoliciesPage({ catalog }: { catalog: Catalog }) {
  return (
    <>
      <Heading title="Policies" crumbs={[[catalog.name, pages.catalog(catalog.name)]]} />
      <ApplicablePolicies catalog={catalog} namespace={[]} />
      <Section title="Policies of namespaces">
        <p>A policy is kept in a namespace, whose page lists it.</p>
        <NamespaceTree catalog={catalog} parent={[]} />
      </Section>
    </>
  );
}

/** The policies that a namespace holds. */
export function PolicyList({ catalog, namespace }: { catalog: Catalog; namespace: Namespace }) {
  const path = policyPath(catalog, namespace);
  const found = usePages(
    async (token, signal) => {
      const query = { pageToken: token ?? "", pageSize: 100 };
      const answer = await read<{ identifiers: { name: string }[]; "next-page-token"?: string | null }>(path, {
        query,
        signal,
      });
      return { items: answer.identifiers, next: answer["next-page-token"] ?? null };
    },
    [path],
  );
  return (
    <>
      <Section title="Policies kept here">
        <PagedList of={found} empty="No policies here. Polaris's clients and its API make them.">
          {(items) => (
            <ul class="lines">
              {items.map(({ name }) => (
                <li key={name}>
                  <a href={pages.namespace(catalog.name, namespace, "policies", name)}>
                    <bdi>{name}</bdi>
                  </a>
                </li>
              ))}
            </ul>
          )}
        </PagedList>
      </Section>
      <ApplicablePolicies catalog={catalog} namespace={namespace} />
    </>
  );
}

/** The policies that apply to a catalog, a namespace or a table, also by inheritance. */
export function ApplicablePolicies({
  catalog,
  namespace,
  table,
}: {
  catalog: Catalog;
  namespace: Namespace;
  table?: string;
}) {
  const query = { namespace: joined(namespace) || null, "target-name": table ?? null };
  const loaded = useLoad(
    (signal) =>
      read<{ "applicable-policies": Applicable[] }>(`polaris/v1/${catalog.prefix}/applicable-policies`, {
        query,
        signal,
      }),
    [catalog, joined(namespace), table],
  );
  const target: Target = { namespace, table: table ?? null };
  const right = useRightToDetach(catalog, loaded, target);
  return (
    <Section title="Policies that apply">
      <Loaded of={loaded}>
        {({ "applicable-policies": policies }) =>
          policies.length === 0 ? (
            <Empty>No policy applies. A policy takes effect where it is attached, and below.</Empty>
          ) : (
            <DataTable label="Policies that apply" columns={["Policy", "Type", "From", "Change"]}>
              {policies.map((policy) => (
                <tr key={`${joined(policy.namespace)}/${policy.name}`}>
                  <th scope="row">
                    <a href={pages.namespace(catalog.name, policy.namespace, "policies", policy.name)}>
                      <bdi>{policy.name}</bdi>
                    </a>
                  </th>
                  <td>{policy["policy-type"]}</td>
                  <td>{policy.inherited ? <Chip>inherited</Chip> : <Chip kind="accent">attached here</Chip>}</td>
                  <td>
                    {!policy.inherited && (
                      <ChangeButton
                        label="Detach"
                        about={dotted(policy.namespace, policy.name)}
                        right={right(policy)}
                        intent={() => detaching(catalog, policy, target)}
                      />
                    )}
                  </td>
                </tr>
              ))}
            </DataTable>
          )
        }
      </Loaded>
    </Section>
  );
}

/** The right to detach each policy that is attached to the target itself. */
function useRightToDetach(
  catalog: Catalog,
  loaded: Result<{ "applicable-policies": Applicable[] }>,
  target: Target,
): (policy: Applicable) => Result<Right> {
  const attached =
    loaded.state !== "loaded" ? [] : loaded.value["applicable-policies"].filter((each) => !each.inherited);
  const right = useRights(
    catalog.name,
    attached.flatMap((policy) => takenTo("DETACH", policy, target)),
  );
  return (policy) => bothOf(takenTo("DETACH", policy, target).map(right));
}

/** One policy. */
export function PolicyPage({ catalog, namespace, name }: { catalog: Catalog; namespace: Namespace; name: string }) {
  const path = policyPath(catalog, namespace, name);
  const loaded = useLoad((signal) => read<{ policy: Policy }>(path, { signal }), [path]);
  return (
    <>
      <Heading title={name} kind="Policy" crumbs={crumbsOf(catalog.name, namespace)} />
      <Loaded of={loaded}>
        {({ policy }) => (
          <>
            <Facts
              of={[
                ["Type", policy["policy-type"]],
                ["Version", policy.version],
                ["Inherited below", policy.inheritable ? "yes" : "no"],
                ["Description", policy.description],
              ]}
            />
            <Section title="Attach it">
              <AttachForm catalog={catalog} policy={{ namespace, name }} />
            </Section>
            <Section title="Content">
              <Code label="content of the policy" text={pretty(policy.content ?? "")} />
            </Section>
            <Section title="What it did">
              <Empty>
                Not collected here. <code>arco pipeline run maintain</code> follows maintenance policies, and{" "}
                <a href={pages.tasks(catalog.name)}>tasks</a> show its work.
              </Empty>
            </Section>
          </>
        )}
      </Loaded>
    </>
  );
}

function pretty(content: string): string {
  try {
    return JSON.stringify(JSON.parse(content), null, 2);
  } catch {
    return content;
  }
}
