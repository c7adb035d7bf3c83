"""Locations that a commit adds to a table: the registry owns the set, so it is told first (docs/design/state.md)."""

from collections.abc import Sequence

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.planning.context import Context
from arco_catalog.state.entries import RelationEntry
from arco_catalog.state.locations import Location

MAX_NAMED = 16
"""Locations that a commit may name. Each is compared with all that the table holds, and then held as long as the table
is there."""
MAX_HELD = 32
"""Locations that a table or view may hold: each stands in the registry's HEAD."""


def check_named(named: Sequence[str]) -> None:
    """Raises `BadRequest` for more locations than a commit may name."""
    if len(named) > MAX_NAMED:
        raise BadRequest(f"A commit may name at most {MAX_NAMED} locations, not {len(named)}")


def locations_to_reserve(context: Context, entry: RelationEntry, named: Sequence[str]) -> list[Location]:
    """Those of the named locations that the table does not hold yet, or is about to give back. Raises `BadRequest` for
    a forbidden one, and for more than a commit may name."""
    check_named(named)
    leaving = entry.leaving
    held = {location for location in entry.locations if location not in leaving}
    wanted = [context.locations.check(location) for location in named]
    return [location for location in wanted if not location.inside_any(held)]


def reserved_for(context: Context, entry: RelationEntry, named: Sequence[str]) -> list[str]:
    """The reserved locations that a commit which names these relies on. Raises `BadRequest` as `locations_to_reserve`
    does."""
    wanted = [context.locations.check(location) for location in named]
    relied_on = {folder for location in wanted for folder in (location.normal, *location.around())}
    return [normal for normal in entry.reserved if normal in relied_on]
