"""Whether a table may take manifest lists and statistics from a folder outside of its locations
(docs/design/purge.md#rule-16): such a folder holds back the purge and the maintenance of whichever table lies there."""

from collections.abc import Collection, Iterable, Sequence

from arco_catalog.iceberg.errors import BadRequest, Forbidden
from arco_catalog.planning.access import Requirement, Securable, denied
from arco_catalog.planning.context import Context
from arco_catalog.planning.names import existing_namespace
from arco_catalog.planning.overlap import namespace_location, refuse_outside, refuse_purged
from arco_catalog.planning.privileges import Privilege
from arco_catalog.state.borrowed import Loans, merged
from arco_catalog.state.entries import PendingTransaction
from arco_catalog.state.fields import optional_text, text, texts
from arco_catalog.state.index import Index, Namespace, locations_at, namespace_key, released_at, released_key
from arco_catalog.state.locations import AllowedLocations, Location
from arco_catalog.state.needs import Needs, Scan, Steps


def check_allowed(allowed: AllowedLocations, folders: Iterable[Location]) -> None:
    """Raises `BadRequest` for a folder, outside of a table's locations, in which no table may lie either."""
    for folder in folders:
        where = f"Manifest lists and statistics in {folder.uri} are outside of the table's locations"
        if folder.collapsed or folder.has_dots:
            raise BadRequest(f"{where}, by a name with an empty level ('//'), '.' or '..': write single slashes")
        try:
            allowed.check(folder.uri)
        except BadRequest as error:
            raise BadRequest(f"{where}: {error.message}") from error


def borrow(
    context: Context, index: Index, loans: Loans, folders: Sequence[Location], namespace: Namespace, entity: str
) -> Steps[Loans]:
    """The loans of a table with these folders added. Raises `BadRequest` for a folder that is being purged, and for too
    many, `Forbidden`, and `PendingTransaction`."""
    yield from refuse_purged(index, folders, entity)
    grown = merged(loans, folders, (yield from namespace_location(index, namespace)))
    yield from _check_rights(context, index, folders, namespace, entity)
    widened = grown.widened - loans.widened
    for path in sorted(widened):
        yield from _check_holders(context, index, Location.of_normal(path), namespace, entity, inside=True)
    return grown


def _check_rights(
    context: Context, index: Index, folders: Collection[Location], namespace: Namespace, entity: str
) -> Steps[None]:
    """Raises `Forbidden` for a folder outside of the namespace's without CATALOG_MANAGE_CONTENT, and for one at another
    table's location."""
    if context.holds is None:
        return
    yield Needs(keys=[namespace_key(namespace)])
    within = Location.parse(existing_namespace(index, namespace).location)
    yield from refuse_outside(context, index, folders, within)
    for folder in folders:
        yield from _check_holders(context, index, folder, namespace, entity)


def _check_holders(
    context: Context, index: Index, folder: Location, namespace: Namespace, entity: str, *, inside: bool = False
) -> Steps[None]:
    """Raises `Forbidden` where the folder equals or lies in a location of another table, live or dropped, whose files
    the caller may not write; with `inside`, also where it contains one."""
    if context.holds is None:
        return
    around = [folder.normal, *folder.around()]
    scans = [released_key(place, "") for place in around]
    scans += [locations_at(folder.normal), released_at(folder.normal)] if inside else []
    yield Needs(scans=[Scan(prefix) for prefix in scans], holds=around)
    holds = [hold for place in around for _, hold in index.holds_on(place)]
    holds += [hold for prefix in scans for _, hold in index.scan(prefix)]
    for hold in holds:
        holder = text(hold, "entity")
        if holder == entity:
            continue
        transaction = optional_text(hold, "transaction")
        if transaction is not None:
            raise PendingTransaction(transaction)
        name = texts(hold, "name")  # a dropped table's hold has none: its place is in the namespace's folder
        on = Securable(name[:-1] if len(name) > 1 else namespace, entity=holder)
        if not (yield from context.may(index, Requirement(Privilege.TABLE_WRITE_DATA, on))):
            refusal = Forbidden(
                f"{folder.uri} is at the location of another table: to take manifest lists or statistics from there "
                "takes the privilege TABLE_WRITE_DATA on that table"
            )
            raise denied(refusal, Privilege.TABLE_WRITE_DATA.value, f"table {holder}")
