import { useState } from "preact/hooks";
import { read } from "../api";
import { useLoad } from "../load";
import { managementPath, pages } from "../names";
import { Chip, Empty, Failure, Form, Heading, Loading } from "../parts/basics";
import { SearchBox } from "../parts/search-box";
import { navigate } from "../router";
import { hasRealms, serverConfig } from "../session";
import { LastChanges, ReadOnly } from "./overview";

interface ListedCatalog {
  name: string;
  type?: string;
  properties?: Record<string, string>;
}

/** The number of catalogs up to which all is loaded at once. Of more, what was changed is loaded on demand. */
const MAX_OPEN_CARDS = 3;
/** Changes of each: with these few, home keeps to its budget (budgets.json). */
const CHANGES = 3;

/** All catalogs that the user may see, each with its last changes. */
export function HomePage() {
  const listed = useLoad(catalogs, []);
  return (
    <>
      <Heading title="Catalogs">
        {hasRealms() && <a href={pages.principals()}>Principals and principal roles</a>}
      </Heading>
      {listed.state === "loading" && <Loading />}
      {listed.state === "failed" && (
        <>
          <Failure error={listed.error} />
          <OpenByName />
        </>
      )}
      {listed.state === "loaded" && listed.value.length === 0 && (
        <Empty>
          There is no catalog yet. <code>arco catalogs create NAME</code> makes one.
        </Empty>
      )}
      {listed.state === "loaded" && (
        <div class="cards">
          {listed.value.map((catalog) => (
            <CatalogCard key={catalog.name} catalog={catalog} whole={listed.value.length <= MAX_OPEN_CARDS} />
          ))}
        </div>
      )}
    </>
  );
}

async function catalogs(signal: AbortSignal): Promise<ListedCatalog[]> {
  if (!hasRealms()) {
    const name = serverConfig.value?.warehouse;
    return name ? [{ name }] : [];
  }
  return (await read<{ catalogs: ListedCatalog[] }>(managementPath("catalogs"), { signal })).catalogs;
}

/** For users who may not list catalogs, and may use some. */
function OpenByName() {
  return (
    <Form class="row" aria-label="Open a catalog" onSend={(data) => navigate(pages.catalog(String(data.get("name"))))}>
      <label>
        Open a catalog by its name
        <input name="name" required spellcheck={false} />
      </label>
      <button type="submit">Open</button>
    </Form>
  );
}

function CatalogCard({ catalog, whole }: { catalog: ListedCatalog; whole: boolean }) {
  const [open, setOpen] = useState(whole);
  return (
    <section class="card" aria-label={`Catalog ${catalog.name}`}>
      <h2>
        <a href={pages.catalog(catalog.name)}>
          <bdi>{catalog.name}</bdi>
        </a>{" "}
        {catalog.type === "EXTERNAL" && <Chip title="Its tables follow those of another catalog">external</Chip>}
      </h2>
      <p class="faint">{catalog.properties?.["default-base-location"]}</p>
      {open ? (
        <>
          <ReadOnly name={catalog.name} />
          <SearchBox catalog={catalog.name} label={`Search names in ${catalog.name}`} />
          <h3>Last changes</h3>
          <LastChanges name={catalog.name} count={CHANGES} />
          <p class="actions">
            <a href={pages.history(catalog.name)}>All changes</a>
            <a href={pages.tasks(catalog.name)}>What is owed</a>
          </p>
        </>
      ) : (
        <p>
          <button type="button" class="quiet" onClick={() => setOpen(true)}>
            Search and last changes
          </button>
        </p>
      )}
    </section>
  );
}
