/** The pages of a table or view: each part has a link of its own. */
import { ApiError } from "../api";
import type { Catalog } from "../catalog";
import { loadTable } from "../catalog";
import { type Result, useLoad } from "../load";
import { apiPath, joined, type Kind, type Namespace, pages } from "../names";
import { Empty, Heading, Loaded, Section, Tabs } from "../parts/basics";
import { Access } from "./access";
import { ComparePage } from "./compare";
import { Connect } from "./connect";
import { type Governance, GovernanceChips, useGovernance } from "./governance";
import { Health } from "./health";
import { HistoryList } from "./history";
import { Lineage } from "./lineage";
import { crumbsOf } from "./namespace";
import { OwnRights, type Securable } from "./own-rights";
import { ApplicablePolicies } from "./policies";
import { ReceiptPage } from "./receipt";
import { Snapshots } from "./snapshots";
import { TableOverview } from "./table-overview";
import { Timeline } from "./timeline";
import { ViewOverview } from "./view-overview";

/** A table or view, by its name. */
export interface Entity {
  catalog: Catalog;
  kind: Kind;
  namespace: Namespace;
  name: string;
}

interface Props extends Entity {
  rest: string[];
  query: Readonly<Record<string, string>>;
}

/** Returns the path of the catalog API to a table or view, or to something below it. */
export function entityPath({ catalog, kind, namespace, name }: Entity, ...rest: string[]): string {
  return apiPath(catalog.prefix, namespace, kind === "t" ? "tables" : "views", name, ...rest);
}

/** Returns the address of a page of a table or view. */
export function entityPage(
  { catalog, kind, namespace, name }: Entity,
  rest: readonly string[],
  query: Record<string, string | undefined> = {},
): string {
  return pages.entity(catalog.name, kind, namespace, name, rest, query);
}

const TABLE_TABS: [string, string][] = [
  ["", "Schema"],
  ["snapshots", "Snapshots"],
  ["timeline", "Timeline"],
  ["lineage", "Lineage"],
  ["health", "Health"],
  ["access", "Access"],
  ["policies", "Policies"],
  ["connect", "Connect"],
];
const VIEW_TABS: [string, string][] = [
  ["", "SQL"],
  ["timeline", "Timeline"],
  ["lineage", "Lineage"],
  ["access", "Access"],
];

export function TablePages({ rest, query, ...entity }: Props) {
  const { catalog, kind, namespace, name } = entity;
  const [tab = "", version] = rest;
  const governance = useGovernance(entityPath(entity, "governance"));
  const tabs = (kind === "t" ? TABLE_TABS : VIEW_TABS).map(([key, title]): [string, string, string] => [
    key,
    title,
    entityPage(entity, key ? [key] : []),
  ]);
  return (
    <>
      <Heading title={name} kind={kind === "t" ? "Table" : "View"} crumbs={crumbsOf(catalog.name, namespace)}>
        <GovernanceChips of={governance} />
      </Heading>
      <Tabs label="Parts of the table" tabs={tabs} current={tab === "compare" ? "timeline" : tab} />
      <Part
        key={entityPath(entity)}
        entity={entity}
        governance={governance}
        tab={tab}
        version={version ?? null}
        query={query}
      />
      {tab !== "access" && isRefused(governance) && <Refused entity={entity} />}
    </>
  );
}

function Part({
  entity,
  governance,
  tab,
  version,
  query,
}: {
  entity: Entity;
  governance: Result<Governance>;
  tab: string;
  version: string | null;
  query: Readonly<Record<string, string>>;
}) {
  switch (tab) {
    case "snapshots":
      return <Snapshots entity={entity} />;
    case "timeline":
      return version === null ? (
        <Timeline entity={entity} at={query.at ?? ""} from={query.from ?? ""} />
      ) : (
        <ReceiptPage entity={entity} version={version} />
      );
    case "compare":
      return <ComparePage entity={entity} from={query.from ?? ""} to={query.to ?? ""} />;
    case "lineage":
      return <Lineage entity={entity} direction={query.direction ?? "both"} depth={query.depth ?? "1"} />;
    case "health":
      return <Health entity={entity} governance={governance} />;
    case "access":
      return <Access catalog={entity.catalog} path={entityPath(entity, "access")} on={securableOf(entity)} />;
    case "policies":
      return <ApplicablePolicies catalog={entity.catalog} namespace={entity.namespace} table={entity.name} />;
    case "connect":
      return <ConnectPart entity={entity} />;
    default:
      return entity.kind === "t" ? (
        <TableOverview entity={entity} governance={governance} />
      ) : (
        <ViewOverview entity={entity} governance={governance} />
      );
  }
}

/** Returns a table or view as what privileges are on. */
export function securableOf({ kind, namespace, name }: Entity): Securable {
  return kind === "t" ? { type: "table", namespace, tableName: name } : { type: "view", namespace, viewName: name };
}

/** What helps where a table is not shown: what the user may do, and whether it was dropped or renamed. */
function Refused({ entity }: { entity: Entity }) {
  const { catalog, namespace, name } = entity;
  const history = pages.history(catalog.name, { namespace: joined(namespace), table: name });
  return (
    <>
      <Empty>
        It does not exist, or you may not see all of it. <a href={history}>The history of this name</a> shows whether it
        was dropped or renamed.
      </Empty>
      <Section title="History of this name">
        <HistoryList catalog={catalog} namespace={namespace} table={name} />
      </Section>
      <OwnRights catalog={catalog} on={securableOf(entity)} />
    </>
  );
}

function isRefused(result: Result<unknown>): boolean {
  return result.state === "failed" && result.error instanceof ApiError && [403, 404].includes(result.error.status);
}

function ConnectPart({ entity: { catalog, namespace, name } }: { entity: Entity }) {
  const table = useLoad((signal) => loadTable(catalog, namespace, name, "refs", signal), [catalog, name]);
  return (
    <Loaded of={table}>
      {({ metadata }) => <Connect catalog={catalog} namespace={namespace} table={name} location={metadata.location} />}
    </Loaded>
  );
}
