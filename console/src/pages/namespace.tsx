import { read } from "../api";
import { type Catalog, listNames } from "../catalog";
import { useLoad, usePages } from "../load";
import { apiPath, dotted, joined, type Namespace, pages } from "../names";
import { Empty, Facts, Failure, Heading, Loaded, Loading, Section, Tabs } from "../parts/basics";
import { VirtualList } from "../parts/listing";
import { Access } from "./access";
import { GovernanceFacts, useGovernance } from "./governance";
import { NamespaceTree } from "./namespaces";
import { PolicyList } from "./policies";

interface Props {
  catalog: Catalog;
  namespace: Namespace;
}

/** The links to a catalog and to a namespace and those above it. */
export function crumbsOf(catalog: string, namespace: Namespace): [string, string][] {
  const levels = namespace.map((name, at): [string, string] => [
    name,
    pages.namespace(catalog, namespace.slice(0, at + 1)),
  ]);
  return [[catalog, pages.catalog(catalog)], ...levels];
}

/** A namespace: its tables and views, and those below it; or its properties, policies or grants. */
export function NamespacePage({ catalog, namespace, tab }: Props & { tab: string }) {
  const to = (...rest: string[]) => pages.namespace(catalog.name, namespace, ...rest);
  const tabs: [string, string, string][] = [
    ["", "Contents", to()],
    ["properties", "Properties", to("properties")],
    ["policies", "Policies", to("policies")],
    ["access", "Access", to("access")],
  ];
  const key = joined(namespace);
  return (
    <>
      <Heading
        title={namespace.at(-1) ?? ""}
        kind="Namespace"
        crumbs={crumbsOf(catalog.name, namespace.slice(0, -1))}
      />
      <Tabs label="Parts of the namespace" tabs={tabs} current={tab} />
      {tab === "" && <Contents key={key} catalog={catalog} namespace={namespace} />}
      {tab === "properties" && <Properties catalog={catalog} namespace={namespace} />}
      {tab === "policies" && <PolicyList catalog={catalog} namespace={namespace} />}
      {tab === "access" && (
        <Access
          catalog={catalog}
          path={apiPath(catalog.prefix, namespace, "access")}
          on={{ type: "namespace", namespace }}
        />
      )}
    </>
  );
}

function Contents({ catalog, namespace }: Props) {
  return (
    <div class="halves">
      <Section title="Tables">
        <Names catalog={catalog} namespace={namespace} of="tables" />
      </Section>
      <div>
        <Section title="Views">
          <Names catalog={catalog} namespace={namespace} of="views" />
        </Section>
        <Section title="Namespaces below">
          <NamespaceTree catalog={catalog} parent={namespace} />
        </Section>
      </div>
    </div>
  );
}

function Names({ catalog, namespace, of }: Props & { of: "tables" | "views" }) {
  const names = usePages(
    (token, signal) => listNames(catalog, namespace, of, token, signal),
    [catalog, joined(namespace), of],
  );
  const kind = of === "tables" ? "t" : "v";
  return (
    <>
      {names.items.length > 0 && (
        <VirtualList
          label={`${of} of ${dotted(namespace)}`}
          of={names}
          keyOf={(name) => name}
          row={(name) => (
            <a href={pages.entity(catalog.name, kind, namespace, name)} title={name}>
              <bdi>{name}</bdi>
            </a>
          )}
        />
      )}
      {names.done && names.items.length === 0 && (
        <Empty>
          No {of} here that you may see.{" "}
          <a href={pages.history(catalog.name, { namespace: joined(namespace) })}>The history</a> shows what was
          dropped.
        </Empty>
      )}
      {names.error && <Failure error={names.error} />}
      {names.loading && names.items.length === 0 && <Loading />}
    </>
  );
}

function Properties({ catalog, namespace }: Props) {
  const governance = useGovernance(apiPath(catalog.prefix, namespace, "governance"));
  const loaded = useLoad(
    (signal) => read<{ properties: Record<string, string> }>(apiPath(catalog.prefix, namespace), { signal }),
    [catalog, joined(namespace)],
  );
  return (
    <>
      <Section title="Properties">
        <Loaded of={loaded}>
          {({ properties }) =>
            Object.keys(properties).length === 0 ? (
              <Empty>No properties. Engines set them, as Spark does with ALTER NAMESPACE.</Empty>
            ) : (
              <Facts of={Object.entries(properties)} />
            )
          }
        </Loaded>
      </Section>
      <GovernanceFacts of={governance} catalog={catalog} on={{ type: "namespace", namespace }} />
    </>
  );
}
