import { pages } from "../names";
import { navigate } from "../router";
import { Form } from "./basics";

/** A field for words, which leads to the names of a catalog that have them. */
export function SearchBox({ catalog, label, words = "" }: { catalog: string; label: string; words?: string }) {
  return (
    <Form
      class="search"
      role="search"
      onSend={(data) => {
        const q = String(data.get("q") ?? "").trim();
        if (q) navigate(pages.search(catalog, q));
      }}
    >
      <input type="search" name="q" aria-label={label} placeholder="Search names" defaultValue={words} />
    </Form>
  );
}
