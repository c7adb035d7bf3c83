"""`arco ls`: lists namespaces and what is in them, such as tables and views, as it is now or was at a time."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from functools import partial

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.identifiers import parse_namespace
from arco_catalog.cli.output import table
from arco_catalog.cli.session import carry_out, open_session
from arco_catalog.iceberg.errors import NoSuchNamespace, NoSuchTable
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.as_of import Listing, registry_at
from arco_catalog.operations.inspect import inspect_relation
from arco_catalog.operations.listing import ListingPage, Paging, list_namespaces, list_relations
from arco_catalog.planning.names import format_identifier
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.characters import escaped
from arco_catalog.state.entries import DESCRIBED_KINDS
from arco_catalog.state.fields import texts
from arco_catalog.state.index import Namespace

HEADINGS = ("TYPE", "NAME")

Level = Callable[[Namespace], AsyncIterator[tuple[str, str]]]
"""A function that yields the type and name of each object in a namespace; () is the top level."""


def run(
    options: CatalogOptions,
    namespace: str | None,
    limit: int | None,
    *,
    at_ms: int | None = None,
    recursive: bool,
    as_json: bool,
) -> int:
    """Displays at most `limit` objects of a namespace, or of the top level if it is None, with `recursive` also those
    of the levels below; with `at_ms` those that were there at that time. Returns 0. Raises `CliError`, also if there is
    no such namespace."""
    top = () if namespace is None else parse_namespace(namespace)

    async def read() -> tuple[list[JsonObject], bool]:
        found: list[JsonObject] = []
        async with open_session(options, "ls", find_catalog) as session:
            level: Level = partial(_level, session)
            if at_ms is not None:
                level = Listing(session, await registry_at(session, at_ms), at_ms).level
            try:
                async with aclosing(_entries(level, top, recursive)) as entries:
                    async for entry in entries:
                        if len(found) == limit:
                            return found, True
                        found.append(entry)
            except NoSuchNamespace:
                await _refuse_relation(session, top)
                raise
        return found, False

    found, more = carry_out(read)
    if as_json:
        print(json_text([*found]))
    elif not found:
        verb = "is" if at_ms is None else "was"
        where = escaped(format_identifier(top)) if top else "this catalog"
        print(f"There {verb} nothing in {where}.")
    else:
        print(table(HEADINGS, [(str(entry["type"]), str(entry["full_name"])) for entry in found]))
    if more and not as_json:
        print(f"... and more names: --limit {limit} was given")
    return 0


async def _entries(level: Level, namespace: Namespace, recursive: bool) -> AsyncGenerator[JsonObject, None]:
    """Yields the objects of a namespace: tables, views and other types, then namespaces; with `recursive`, the objects
    in a namespace follow directly after it."""
    async for kind, name in level(namespace):
        inner = (*namespace, name)
        yield _entry(kind, inner)
        if recursive and kind == "namespace":
            async with aclosing(_entries(level, inner, recursive)) as entries:
                async for entry in entries:
                    yield entry


async def _level(session: Session, namespace: Namespace) -> AsyncIterator[tuple[str, str]]:
    """Yields type and name of each object that is in a namespace now, except policies."""
    for kind in ("table", "view", *DESCRIBED_KINDS) if namespace else ():
        async for item in all_items(partial(list_relations, session, namespace, kind)):
            if isinstance(item, dict):
                yield kind, str(item["name"])
    async for item in all_items(partial(list_namespaces, session, namespace)):
        yield "namespace", texts({"levels": item}, "levels")[-1]


async def entries_below(session: Session) -> AsyncIterator[tuple[str, Namespace]]:
    """Yields the type and the levels of the name of each object of a catalog, except policies."""
    async with aclosing(_entries(partial(_level, session), (), recursive=True)) as entries:
        async for entry in entries:
            yield str(entry["type"]), (*texts(entry, "namespace"), str(entry["name"]))


async def _refuse_relation(session: Session, levels: Namespace) -> None:
    """Raises `CliError` if the levels are the name of a table, view, generic table or semantic model that there is now;
    returns otherwise."""
    with suppress(NoSuchTable):
        found = await inspect_relation(session, levels[:-1], levels[-1])
        if found["state"] == "live":
            name = format_identifier(levels)
            raise CliError(f"{name} is a {found['type']}, not a namespace: `arco show {name}` displays it")


def _entry(kind: str, levels: Namespace) -> JsonObject:
    """Returns the JSON of a listed object."""
    return {"type": kind, "full_name": format_identifier(levels), "namespace": [*levels[:-1]], "name": levels[-1]}


async def all_items(page: Callable[[Paging], Awaitable[ListingPage]]) -> AsyncIterator[JsonValue]:
    """Yields the items of all pages."""
    token: str | None = ""
    while token is not None:
        listed = await page(Paging(token, None))
        for item in listed.items:
            yield item
        token = listed.next_page_token
