"""Checks whether a table may take manifest lists and statistics from a path outside of its locations: that prevents the
purge and the maintenance of a table that has its files there (docs/decisions/0072)."""

from collections.abc import Collection, Iterable, Sequence

from arco_catalog.iceberg.errors import BadRequest, Forbidden
from arco_catalog.planning.access import Requirement, Securable, denied
from arco_catalog.planning.context import Context
from arco_catalog.planning.dropped import securable_of
from arco_catalog.planning.overlap import check_inside_namespace, namespace_location, refuse_purged
from arco_catalog.planning.privileges import Privilege
from arco_catalog.state.borrowed import Loans, merged
from arco_catalog.state.entries import FormerHolder, PendingTransaction
from arco_catalog.state.fields import optional_text, text, texts
from arco_catalog.state.index import Index, Namespace, locations_at, released_at, released_key
from arco_catalog.state.locations import AllowedLocations, Location
from arco_catalog.state.needs import Needs, Scan, Steps

MAX_NEW_PATHS = 1_000
"""Maximum number of paths outside of a table's locations that one commit may add: each is compared with the holds that
the registry has there."""


def check_added(allowed: AllowedLocations, paths: Sequence[Location]) -> None:
    """Raises `BadRequest` for more than `MAX_NEW_PATHS` paths, outside of the table's own locations, that one commit
    adds, and as `check_allowed` does."""
    if len(paths) > MAX_NEW_PATHS:
        raise BadRequest(
            f"A commit may add manifest lists and statistics in at most {MAX_NEW_PATHS:,} paths outside of the table's "
            f"locations, not {len(paths):,}: write them to the table's own location"
        )
    check_allowed(allowed, paths)


def check_allowed(allowed: AllowedLocations, paths: Iterable[Location]) -> None:
    """Raises `BadRequest` for a path at which the allowed locations let no table be (one outside of them, a reserved or
    too long one), and for one with an empty level, '.' or '..'. The `paths` are outside of the table's own
    locations."""
    for path in paths:
        where = f"Manifest lists and statistics in {path.uri} are outside of the table's locations"
        if path.collapsed or path.has_dots:
            raise BadRequest(
                f"{where}, and their path has an empty level ('//'), '.' or '..': write them to a path without these, "
                "or register a metadata file that names none there"
            )
        try:
            allowed.check(path.uri)
        except BadRequest as error:
            raise BadRequest(f"{where}: {error.message}") from error


def borrow(
    context: Context, index: Index, loans: Loans, paths: Sequence[Location], namespace: Namespace, entity: str
) -> Steps[Loans]:
    """Computes the loans of the table `entity` in this namespace with these paths added: a loan is a path outside of
    the table's locations from which it takes files. Of too many, some are replaced by their parents. Raises
    `BadRequest` for a path where a purge runs, and for too many paths. Only where privileges are enforced, it raises
    `Forbidden` if the caller may not take files from one, and `PendingTransaction` if a hold there is an intent."""
    yield from refuse_purged(index, paths, entity)
    grown = merged(loans, paths, (yield from namespace_location(index, namespace)))
    yield from _check_rights(context, index, paths, namespace, entity)
    for normal in sorted(grown.widened - loans.widened):
        yield from _check_holders(context, index, Location.of_normal(normal), entity, inside=True)
    return grown


def _check_rights(
    context: Context, index: Index, paths: Collection[Location], namespace: Namespace, entity: str
) -> Steps[None]:
    """Raises `Forbidden` for a path outside of the namespace's location, unless the caller has CATALOG_MANAGE_CONTENT,
    and for a path at the location of another table whose files the caller may not write. Raises
    `PendingTransaction` for a hold there that is an intent. All pass if privileges are not enforced."""
    if context.holds is None:
        return
    yield from check_inside_namespace(context, index, paths, namespace)
    for path in paths:
        yield from _check_holders(context, index, path, entity)


def _check_holders(context: Context, index: Index, path: Location, entity: str, *, inside: bool = False) -> Steps[None]:
    """Raises `Forbidden` if the path equals or is in a location of another table, or of a dropped one, whose files the
    caller may not write; with `inside` also if the path contains such a location. Raises `PendingTransaction` for a
    hold that is an intent. All pass if privileges are not enforced."""
    if context.holds is None:
        return
    around = [path.normal, *path.around()]
    scans = [released_key(place, "") for place in around]
    scans += [locations_at(path.normal), released_at(path.normal)] if inside else []
    yield Needs(scans=[Scan(prefix) for prefix in scans], holds=around)
    found = [hold for place in around for _, hold in index.holds_on(place)]
    found += [hold for prefix in scans for _, hold in index.scan(prefix)]
    for hold in found:
        holder = text(hold, "entity")
        if holder == entity:
            continue
        transaction = optional_text(hold, "transaction")
        if transaction is not None:
            raise PendingTransaction(transaction)
        if hold.get("state") == "live":
            name = texts(hold, "name")
            on = Securable(name[:-1], name[-1] if name else None, entity=holder)
        else:
            on = yield from securable_of(index, FormerHolder.of(hold))
        if not (yield from context.may(index, Requirement(Privilege.TABLE_WRITE_DATA, on))):
            refusal = Forbidden(
                f"{path.uri} is at the location of another table: to take manifest lists or statistics from there "
                "takes the privilege TABLE_WRITE_DATA on that table"
            )
            raise denied(refusal, Privilege.TABLE_WRITE_DATA.value, f"table {holder}")
