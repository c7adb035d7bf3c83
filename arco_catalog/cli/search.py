"""`arco search`: searches for namespaces, tables, views and other relations by words of their names."""

from collections.abc import Sequence

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.output import table
from arco_catalog.cli.session import another, carry_out, open_session
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.search import search
from arco_catalog.planning.names import format_identifier
from arco_catalog.planning.search import SearchQuery
from arco_catalog.state.fields import optional_text, text, texts

HEADINGS = ("TYPE", "NAME")


def run(options: CatalogOptions, words: Sequence[str], kind: str | None, limit: int, *, as_json: bool) -> int:
    """Displays at most `limit` objects, of one type if `kind` is given, with a name or namespace that has words that
    start with these words, the last of which must start a word of the name itself; and those with a name that starts
    with the whole text. Returns 0, or 1 if there is none. Raises `CliError`, also for too many words or characters."""

    async def read() -> list[JsonObject]:
        query = SearchQuery.parse(" ".join(words))
        found: list[JsonObject] = []
        async with open_session(options, "search", find_catalog) as session:
            token: str | None = ""
            while token is not None and len(found) <= limit:
                page = await search(another(session), query, kind=kind, token=token)
                found += page.results
                token = page.next_page_token
        return found

    found = carry_out(read)
    first = found[:limit]
    if as_json:
        print(json_text([*first]))
    else:
        print(table(HEADINGS, [_columns(each) for each in first]) if first else "Nothing has such a name.")
    if len(found) > limit and not as_json:
        print(f"... and more results: --limit is {limit}")
    return 0 if first else 1


def _columns(found: JsonObject) -> Sequence[str]:
    """Returns the row of a found object: its type and the full name."""
    name = optional_text(found, "name")
    levels = texts(found, "namespace")
    return text(found, "type"), format_identifier(levels if name is None else (*levels, name))
