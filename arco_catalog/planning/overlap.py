"""Refuses locations that belong to another entity: those that another table or view holds, and the folder of a
namespace. If the operator allows overlaps, only locations where a dropped table is being purged count
(docs/design/purge.md#rule-8). With privileges, a location that the caller may not name is a 403.

The refusal of a location that is taken is a 400. Clients would take a 409 for "the table exists" on a create, and try a
commit again (docs/decisions/0023).
"""

from collections.abc import Collection, Iterable, Sequence

from arco_catalog.iceberg.errors import BadRequest, Forbidden
from arco_catalog.planning.access import Requirement, Securable, denied
from arco_catalog.planning.context import Context
from arco_catalog.planning.dropped import securable_of
from arco_catalog.planning.names import called, dotted, existing_namespace
from arco_catalog.planning.privileges import Privilege
from arco_catalog.state.entries import Holder, Kind, dropped_at, find_namespace, find_relation, overlapping, purging_at
from arco_catalog.state.index import Index, Namespace, namespace_key, relation_key
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Needs, Steps


def require_free_locations(
    context: Context, index: Index, locations: Sequence[Location], namespace: Namespace, *, fresh: str | None = None
) -> Steps[None]:
    """Raises the errors of `check_choice`, `refuse_overlap` and `refuse_folders`, in this order, if a new entity in a
    namespace may not have one of these locations. If the operator allows overlaps, only `check_choice` and purges
    under way still count. `fresh` is an entity id that this request generated (see `overlapping`)."""
    yield from check_choice(context, index, locations, namespace, fresh=fresh)
    yield from refuse_overlap(context, index, locations, fresh=fresh)
    yield from refuse_folders(context, index, locations, namespace, fresh=fresh)


def refuse_overlap(
    context: Context,
    index: Index,
    locations: Iterable[Location],
    *,
    but: Sequence[str] = (),
    fresh: str | None = None,
    advice: str = "choose another location",
) -> Steps[None]:
    """Raises `BadRequest` if an entity that is not in `but` holds a location that equals, contains or is inside one of
    these, with `advice` unless that is a dropped table being purged, and `PendingTransaction` if that hold is an
    intent. If the operator allows overlaps, only dropped tables that are being purged count. `fresh` is an entity id
    that this request generated (see `overlapping`)."""
    purging_only = context.allow_location_overlap
    for location in locations:
        holder = yield from overlapping(index, location, but=but, fresh=fresh, purging_only=purging_only)
        if holder is not None and holder.purging:
            raise BadRequest(
                f"Location {location.uri} overlaps that of a dropped table whose files are being deleted: wait until "
                "the purge has succeeded (a failed one needs `arco tasks retry`); a create or commit may also choose "
                "another location"
            )
        if holder is not None:
            holding = yield from _described(context, index, holder)
            raise BadRequest(
                f"Location {location.uri} overlaps the location of {holding}: tables and views may not share a "
                f"folder, so {advice}"
            )


def refuse_purged(index: Index, folders: Iterable[Location], entity: str) -> Steps[None]:
    """Raises `BadRequest` if one of these paths equals or is inside a location where a dropped table other than
    `entity` is being purged, so that no table may refer to files there."""
    for folder in folders:
        purging = yield from purging_at(index, folder, entity)
        if purging is not None:
            raise BadRequest(
                f"Files in {folder.uri} belong to a dropped table and are being deleted: no other table may "
                "refer to manifest lists or statistics there"
            )


def namespace_location(index: Index, namespace: Namespace) -> Steps[Location | None]:
    """Returns the location of a namespace, and loads the key itself; None if the namespace does not exist."""
    yield Needs(keys=[namespace_key(namespace)])
    found = find_namespace(index, namespace)
    return None if found is None else Location.parse(found.location)


def _described(context: Context, index: Index, holder: Holder) -> Steps[str]:
    """Returns the description of a holder for an error: kind and name, without the id, if the name is found and the
    caller may list it; else no name, and the entity id only if privileges are not enforced."""
    if len(holder.name) > 1:
        namespace, name = holder.name[:-1], holder.name[-1]
        yield Needs(keys=[relation_key(namespace, name)])
        found = find_relation(index, namespace, name)
        if found is not None and found.entity == holder.entity:
            kind: Kind = "view" if found.kind == "view" else "table"
            lists = Privilege.VIEW_LIST if kind == "view" else Privilege.TABLE_LIST
            if (yield from context.may(index, Requirement(lists, Securable(namespace, name, kind)))):
                return f"{called(found.kind)} {dotted(namespace, name)}"
    return "another table or view" + (f" (entity {holder.entity})" if context.holds is None else "")


def check_inside(context: Context, index: Index, locations: Iterable[Location], folder: Location) -> Steps[None]:
    """Raises `Forbidden` for a location outside `folder`, the location of a namespace or, for a namespace's own
    location, the default one, unless the caller may manage all content of the catalog: files outside may belong to
    other tables. All pass if privileges are not enforced."""
    outside = [location for location in locations if not location.written_below(folder)]
    if outside and not (yield from context.may(index, Requirement(Privilege.CATALOG_MANAGE_CONTENT))):
        refusal = Forbidden(
            f"Location {outside[0].uri} is outside of {folder.uri}, the folder of its namespace: to choose it "
            "takes the privilege CATALOG_MANAGE_CONTENT on the catalog"
        )
        raise denied(refusal, Privilege.CATALOG_MANAGE_CONTENT.value, "catalog")


def check_inside_namespace(
    context: Context, index: Index, locations: Iterable[Location], namespace: Namespace
) -> Steps[None]:
    """Raises as `check_inside` does, for the folder of an existing namespace, and `NoSuchNamespace`."""
    yield Needs(keys=[namespace_key(namespace)])
    folder = Location.parse(existing_namespace(index, namespace).location)
    yield from check_inside(context, index, locations, folder)


def refuse_folders(
    context: Context, index: Index, locations: Iterable[Location], namespace: Namespace, *, fresh: str | None = None
) -> Steps[None]:
    """Raises `BadRequest` for a location that is, or contains, a namespace's folder: every table created in the
    namespace later would overlap it. It checks the namespace of the table, and the namespace whose default folder the
    location is. A location whose last segment ends with `fresh`, an entity id that this request generated, is new and
    passes. All pass if the operator allows overlaps."""
    if context.allow_location_overlap:
        return
    warehouse = context.warehouse
    for location in locations:
        if fresh is not None and location.named_after(fresh):
            continue
        candidates = {namespace}
        if location.inside(warehouse) and len(location.segments) > len(warehouse.segments):
            candidates.add(location.segments[len(warehouse.segments) :])
        yield Needs(keys=[namespace_key(candidate) for candidate in candidates if candidate])
        _refuse_folder(index, location, candidates)


def _refuse_folder(index: Index, location: Location, candidates: Iterable[Namespace]) -> None:
    """Rejects the request if a location is or contains the folder of one of these namespaces, as far as they exist."""
    for candidate in candidates:
        found = find_namespace(index, candidate)
        if found is not None and Location.parse(found.location).inside(location):
            raise BadRequest(
                f"Location {location.uri} is, or contains, the folder of namespace {dotted(candidate)}: no other table "
                "could be created there by default. Choose a folder inside it; metadata with this location can't be "
                "registered"
            )


def check_choice(
    context: Context, index: Index, locations: Collection[Location], namespace: Namespace, *, fresh: str | None = None
) -> Steps[None]:
    """Raises `Forbidden` if the caller may not choose one of these locations for a table or view of a namespace: it is
    outside the namespace's folder, and the caller may not manage all content of the catalog, or files of a dropped
    table that the caller may not read may still be there. A location that ends with `fresh`, an entity id that this
    request generated, has no such files. Raises `NoSuchNamespace`. All pass if privileges are not enforced."""
    if context.holds is None:
        return
    yield from check_inside_namespace(context, index, locations, namespace)
    for location in locations:
        if fresh is not None and location.named_after(fresh):
            continue
        for holder in (yield from dropped_at(index, location)):
            on = yield from securable_of(index, holder)
            if not (yield from context.may(index, Requirement(Privilege.TABLE_READ_DATA, on))):
                refusal = Forbidden(
                    f"Location {location.uri} may hold the files of a table that was dropped: to choose it takes the "
                    "privilege TABLE_READ_DATA on that table"
                )
                raise denied(refusal, Privilege.TABLE_READ_DATA.value, f"dropped table {holder.entity}")
