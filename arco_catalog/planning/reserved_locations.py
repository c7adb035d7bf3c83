"""Locations that a commit adds to a table. The registry owns the set of a table's locations, so a registry commit
reserves them before the table's commit (docs/design/state.md)."""

from collections.abc import Sequence

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.planning.context import Context
from arco_catalog.state.entries import RelationEntry
from arco_catalog.state.locations import Location

MAX_NAMED = 16
"""The limit of locations that a commit may name. Each is compared with all that the table holds, and then held as long
as the table exists."""
MAX_HELD = 32
"""The limit of locations that a table or view may hold: each is an entry of the registry."""


def check_named(named: Sequence[str]) -> None:
    """Raises `BadRequest` for more locations than a commit may name."""
    if len(named) > MAX_NAMED:
        raise BadRequest(
            f"A create or commit of a table or view may name at most {MAX_NAMED} locations, not {len(named)}"
        )


def locations_to_reserve(context: Context, entry: RelationEntry, named: Sequence[str]) -> list[Location]:
    """Returns those of the named locations that the entity must reserve: they are not inside a location that it holds,
    or only inside one that it is about to release. Raises `BadRequest` for a location that is not allowed, and for more
    than `MAX_NAMED`."""
    check_named(named)
    leaving = entry.leaving
    held = {location for location in entry.locations if location not in leaving}
    wanted = [context.locations.check(location) for location in named]
    return [location for location in wanted if not location.inside_any(held)]


def reserved_for(context: Context, entry: RelationEntry, named: Sequence[str]) -> list[str]:
    """Returns the reserved locations of the table that equal or contain a location which the commit names. Raises
    `BadRequest` for a location that is not allowed."""
    wanted = [context.locations.check(location) for location in named]
    relied_on = {folder for location in wanted for folder in (location.normal, *location.around())}
    return [normal for normal in entry.reserved if normal in relied_on]
