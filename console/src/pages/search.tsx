import { read } from "../api";
import type { Catalog } from "../catalog";
import { type Page, usePages } from "../load";
import { dotted, joined, pages } from "../names";
import { Chip, Form, Heading } from "../parts/basics";
import { PagedList } from "../parts/listing";
import { navigate } from "../router";

interface Found {
  type: string;
  namespace: string[];
  name: string | null;
}

const TYPES = ["namespace", "table", "view", "generic-table", "semantic-model"];

/** Names of a catalog that have certain words. */
export function SearchPage({ catalog, words, type }: { catalog: Catalog; words: string; type: string }) {
  const found = usePages((token, signal) => search(catalog, words, type, token, signal), [catalog, words, type]);
  const again = (data: FormData) =>
    navigate(pages.search(catalog.name, String(data.get("q")), String(data.get("type"))));
  return (
    <>
      <Heading title={words ? `Search: ${words}` : "Search"} crumbs={[[catalog.name, pages.catalog(catalog.name)]]} />
      <Form class="row" aria-label="Search again" key={`${words}/${type}`} onSend={again}>
        <label>
          Words
          <input name="q" type="search" defaultValue={words} required maxLength={255} />
        </label>
        <label>
          Kind
          <select name="type" defaultValue={type}>
            <option value="">all</option>
            {TYPES.map((each) => (
              <option key={each} value={each} selected={each === type}>
                {each.replace("-", " ")}
              </option>
            ))}
          </select>
        </label>
        <button type="submit">Search</button>
      </Form>
      <PagedList
        of={found}
        empty="No name has all of these words. A word is the beginning of a word in a name, such as ord in sales_orders."
      >
        {(items) => (
          <ul class="lines">
            {items.map((each) => (
              <li key={`${each.type}/${joined(each.namespace)}/${each.name}`}>
                <Chip>{each.type.replace("-", " ")}</Chip> <FoundName catalog={catalog.name} found={each} />
              </li>
            ))}
          </ul>
        )}
      </PagedList>
    </>
  );
}

async function search(
  catalog: Catalog,
  q: string,
  type: string,
  token: string | null,
  signal: AbortSignal,
): Promise<Page<Found>> {
  if (!q) return { items: [], next: null };
  const answer = await read<{ results: Found[]; "next-page-token": string | null }>(`v1/${catalog.prefix}/search`, {
    query: { q, type: type || null, pageToken: token },
    signal,
  });
  return { items: answer.results, next: answer["next-page-token"] };
}

function FoundName({ catalog, found: { type, namespace, name } }: { catalog: string; found: Found }) {
  const shown = <bdi>{dotted(namespace, name)}</bdi>;
  if (name === null) return <a href={pages.namespace(catalog, namespace)}>{shown}</a>;
  if (type === "table") return <a href={pages.entity(catalog, "t", namespace, name)}>{shown}</a>;
  if (type === "view") return <a href={pages.entity(catalog, "v", namespace, name)}>{shown}</a>;
  return (
    <>
      {shown} <span class="faint">in</span> <a href={pages.namespace(catalog, namespace)}>{dotted(namespace)}</a>
    </>
  );
}
