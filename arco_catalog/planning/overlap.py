"""Whether tables and views may lie where a request wants them: never in each other's locations, unless the operator
allows it, nor in place of a namespace's folder.

What is refused is a bad request. A 409 would be read for "the table exists" on a create, and be tried again on a commit
(docs/decisions/0023).
"""

from collections.abc import Iterable, Sequence

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.planning.context import Context
from arco_catalog.planning.names import dotted
from arco_catalog.state.entries import Holder, find_namespace, find_relation, overlapping
from arco_catalog.state.index import Index, Namespace, namespace_key, relation_key
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Needs, Steps


def refuse_overlap(
    context: Context,
    index: Index,
    locations: Iterable[Location],
    *,
    but: Sequence[str] = (),
    fresh: str | None = None,
) -> Steps[None]:
    """Raises `BadRequest` if somebody else holds one of these locations, and `PendingTransaction`. `fresh` is an entity
    id minted for this request (see `overlapping`)."""
    if context.allow_location_overlap:
        return
    for location in locations:
        holder = yield from overlapping(index, location, but=but, fresh=fresh)
        if holder is not None:
            shown = yield from _shown(index, holder)
            raise BadRequest(f"Location {location.uri} overlaps the location of {shown}")


def _shown(index: Index, holder: Holder) -> Steps[str]:
    """The holder as the error message names it. There are no grants yet: everybody may see every name."""
    if len(holder.name) > 1:
        namespace, name = holder.name[:-1], holder.name[-1]
        yield Needs(keys=[relation_key(namespace, name)])
        found = find_relation(index, namespace, name)
        if found is not None and found.entity == holder.entity:
            return f"{found.kind} {dotted(namespace, name)}"
    return f"another table or view (entity {holder.entity})"


def refuse_folders(
    context: Context, index: Index, locations: Iterable[Location], namespace: Namespace, *, fresh: str | None = None
) -> Steps[None]:
    """Raises `BadRequest` for a namespace's own folder: something there would be in the way of all that is created in
    the namespace later. The namespaces looked at are that of the table, and the one whose default folder this is. A
    location that ends in `fresh` is nobody's folder."""
    if context.allow_location_overlap:
        return
    warehouse = context.warehouse
    for location in locations:
        if fresh is not None and location.segments[-1:] and location.segments[-1].endswith(f"-{fresh}"):
            continue
        candidates = {namespace}
        if location.inside(warehouse) and len(location.segments) > len(warehouse.segments):
            candidates.add(location.segments[len(warehouse.segments) :])
        yield Needs(keys=[namespace_key(candidate) for candidate in candidates if candidate])
        _refuse_folder(index, location, candidates)


def _refuse_folder(index: Index, location: Location, candidates: Iterable[Namespace]) -> None:
    for candidate in candidates:
        found = find_namespace(index, candidate)
        if found is not None and Location.parse(found.location).inside(location):
            raise BadRequest(
                f"Location {location.uri} is, or contains, the folder of namespace {dotted(candidate)}: no other table "
                "could be created there by default. Choose a folder inside it"
            )
