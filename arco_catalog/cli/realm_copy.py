"""Makes the objects of a foreign realm in a realm here: principals, roles, catalogs and grants; or plans that, or
compares both. What is here already is left as it is, so a run that was stopped is begun again by the same command."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from arco_catalog.authentication.secrets import Secrets, new_client_id, new_secret
from arco_catalog.cli.counterparts import counterpart, differences
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.management import ApiClient
from arco_catalog.cli.realm_objects import AT_ONCE, Kind, RealmObject, by_name
from arco_catalog.cli.realm_report import NewSecret, RealmReport, Result, result_of
from arco_catalog.cli.session import another, operator_request
from arco_catalog.iceberg.errors import CatalogError, InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.environment import key_policy_from_env
from arco_catalog.operations.management.catalogs import (
    ADMIN_PRIVILEGES,
    CatalogRequest,
    list_catalogs,
    locations_of,
    overlaps,
)
from arco_catalog.operations.management.principals import ROOT_PRINCIPAL, NewCredentials, create_principal
from arco_catalog.operations.realms import Realm, make_catalog
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.state.fields import mapping, string_map, text
from arco_catalog.state.realm import CATALOG_ADMIN, EXTERNAL, SERVICE_ADMIN
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.vending.storage_config import parse_storage_config
from arco_catalog.vending.storage_policy import StoragePolicy

Key = tuple[Kind, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Destination:
    """The realm into which an import writes, with a session of its registry and a client of its management API."""

    realm: Realm
    session: Session
    api: ApiClient
    environment: Mapping[str, str]


class RealmCopy:
    """One run of an import of a realm, of the plan of one, or of a comparison. It adds the results to a report. `keep`
    takes the secret of a principal before that is made. `kept` are the principals with secrets in the user's file, None
    without a file."""

    def __init__(
        self,
        place: Destination,
        report: RealmReport,
        keep: Callable[[NewSecret], None],
        kept: Collection[str] | None,
    ) -> None:
        self._place, self._report, self._keep, self._kept = place, report, keep, kept
        self._absent: dict[Key, str] = {}
        """What will not be here, with the reason."""
        self.failed: set[tuple[str, ...]] = set()
        """The securables that were not imported, by the catalog, the type and the levels of its name."""
        self.seen: set[tuple[str, ...]] = set()
        """The securables that the source has."""
        self.replaced: set[tuple[str, ...]] = set()
        """The tables and views that were registered again, or would be."""
        self.planned: list[RealmObject] = []
        """The first objects of the catalogs that a plan would make."""

    async def go_over(self, there: Sequence[RealmObject], here: Sequence[RealmObject]) -> None:
        """Compares objects of the source, sorted by kind, with what is here, and adds the results to the report. Makes
        what is missing, or plans that, unless the run only compares. Catalogs are made one after another, up to
        `AT_ONCE` objects of another kind concurrently."""
        known = by_name(here)
        for kind, group in groupby(there, lambda item: item.kind):
            step = 1 if kind is Kind.CATALOG else AT_ONCE
            objects = [*group]
            for start in range(0, len(objects), step):
                await gather(*(self._copy_object(item, known) for item in objects[start : start + step]))

    async def _copy_object(self, source: RealmObject, known: Mapping[Key, RealmObject]) -> None:
        """Compares one object with its counterpart here. If there is none, makes or plans it, or in a comparison
        reports it as missing; skips an object that needs an absent one. Adds the results to the report, also every
        field that has no counterpart; an object without one counts as absent."""
        for key in _needed(source):
            if key in self._absent:
                self._report.add(source.kind, str(source), Result.SKIPPED, self._absent[key])
                return
        found = counterpart(source)
        for field, reason in found.left_out:
            self._report.add(source.kind, f"{source}{': ' if field else ''}{field}", Result.NO_COUNTERPART, reason)
        if found.object is None:
            self._absent[source.kind, source.names] = f"{source.kind} {source} has no counterpart"
            return
        here = known.get((source.kind, source.names))
        if here is not None:
            self._compare_with(found.object, here)
        elif self._report.compared:
            self._report.add(source.kind, str(source), Result.MISSING)
        else:
            await self._make(found.object)

    def _compare_with(self, there: RealmObject, here: RealmObject) -> None:
        """Adds to the report whether an object `there`, at the source, and the counterpart `here` are equal, and
        whether the secret of a principal is missing. A catalog of another type here counts as absent."""
        ours = counterpart(here).object or here
        unequal = [*differences(there, ours)] if there.kind in _DESCRIBED else []
        if "type" in unequal:
            self._absent[there.kind, there.names] = f"the catalog {there} here is of another type"
        result, reason = result_of(unequal)
        reasons = [text for text in (reason, self._secret_missing(there)) if text]
        self._report.add(there.kind, str(there), result, "; ".join(reasons) or None)

    def _secret_missing(self, there: RealmObject) -> str | None:
        """Returns what to do about a principal with a secret that is not in the user's file; None if it is there,
        without a file, for the root principal, and for any other object."""
        name = there.names[0]
        if there.kind is not Kind.PRINCIPAL or self._kept is None or name == ROOT_PRINCIPAL or name in self._kept:
            return None
        return f"the file has no secret of it: if it is lost, `arco principals reset {name}` makes another"

    async def _make(self, there: RealmObject) -> None:
        """Makes an object, or without `apply` only checks, as far as possible, that it can be made. Adds the result to
        the report, a failure too; an object that failed, other than a grant, counts as absent. The first objects of a
        catalog that was or would be made are added to `planned`."""
        try:
            if there.kind is Kind.CATALOG:
                await self._check_catalog(there)
            reason = self._check_securable(there) if there.kind is Kind.GRANT else None
            if self._report.apply:
                await self._send(there)
        except (CatalogError, CliError) as error:
            self._report.add(there.kind, str(there), Result.FAILED, str(error))
            if there.kind is not Kind.GRANT:
                self._absent[there.kind, there.names] = f"{there.kind} {there} was not made"
            return
        self._report.add(there.kind, str(there), self._report.made, None if self._report.apply else reason)
        if there.kind is Kind.CATALOG:
            self.planned += _first_objects(there.names[0])

    def _check_securable(self, grant: RealmObject) -> str | None:
        """Returns a doubt about a grant if the source does not list its securable; None if it does, and for a grant on
        a catalog. Raises `CliError` if the securable was not imported."""
        securable, kind = _securable(grant), grant.names[2]
        if securable in self.failed:
            raise CliError(f"the {kind} of the grant was not imported")
        if kind == "catalog" or securable in self.seen:
            return None
        return f"if it can be: the source lists no such {kind}"

    def without_replaced(self, here: Sequence[RealmObject]) -> Sequence[RealmObject]:
        """Returns the objects of this realm without the grants that a plan would take away: what is registered again is
        another table, which has no grants yet."""
        return [item for item in here if item.kind is not Kind.GRANT or _securable(item) not in self.replaced]

    async def _send(self, there: RealmObject) -> None:
        """Makes an object here: a principal or catalog directly, any other by a request to this realm's management
        API."""
        api, names, name = self._place.api, there.names, there.names[-1]
        entity: JsonObject = {"name": name, **there.document}
        match there.kind:
            case Kind.PRINCIPAL:
                await self._make_principal(there)
            case Kind.PRINCIPAL_ROLE:
                await api.send("POST", "principal-roles", has="name", body={"principalRole": entity})
            case Kind.ASSIGNMENT:
                role: JsonObject = {"principalRole": {"name": name}}
                await api.change("PUT", "principals", names[0], "principal-roles", body=role)
            case Kind.CATALOG:
                place, policy = self._place, key_policy_from_env(self._place.environment)
                await make_catalog(place.realm, another(place.session), _request(there), key_policy=policy)
            case Kind.CATALOG_ROLE:
                path = ("catalogs", names[0], "catalog-roles")
                await api.send("POST", *path, has="name", body={"catalogRole": entity})
            case Kind.USE:
                used: JsonObject = {"catalogRole": {"name": names[1]}}
                await api.change("PUT", "principal-roles", name, "catalog-roles", names[0], body=used)
            case Kind.GRANT:
                grants = ("catalogs", names[0], "catalog-roles", names[1], "grants")
                await api.change("PUT", *grants, body={"grant": there.document})

    async def _make_principal(self, there: RealmObject) -> None:
        """Makes a principal after its secret is kept: a run that is killed in between leaves a secret without a
        principal, for which the next run makes another, and no principal without a secret."""
        entropy = SystemRuntime().entropy
        client_id, secret = new_client_id(entropy), new_secret(entropy)
        self._keep(NewSecret(there.names[0], client_id, secret))
        credentials = NewCredentials(client_id, await Secrets(entropy).keep(secret))
        session, properties = another(self._place.session), string_map(there.document, "properties")
        await create_principal(session, there.names[0], properties, credentials, must_rotate=False)

    async def _check_catalog(self, there: RealmObject) -> None:
        """Raises `CatalogError` for a catalog that this realm may not have, by the operator's policy or the allowed
        locations, and `CliError` for one with a property that is no text, or with a location that overlaps another
        catalog's, unless the settings allow that."""
        request, place = _request(there), self._place
        StoragePolicy.from_environment(place.environment).check(parse_storage_config(request.storage))
        locations = locations_of(request.properties, request.storage)
        place.realm.check_locations(locations, request.storage)
        if place.session.settings.allow_catalog_overlap:
            return
        for other in await list_catalogs(another(place.session)):
            for ours, theirs in overlaps(locations, other):
                raise CliError(
                    f"the catalog's location {ours.uri} overlaps {theirs.uri}, a location of the catalog {other.name} "
                    "here: take it from that catalog by `arco catalogs update`, or drop that catalog"
                )

    async def session_of(self, source: RealmObject) -> Session | None:
        """Returns a session with the catalog here into which the tables of a catalog of the source are imported; in a
        plan for a catalog that is not here, one with an empty catalog. None if no tables are to be registered: for an
        external catalog, which adds a line to the report, and for one that is absent here."""
        [name] = source.names
        found = counterpart(source).object
        if found is None or (source.kind, source.names) in self._absent:
            return None
        if text(found.document, "type") == EXTERNAL:
            why = "they follow another catalog's: let that one send notifications to this server"
            self._report.add("tables", name, Result.NO_COUNTERPART, why)
            return None
        place = self._place
        request = operator_request(place.session.runtime, "import")
        here = {entry.name: entry for entry in await list_catalogs(another(place.session))}
        if name in here:
            return place.realm.catalog(here[name]).session(request, ALLOW_ALL)
        if self._report.apply or self._report.compared:
            return None
        root = place.realm.root_of(place.session.runtime.ulid())
        return place.realm.unnamed(_request(found), root).session(request, ALLOW_ALL)

    def add_only_here(self, there: Sequence[RealmObject], here: Sequence[RealmObject]) -> None:
        """Adds to the report what is here and not at the source."""
        known = by_name(there)
        for item in here:
            if (item.kind, item.names) not in known:
                self._report.add(item.kind, str(item), Result.ONLY_HERE)


_DESCRIBED = (Kind.PRINCIPAL, Kind.PRINCIPAL_ROLE, Kind.CATALOG, Kind.CATALOG_ROLE)


def _first_objects(catalog: str) -> Iterator[RealmObject]:
    """Yields the first objects of a new catalog: the role that manages it, its use and its grants."""
    yield RealmObject(Kind.CATALOG_ROLE, (catalog, CATALOG_ADMIN), {"properties": {}})
    yield RealmObject(Kind.USE, (catalog, CATALOG_ADMIN, SERVICE_ADMIN))
    for privilege in ADMIN_PRIVILEGES:
        grant: JsonObject = {"type": "catalog", "privilege": privilege}
        yield RealmObject(Kind.GRANT, (catalog, CATALOG_ADMIN, "catalog", privilege), grant)


def _securable(grant: RealmObject) -> tuple[str, ...]:
    """Returns the securable of a grant, by the catalog, the type and the levels of its name."""
    catalog, _, kind, _, *levels = grant.names
    return (catalog, kind, *levels)


def _needed(source: RealmObject) -> Iterator[Key]:
    """Yields the keys of the objects that must be here before an object can be made: for an assignment the principal
    and the role; for an object of a catalog this catalog, and the catalog role and principal role that it names."""
    names = source.names
    match source.kind:
        case Kind.ASSIGNMENT:
            yield Kind.PRINCIPAL, names[:1]
            yield Kind.PRINCIPAL_ROLE, names[1:]
        case Kind.CATALOG_ROLE | Kind.USE | Kind.GRANT:
            yield Kind.CATALOG, names[:1]
            if source.kind is not Kind.CATALOG_ROLE:
                yield Kind.CATALOG_ROLE, names[:2]
            if source.kind is Kind.USE:
                yield Kind.PRINCIPAL_ROLE, names[2:]


def _request(there: RealmObject) -> CatalogRequest:
    """Returns the request that makes a catalog here. Raises `CliError` for properties that are not texts."""
    try:
        properties = string_map(there.document, "properties")
    except InternalError as error:
        raise CliError("a property of the catalog at the source is not a text") from error
    storage = mapping(there.document, "storageConfigInfo")
    return CatalogRequest(there.names[0], text(there.document, "type"), properties, storage)
