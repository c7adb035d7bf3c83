/** Which page of a catalog an address names. */
import { type Catalog, openCatalog } from "../catalog";
import { useLoad } from "../load";
import { levelsOf, pages } from "../names";
import { Failure, Heading, Loading } from "../parts/basics";
import { CatalogPage } from "./catalog";
import { HistoryPage } from "./history";
import { NamespacePage } from "./namespace";
import { NamespacesPage } from "./namespaces";
import { NotFound } from "./not-found";
import { PoliciesPage, PolicyPage } from "./policies";
import { RolesPage } from "./roles";
import { SearchPage } from "./search";
import { TablePages } from "./table-pages";
import { TaskPage, TasksPage } from "./tasks";

interface Address {
  rest: string[];
  query: Readonly<Record<string, string>>;
}

/** A page of the catalog with a name, or the error of opening it. */
export function CatalogPages({ name, rest, query }: Address & { name: string }) {
  const opening = useLoad(() => openCatalog(name), [name]);
  if (opening.state === "loading") return <Loading />;
  if (opening.state === "failed") {
    return (
      <>
        <Heading title={name} kind="Catalog" crumbs={[["Catalogs", pages.home()]]} />
        <Failure error={opening.error} />
      </>
    );
  }
  return <PageOf catalog={opening.value} rest={rest} query={query} />;
}

function PageOf({ catalog, rest, query }: Address & { catalog: Catalog }) {
  const [kind, first, second, ...more] = rest;
  switch (kind) {
    case undefined:
      return <CatalogPage catalog={catalog} />;
    case "namespaces":
      return <NamespacesPage catalog={catalog} />;
    case "search":
      return <SearchPage catalog={catalog} words={query.q ?? ""} type={query.type ?? ""} />;
    case "history":
      return <HistoryPage catalog={catalog} namespace={query.namespace ?? ""} table={query.table ?? ""} />;
    case "tasks":
      return first ? (
        <TaskPage catalog={catalog} id={first} />
      ) : (
        <TasksPage catalog={catalog} status={query.status ?? ""} />
      );
    case "policies":
      return <PoliciesPage catalog={catalog} />;
    case "roles":
      return <RolesPage catalog={catalog} role={first ?? null} />;
    case "n":
      if (!first) return <NotFound />;
      if (second === "policies" && more[0]) {
        return <PolicyPage catalog={catalog} namespace={levelsOf(first)} name={more[0]} />;
      }
      return <NamespacePage catalog={catalog} namespace={levelsOf(first)} tab={second ?? ""} />;
    case "t":
    case "v":
      if (!first || !second) return <NotFound />;
      return (
        <TablePages catalog={catalog} kind={kind} namespace={levelsOf(first)} name={second} rest={more} query={query} />
      );
    default:
      return <NotFound />;
  }
}
