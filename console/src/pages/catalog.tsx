import type { Catalog } from "../catalog";
import { pages } from "../names";
import { Heading, Section } from "../parts/basics";
import { NamespaceTree } from "./namespaces";
import { FailedTasks, LastChanges, ReadOnly } from "./overview";

/** The first page of a catalog. */
export function CatalogPage({ catalog }: { catalog: Catalog }) {
  return (
    <>
      <Heading title={catalog.name} kind="Catalog" crumbs={[["Catalogs", pages.home()]]} />
      <ReadOnly name={catalog.name} />
      <FailedTasks name={catalog.name} />
      <div class="halves">
        <Section title="Namespaces">
          <NamespaceTree catalog={catalog} parent={[]} />
        </Section>
        <Section title="Last changes" aside={<a href={pages.history(catalog.name)}>All changes</a>}>
          <LastChanges name={catalog.name} count={10} />
        </Section>
      </div>
    </>
  );
}
