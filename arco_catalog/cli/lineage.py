"""`arco lineage`: displays the lineage around a table as trees, by the operation of the HTTP API, at a server or at the
store, with the edges of the table `system.lineage`."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from arco_catalog.cli.collected_edges import LibraryMissing, NotCollected, Source, read_collected
from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.command import ManagementOptions
from arco_catalog.cli.errors import CliError, NotThere
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.cli.lineage_tree import as_text, merged
from arco_catalog.cli.management import open_server
from arco_catalog.cli.session import another, carry_out, for_table, open_session
from arco_catalog.cli.tokens import token_for
from arco_catalog.http.options import UNIT_SEPARATOR
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.lineage_graph import SYSTEM_LINEAGE, read_lineage
from arco_catalog.operations.load import load_current
from arco_catalog.planning.names import Identifier
from arco_catalog.state.fields import mapping, objects, sequence, text

Format = Callable[[JsonObject, Source], Awaitable[str]]
"""Formats a graph, with the edges of `system.lineage` at a source."""


@dataclass(frozen=True, slots=True)
class LineageArguments:
    """The arguments of `arco lineage`: the name of the table, which `direction` to show (`both`, `upstream` or
    `downstream`), and up to how many edges away."""

    name: str
    direction: str
    depth: int

    @property
    def identifier(self) -> Identifier:
        """The namespace and name. Raises `CliError` for a malformed name or one without a namespace; looks up no
        table."""
        return parse_identifier(self.name)


def run(options: ManagementOptions, query: LineageArguments, *, as_json: bool) -> int:
    """Displays the lineage around a table, from the store or from the server at --url, with the edges of
    `system.lineage` if the pipeline collects them. Returns 0. Raises `CliError`."""

    async def formatted(graph: JsonObject, source: Source) -> str:
        if graph["collected"]:
            graph = await _with_collected(graph, source, query)
        return json_text(graph) if as_json else as_text(graph, query.direction)

    async def read() -> str:
        if options.url is None:
            return await _at_store(options, query, formatted)
        return await _at_server(options.url, options, query, formatted)

    print(carry_out(read))
    return 0


async def _at_store(options: ManagementOptions, query: LineageArguments, formatted: Format) -> str:
    """Reads the graph at the store, and returns it as `formatted` formats it, which also gets the location of the
    metadata file of the table `system.lineage`, if the catalog has that."""
    namespace, name = identifier = query.identifier
    async with open_session(options.catalog, "lineage", find_catalog) as session:
        read = partial(
            read_lineage,
            namespace=namespace,
            name=name,
            upstream=query.direction != "downstream",
            downstream=query.direction != "upstream",
            distance=query.depth,
            explains=True,
        )
        graph = await for_table(session, identifier, read)
        metadata = None
        if graph["collected"]:
            metadata = (await load_current(another(session), *SYSTEM_LINEAGE, "table")).pointer.metadata.location
        return await formatted(graph, Source(options.catalog, metadata=metadata))


async def _at_server(url: str, options: ManagementOptions, query: LineageArguments, formatted: Format) -> str:
    """Reads the graph at a server, from the route `lineage` of the table under `/v1`, and returns it as `formatted`
    formats it. Raises `CliError`, also if there is no such table."""
    namespace, name = query.identifier
    async with open_server(url, options, "/v1") as server:
        config = await server.send("GET", "config", has="overrides", query={"warehouse": options.catalog.warehouse})
        prefix = text(mapping(config, "overrides"), "prefix")
        path = (prefix, "namespaces", UNIT_SEPARATOR.join(namespace), "tables", name, "lineage")
        wanted = {"direction": query.direction, "depth": str(query.depth), "explain": "true"}
        try:
            graph = await server.send("GET", *path, has="without-edges", query=wanted)
        except NotThere as missing:  # of the table, not of a catalog that the options name
            raise CliError(str(missing)) from missing
        token = await token_for(url, options.token_file, options.catalog.environment)
        return await formatted(graph, Source(options.catalog, url, token))


async def _with_collected(graph: JsonObject, source: Source, query: LineageArguments) -> JsonObject:
    """Returns the graph with the edges of `system.lineage` that are not in it; if these can't be read, the graph as it
    is, with a note."""
    entity = text(objects(graph, "nodes")[0], "entity")
    try:
        found = await asyncio.to_thread(read_collected, source, entity, query.direction, query.depth)
    except LibraryMissing as missing:
        note = (
            f"The edges in the table system.lineage were not read: {missing} is not installed (the extra 'pipeline' of "
            "arco-catalog)"
        )
    except NotCollected as error:
        note = f"The edges in the table system.lineage were not read: {error}"
    else:
        return merged(graph, found)
    return {**graph, "notes": [*sequence(graph, "notes"), note]}
