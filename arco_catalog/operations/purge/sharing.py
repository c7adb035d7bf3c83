"""Whether another table of the catalog leads to files at the places that are to be purged
(docs/design/purge.md#rule-15)."""

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing

from arco_catalog.iceberg.errors import NotFound
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.parsing import parse_metadata
from arco_catalog.operations.purge.reach import Reached, entries_of, manifests_of
from arco_catalog.planning.names import dotted
from arco_catalog.protocol.current_file import current_file
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.entries import has_pointer
from arco_catalog.state.fields import text, texts
from arco_catalog.state.locations import Location
from arco_catalog.state.tombstone import PURGED, Tombstone
from arco_catalog.tasks.execution import Sessions, TaskFailed


async def find_sharer(execution: Sessions, entity: str, locations: Collection[str]) -> str | None:
    """Another table, live or dropped, that names a file inside these locations, and that file; None if there is none.
    Raises `TaskFailed` for one whose manifests can't be read."""
    folders = frozenset(location.rstrip("/") for location in locations)
    async with aclosing(other_relations(execution, entity)) as relations:
        async for name, entry in relations:
            if entry.get("type") != "table":
                continue
            other = text(entry, "entity")
            async with aclosing(_files_of(execution, other)) as reached_files:
                async for file in reached_files:
                    location = Location.of_file(file)
                    if location is not None and any(each in folders for each in location.around()):
                        return f"{name} (entity {other}) has the file {file}"
    return None


async def known_tables(execution: Sessions, entity: str, locations: Collection[str]) -> Sequence[tuple[str, str]]:
    """The name and entity of every other table. Raises `TaskFailed` for one around or inside these locations that has
    no metadata here, such as one of another format: only those who use it know which files it has."""
    own = [Location.of_normal(normal) for normal in locations]
    tables: list[tuple[str, str]] = []
    async with aclosing(other_relations(execution, entity)) as relations:
        async for name, entry in relations:
            if not has_pointer(entry):
                places = [Location.of_normal(normal) for normal in texts(entry, "locations")]
                if any(place.inside(each) or each.inside(place) for place in places for each in own):
                    raise TaskFailed(f"{name} lies there, too: which files it has is not known here")
            elif entry.get("type") == "table":
                tables.append((name, text(entry, "entity")))
    return tables


async def other_relations(execution: Sessions, entity: str) -> AsyncGenerator[tuple[str, JsonObject], None]:
    """The name and entry of all else in the catalog that is live or dropped, and not purged yet."""
    session = execution.session()
    index = (await session.state.head()).index
    for kind in ("relation\n", "tombstone\n"):
        async with aclosing(entries_in(session.state, index, kind)) as entries:
            async for key, entry in entries:
                if text(entry, "entity") == entity:
                    continue
                if kind == "tombstone\n":
                    if Tombstone(entry).state != PURGED:
                        yield dotted(texts(entry, "namespace"), text(entry, "name")), entry
                else:
                    _, namespace, name = key.split("\n")
                    yield dotted(tuple(namespace.split("\t")), name), entry


async def _files_of(execution: Sessions, entity: str) -> AsyncGenerator[str, None]:
    """All files that the present state of a table leads to."""
    session = execution.session()
    try:
        found = await current_file(session, entity)
    except NotFound:
        return
    if found is None:
        return
    file, body = found
    yield file.location
    reached = Reached()
    reached.add(parse_metadata(body, file.location))
    for each in (*reached.lists, *reached.statistics):
        yield each
    async with aclosing(manifests_of(execution, reached)) as manifests:
        async for manifest in manifests:
            yield manifest.location
            async with aclosing(entries_of(execution, manifest.location)) as blocks:
                async for entries in blocks:
                    for entry in entries:
                        yield entry.location
