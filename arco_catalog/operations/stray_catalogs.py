"""Finds the catalogs of a realm that have state in the store but no name in the realm, and undoes the drop of such a
catalog."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from functools import partial

from arco_catalog.iceberg.errors import BadRequest, CommitStateUnknown, InternalError, NotFound, Unavailable
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.catalogs import open_state
from arco_catalog.operations.management.catalog_undrop import (
    NameCatalog,
    ReopenCatalog,
    UndropResult,
    entry_to_undrop,
)
from arco_catalog.operations.management.catalogs import CatalogRequest, list_catalogs
from arco_catalog.operations.management.entities import body_of, check_entity_name, check_entity_properties, found
from arco_catalog.operations.management.principal_roles import PRINCIPAL_ROLE
from arco_catalog.operations.realms import Realm
from arco_catalog.protocol.access import ALREADY_AUTHORIZED
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.lookup import load
from arco_catalog.state.catalog_state import CATALOG_STATE, CatalogState
from arco_catalog.state.fields import mapping, optional_text, texts
from arco_catalog.state.listing import list_objects
from arco_catalog.state.needs import Needs
from arco_catalog.state.realm import SERVICE_ADMIN
from arco_catalog.state.registry import RegistryState
from storage_backends.lazy_dataclass import dataclass

SETTLING_MS = 10 * 60_000
"""A catalog that was never closed, and whose last commit is younger than this, may still be in creation."""


@dataclass(frozen=True, slots=True)
class StrayCatalog:
    """A catalog found by its state in the store, which may have no name in the realm: the root of its registry, the
    registry's HEAD, and the state of the catalog itself in that registry."""

    root: str
    head: RegistryState
    state: CatalogState

    @property
    def name(self) -> str | None:
        """The name that a closed catalog had when it was dropped. None for an open one, which was never dropped or was
        undropped since, and if the name is unknown."""
        return optional_text(self.state.catalog or {}, "name")


@dataclass(frozen=True, slots=True)
class StrayCatalogs:
    """The catalogs that have state in the folder of the realm's catalogs but no name, in order of their roots. `errors`
    are those of the ones whose registry can't be read, by their roots."""

    found: Sequence[StrayCatalog]
    errors: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UndropRequest:
    """A request to undo the drop of a catalog, which gets this name. `kind`, if it is given, replaces the type that the
    catalog had; the fields of `properties` and `storage` are added to the present ones, or replace ones of the same
    names."""

    name: str
    kind: str | None
    properties: JsonObject
    storage: JsonObject


async def stray_catalogs(realm: Realm, session: Session) -> StrayCatalogs:
    """Returns all catalogs that have state in the folder of the realm's catalogs but no name: dropped ones, and ones
    that were never made completely; folders with a registry without commits are left out. It does not find a catalog
    that lies directly in the realm, as the first one of a bootstrap does. Reads the registry in every folder without a
    name; one that can't be read goes into `errors`. Raises `StoreError`."""
    prefix = realm.root_of("")
    async with aclosing(list_objects(session.state, prefix)) as objects:
        roots = {prefix + each.key.removeprefix(prefix).partition("/")[0] async for each in objects}
    named = {each.root for each in await list_catalogs(session)}
    found: list[StrayCatalog] = []
    errors: dict[str, str] = {}
    for root in sorted(roots - named):
        try:
            stray = await read_catalog(session, root)
        except InternalError as error:
            errors[root] = error.message
        else:
            found += [] if stray is None else [stray]
    return StrayCatalogs(found, errors)


async def find_stray(realm: Realm, session: Session, place: str) -> StrayCatalog:
    """Returns the catalog at a `place`, with a name or without. A `place` with a slash, except at the ends, is the
    catalog's root in the store; one without a slash is the name of a folder, first among the folders of the realm's
    catalogs, then directly in the realm. Raises `NotFound`, `BadRequest` for a root that is neither in the folder of
    the realm's catalogs nor directly in the realm, and as `read_catalog` does."""
    whole, parent = place.strip("/"), realm.root_of("")
    directly = realm.first_root(whole.rpartition("/")[2])
    if "/" in whole and not whole.startswith(parent) and whole != directly:
        raise BadRequest(
            f"{place} can't be the state of a catalog of this realm: the folders of those begin with {parent}, or, "
            f"for a catalog that `arco bootstrap` made, are {realm.first_root('NAME')}"
        )
    roots = [whole] if "/" in whole else [realm.root_of(whole), directly]
    for root in roots:
        stray = await read_catalog(session, root)
        if stray is not None:
            return stray
    raise NotFound(
        f"There is no state of a catalog in {' or '.join(roots)}: `arco catalogs list --dropped` lists the folders of "
        "catalogs without a name"
    )


async def read_catalog(session: Session, root: str) -> StrayCatalog | None:
    """Returns the catalog with this root, whether it has a name or not; None if there is no state of a catalog. Raises
    `InternalError` if its registry can't be read, and `StoreError`."""
    state = open_state(session, root)
    head = await state.head()
    if head.version is None:
        return None
    await load(state, head.index, Needs(keys=[CATALOG_STATE]))
    return StrayCatalog(root, head, CatalogState.of(head.index))


async def undrop_catalog(realm: Realm, session: Session, stray: StrayCatalog, request: UndropRequest) -> UndropResult:
    """Gives a catalog a name again, with the roles, grants and tombstones in its registry, under a fresh id. Unfinished
    purges, begun or not, become plain drops; the result names their tables, and the ones of purges that the drop
    cancelled. `session` is a session of the realm's registry. Raises `AlreadyExists` for a name that is taken, and
    `BadRequest` for a catalog that exists, is being created or has another name, for an invalid name or properties, if
    no base location is known, and for locations that are not allowed or belong to another catalog now; `CommitFailed`
    if another command drops or undrops it meanwhile; `CommitStateUnknown` instead of `Unavailable` after the first of
    two commits."""
    check_entity_name(request.name, "catalog")
    check_entity_properties({key: str(value) for key, value in request.properties.items()}, "catalog")
    now_ms = session.now_ms()
    if not stray.state.is_closed:
        await _require_abandoned(session, stray, now_ms)
    entry = entry_to_undrop(
        stray.state, stray.root, request.name, request.kind, request.properties, request.storage, now_ms
    )
    properties = {key: str(value) for key, value in entry.properties.items()}
    catalog_request = CatalogRequest(entry.name, entry.kind, properties, entry.storage)
    catalog = realm.unnamed(catalog_request, stray.root).session(session.request, ALREADY_AUTHORIZED)
    admin = await PRINCIPAL_ROLE.find(session, SERVICE_ADMIN)
    entity = session.runtime.ulid()
    disjoint = not session.settings.allow_catalog_overlap
    naming = NameCatalog(session, entry, entity, stray.state, realm.check_locations, disjoint=disjoint)
    if stray.state.is_closed:
        named = body_of(await run(session, naming))
        retired = optional_text(named, "retired")
        with _after_first_commit(f"Catalog {entry.name} has its name, but is still closed: undrop it again"):
            reopened = await run(catalog, ReopenCatalog(catalog, entity, retired, admin))
    else:
        await found(session, partial(naming.edits, attempt=session.attempt()))  # refuses before the first commit
        reopened = await run(catalog, ReopenCatalog(catalog, None, None, admin))
        done = (
            f"The unfinished purges in {stray.root}, if there were any, were cancelled, but the catalog still has no "
            "name: undrop it again in ten minutes"  # earlier, its new commit would count as one of a creation
        )
        with _after_first_commit(done):
            named = body_of(await run(session, naming))
    return UndropResult(mapping(named, "catalog"), texts(body_of(reopened), "cancelled-purges"))


@contextmanager
def _after_first_commit(done: str) -> Iterator[None]:
    """Raises `CommitStateUnknown` in place of `Unavailable`, which would mean that an undrop changed nothing. `done`
    states what the first commit has changed, and the remedy."""
    try:
        yield
    except Unavailable as error:
        raise CommitStateUnknown(f"{done}. {error.message}") from error


async def _require_abandoned(session: Session, stray: StrayCatalog, now_ms: int) -> None:
    """Raises `BadRequest` for an open catalog that has a name, or may be about to get one because the last commit is
    younger than `SETTLING_MS`."""
    for each in await list_catalogs(session):
        if each.root == stray.root:
            raise BadRequest(
                f"There is no drop to undo: {stray.root} is the state of catalog {each.name}, which exists"
            )
    if stray.head.at_ms > now_ms - SETTLING_MS:
        raise BadRequest(
            f"The catalog in {stray.root} has a commit of the last ten minutes, and may be one that is being made: try "
            "again in ten minutes"
        )
