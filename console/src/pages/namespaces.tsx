import { useState } from "preact/hooks";
import { type Catalog, listNamespaces } from "../catalog";
import { usePages } from "../load";
import { dotted, joined, type Namespace, pages } from "../names";
import { Code, Heading } from "../parts/basics";
import { PagedList } from "../parts/listing";
import { pyicebergCatalog } from "../settings";
import { targetOf } from "./connect";

/** All namespaces of a catalog, as a tree that opens level by level. */
export function NamespacesPage({ catalog }: { catalog: Catalog }) {
  return (
    <>
      <Heading title="Namespaces" crumbs={[[catalog.name, pages.catalog(catalog.name)]]} />
      <NamespaceTree catalog={catalog} parent={[]} />
    </>
  );
}

/** The namespaces directly below another, or those at the top; each opens to those below it. */
export function NamespaceTree({ catalog, parent }: { catalog: Catalog; parent: Namespace }) {
  const found = usePages((token, signal) => listNamespaces(catalog, parent, token, signal), [catalog, joined(parent)]);
  return (
    <PagedList
      of={found}
      empty={parent.length === 0 ? <FirstSteps catalog={catalog} /> : "No namespaces below this one."}
    >
      {(items) => (
        <ul class="tree">
          {items.map((namespace) => (
            <Branch key={dotted(namespace)} catalog={catalog} namespace={namespace} />
          ))}
        </ul>
      )}
    </PagedList>
  );
}

function Branch({ catalog, namespace }: { catalog: Catalog; namespace: Namespace }) {
  const [open, setOpen] = useState(false);
  const name = namespace.at(-1) ?? "";
  return (
    <li>
      <button
        type="button"
        class="quiet twist"
        aria-expanded={open}
        aria-label={`Namespaces below ${dotted(namespace)}`}
        onClick={() => setOpen(!open)}
      >
        {open ? "▾" : "▸"}
      </button>
      <a href={pages.namespace(catalog.name, namespace)}>
        <bdi>{name}</bdi>
      </a>
      {open && <NamespaceTree catalog={catalog} parent={namespace} />}
    </li>
  );
}

function FirstSteps({ catalog }: { catalog: Catalog }) {
  const lines = [...pyicebergCatalog(targetOf(catalog)), 'catalog.create_namespace("db")'];
  return (
    <>
      <p>There are no namespaces yet, or none that you may see. A client makes the first, such as PyIceberg:</p>
      <Code label="first steps" text={lines.join("\n")} />
    </>
  );
}
