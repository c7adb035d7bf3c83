"""Enforces the rights of callers in one catalog, or in the realm itself, by what the registries have
(docs/design/access.md#judgement)."""

from collections.abc import Collection, Sequence
from typing import TypeAlias, TypeVar

from arco_catalog.iceberg.errors import (
    CatalogChanged,
    Forbidden,
    NoSuchWarehouse,
    NotFound,
    Refusal,
    UnknownPrincipal,
)
from arco_catalog.planning.access import Identity, Requirement, Securable, Standing, denied
from arco_catalog.planning.judgement import (
    check_source,
    held_among,
    judge,
    judge_service,
    lacking,
    refusal_of,
    standing_of,
)
from arco_catalog.planning.privileges import Privilege
from arco_catalog.protocol.access import Access
from arco_catalog.protocol.lookup import carry_out, carry_out_loaded
from arco_catalog.protocol.mutation import Freshness
from arco_catalog.state.access import State
from arco_catalog.state.index import Index
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.reads import recorded
from arco_catalog.state.realm import catalog_key, find_catalog
from arco_catalog.state.registry import RegistryState

MAX_CACHED_REQUIREMENTS = 32
"""Requirements of a request whose judgement is cached: more than a commit to one table has."""

K = TypeVar("K")
V = TypeVar("V")

RealmStanding: TypeAlias = tuple[Standing | None, tuple[str, int] | None]
"""The standing of an identity on a HEAD of the realm, and the catalog's id and version there."""


class JudgementCache:
    """Caches the rights of identities, and which requirements of requests were allowed, by the HEAD on which they were
    found, which never changes. That requirements were not allowed is not cached; that an identity has no rights is.
    Both parts have at most `max_entries` entries; the one that was added first makes room."""

    def __init__(self, max_entries: int = 4_096) -> None:
        self._max_entries = max_entries
        self._standings: dict[tuple[str | None, Identity, str], RealmStanding] = {}
        self._allowed: dict[tuple[str | None, Standing, tuple[Requirement, ...]], None] = {}

    def standing(self, head: RegistryState, identity: Identity, catalog: str) -> RealmStanding | None:
        """Returns the cached standing of an identity, and the id and version of a catalog, on a HEAD of the realm; None
        if it is not cached."""
        return self._standings.get((head.id, identity, catalog))

    def add_standing(self, head: RegistryState, identity: Identity, catalog: str, found: RealmStanding) -> None:
        """Caches the standing of an identity, and the id and version of a catalog, on a HEAD of the realm. The entry
        that came first makes room if the cache is full."""
        _make_room(self._standings, self._max_entries)
        self._standings[head.id, identity, catalog] = found

    def is_allowed(self, head: RegistryState, standing: Standing, required: tuple[Requirement, ...]) -> bool:
        """Whether it is cached that a HEAD of a catalog allows these requirements to this standing. False means that
        they must be judged, not that a privilege is missing."""
        return (head.id, standing, required) in self._allowed

    def add_allowed(self, head: RegistryState, standing: Standing, required: tuple[Requirement, ...]) -> None:
        """Caches that a HEAD of a catalog allows these requirements to this standing, unless there are more than
        `MAX_CACHED_REQUIREMENTS`: a transaction may name many tables."""
        if len(required) > MAX_CACHED_REQUIREMENTS:
            return
        _make_room(self._allowed, self._max_entries)
        self._allowed[head.id, standing, required] = None


def _make_room(cached: dict[K, V], max_entries: int) -> None:
    """Removes the entries of a cache that were added first, until there is space for another one: until it has less
    than `max_entries`."""
    while len(cached) >= max_entries:
        del cached[next(iter(cached))]


class RestrictedAccess(Access):
    """The base of the access of callers with an identity, which need rights. `requirements` are what the request's
    route and body require. A caller that `names_source`, so that receipts name another as the origin, must have a
    principal that may."""

    def __init__(self, identity: Identity, requirements: Sequence[Requirement], names_source: bool = False) -> None:
        self.identity = identity
        self.requirements = [*requirements]
        self.names_source = names_source


class CatalogAccess(RestrictedAccess):
    """The access of one request to one catalog, which has this `name` and is this `entry` of the realm, by its id and
    version. `realm` reads the realm's registry, and `judgements` caches decisions by it; `hides` is whether the catalog
    seems not to exist to a caller without a privilege in it."""

    def __init__(
        self,
        realm: State,
        judgements: JudgementCache,
        name: str,
        entry: tuple[str, int],
        identity: Identity,
        requirements: Sequence[Requirement],
        *,
        hides: bool = True,
        names_source: bool = False,
    ) -> None:
        super().__init__(identity, requirements, names_source)
        self._realm = realm
        self._judgements = judgements
        self._catalog = name
        self._entry = entry
        self._hides = hides
        self._fresh = False
        self._exists = True

    @property
    def is_fresh(self) -> bool:
        """Whether the caller's rights in the realm were read from the store for this request, not from a cached
        HEAD."""
        return self._fresh

    async def read(self, freshness: Freshness) -> None:
        """Reads the caller's rights in the realm, from the cached HEAD of the realm unless `freshness` is `FRESH`; from
        the store if none is cached, or the principal is not in it. Does nothing if they were read from the store
        before. A read from the store raises `CatalogChanged` if the catalog's entry is another one."""
        if self._fresh:
            return
        cached = self._realm.cached_head() if freshness is not Freshness.FRESH else None
        if cached is not None:
            self.standing, _ = await self._found(cached)
        if cached is None or self.standing is None:  # a cached HEAD may be old: no caller is refused by it
            await self._read_now()

    async def read_at(self, head: RegistryState) -> None:
        """Reads the caller's rights in the realm from this HEAD of the realm."""
        self.standing, _ = await self._found(head)

    async def page_key(self) -> bytes | None:
        """Returns the key of page tokens of the realm, which is created if the realm has none."""
        return await self._realm.page_key()

    async def has_changed(self) -> bool:
        """Reads the caller's rights from the store, and returns whether they differ, or the catalog no longer exists;
        False without a read if they were read from there before. Raises `CatalogChanged` if the catalog's entry is
        another one."""
        if self._fresh:
            return False
        before = self.standing
        await self._read_now()
        return self.standing != before or not self._exists

    async def _read_now(self) -> None:
        """Reads the caller's standing and the catalog's entry from the newest HEAD of the realm. Raises
        `CatalogChanged` if there is an entry of the catalog's name, but not the one that this access is for."""
        standing, entry = await self._found(await self._realm.head())
        self._exists = entry is not None
        if entry is not None and entry != self._entry:  # its settings, or another that was made under its name
            raise CatalogChanged(
                f"Catalog {self._catalog} was changed, or another one got the name, since this server read it: try "
                "again"
            )
        self.standing, self._fresh = standing, True

    async def judge(self, state: State, head: RegistryState) -> None:
        """Returns if this HEAD allows the request, which is then cached. Raises `UnknownPrincipal`, `NoSuchWarehouse`
        if the catalog does not exist or is hidden from the caller, `Forbidden` (also for credentials that must be
        rotated first, and for a write that only the pipeline may make) or the error for a missing object, and an error
        if the caller may not name a source."""
        if self.standing is None:
            raise no_such_principal()
        if not self._exists:
            raise NoSuchWarehouse(f"Warehouse does not exist: {self._catalog}")
        required = tuple(self.requirements)
        if not self._judgements.is_allowed(head, self.standing, required):
            await self._judge_required(state, head, self.standing)
            self._judgements.add_allowed(head, self.standing, required)
        if self.names_source:
            check_source(self.standing)

    async def _judge_required(self, state: State, head: RegistryState, standing: Standing) -> None:
        """Raises the error of `judge` for a caller without a required privilege, for credentials that must be rotated
        first, and for a write that only the pipeline may make: `NoSuchWarehouse` only if the catalog `hides`. Skips a
        requirement with `if_there` on an object that does not exist."""
        try:
            await carry_out(state, head.index, self._steps(head.index, standing))
        except NoSuchWarehouse as hidden:
            if self._hides:
                raise
            error = without_privileges(standing, self._catalog)
            error.denied = hidden.denied
            raise error from None

    def judge_loaded(self, index: Index, lookups: list[Needs]) -> bool:
        """Whether the caller has the required privileges by the loaded segments, and may name the source. Reads
        nothing: False if a segment is not loaded, if the principal or the catalog does not exist, and for every other
        error of `judge`, such as credentials that must be rotated first. Appends the lookups to `lookups`."""
        if self.standing is None or not self._exists or (self.names_source and not self.standing.names_sources):
            return False
        try:
            return carry_out_loaded(index, recorded(self._steps(index, self.standing), lookups)) is True
        except Refusal:
            return False

    def _steps(self, index: Index, standing: Standing) -> Steps[bool]:
        """Returns True if a caller with this standing has the privileges that the request requires; else raises the
        error for the client, as it does for credentials that must be rotated first (`judge` in planning/judgement.py).
        Skips a requirement with `if_there` on an object that does not exist."""
        yield from judge(index, self._catalog, standing, self.requirements, hides=self._hides)
        return True

    def refusal(self, index: Index, requirement: Requirement) -> Steps[Refusal | None]:
        """Returns the error for the requirement by the rights as last read and the catalog's grants:
        `UnknownPrincipal` without a principal, else as `refusal_of` does; None for a caller who has the privilege, and
        need not rotate the credentials first."""
        if self.standing is None:
            return no_such_principal()
        return (yield from refusal_of(index, self._catalog, self.standing, requirement))

    async def held(
        self, state: State, head: RegistryState, privileges: Collection[Privilege], on: Securable
    ) -> frozenset[Privilege]:
        """Returns the subset of these privileges that the caller has on the securable, without the ones for the
        pipeline alone if the caller does not run it. Empty if the principal or the securable does not exist, or the
        credentials must be rotated first."""
        if self.standing is None:
            return frozenset()
        return await carry_out(state, head.index, held_among(head.index, self.standing, privileges, on))

    async def _found(self, head: RegistryState) -> RealmStanding:
        """Returns the caller's standing on this HEAD of the realm, and the catalog's id and version there, None if it
        does not exist: from the cache, or else from the registry, and then puts them into the cache."""
        found = self._judgements.standing(head, self.identity, self._catalog)
        if found is None:
            found = await carry_out(self._realm, head.index, self._computed_standing(head.index))
            self._judgements.add_standing(head, self.identity, self._catalog, found)
        return found

    def _computed_standing(self, index: Index) -> Steps[RealmStanding]:
        """Returns the caller's standing, and the catalog's entity and version; None for either that does not exist."""
        yield Needs(keys=[catalog_key(self._catalog)])
        catalog = find_catalog(index, self._catalog)
        standing = yield from standing_of(index, self.identity)
        return standing, None if catalog is None else (catalog.entity, catalog.version)


class RealmAccess(RestrictedAccess):
    """The access of one request to the realm itself, whose registry the request reads or changes. `itself` is the name
    of the principal that the request is about, None if it is about something else: a principal may rotate its own
    credentials without a privilege."""

    def __init__(
        self,
        identity: Identity,
        requirements: Sequence[Requirement],
        itself: str | None = None,
        *,
        names_source: bool = False,
    ) -> None:
        super().__init__(identity, requirements, names_source)
        self._itself = itself

    @property
    def is_fresh(self) -> bool:
        """True, because the rights are computed again from every HEAD that is judged."""
        return True  # as fresh as the HEAD that it is judged on

    async def read(self, freshness: Freshness) -> None:
        """Does nothing, because `judge` reads the rights from the HEAD that it gets."""
        return None

    async def has_changed(self) -> bool:
        """Returns False, and reads nothing, because the rights are computed from the HEAD that is judged."""
        return False

    async def judge(self, state: State, head: RegistryState) -> None:
        """Reads the caller's rights from this HEAD of the realm, keeps them in `standing`, and returns if they allow
        the request. Raises `UnknownPrincipal`; `Forbidden` for a missing privilege or, if the request needs one, for
        credentials that must be rotated first; and an error if the caller may not name a source."""
        standing = await carry_out(state, head.index, standing_of(head.index, self.identity))
        if standing is None:
            raise no_such_principal()
        self._judge(standing)

    def judge_loaded(self, index: Index, lookups: list[Needs]) -> bool:
        """Whether the loaded segments of the realm's index show that the request is allowed, also the name of a source.
        False if a segment is not loaded, the principal does not exist or a privilege is missing. Reads nothing, appends
        the lookups to `lookups`, and keeps the rights in `standing`."""
        try:
            standing = carry_out_loaded(index, recorded(standing_of(index, self.identity), lookups))
            if standing is None:
                return False
            self._judge(standing)
        except Refusal:
            return False
        return True

    def _judge(self, standing: Standing) -> None:
        """Keeps the caller's standing in the realm, and then returns or raises as `judge` does: for a missing
        privilege, for credentials that must be rotated first, and for a source that the caller may not name."""
        self.standing = standing
        judge_service(standing, self.requirements, self._itself)
        if self.names_source:
            check_source(standing)

    def refusal(self, index: Index, requirement: Requirement) -> Steps[Refusal | None]:
        """Returns the error for a privilege on the realm: `UnknownPrincipal` if the principal does not exist,
        `Forbidden` without the privilege, else None. The securable is only for the message."""
        standing = yield from standing_of(index, self.identity)
        if standing is None:
            return no_such_principal()
        if requirement.privilege in standing.service:
            return None
        return lacking(standing, requirement.privilege, requirement.on)

    async def held(
        self, state: State, head: RegistryState, privileges: Collection[Privilege], on: Securable
    ) -> frozenset[Privilege]:
        """Returns the subset of these privileges that the caller has on the realm, whatever the securable; empty if the
        principal does not exist."""
        standing = await carry_out(state, head.index, standing_of(head.index, self.identity))
        return frozenset() if standing is None else standing.service & frozenset(privileges)


async def check_principal(realm: State, identity: Identity) -> None:
    """Reads the realm's HEAD, and raises `UnknownPrincipal` unless the caller's principal exists and the token is still
    valid. Checks no privilege."""
    head = await realm.head()
    if await carry_out(realm, head.index, standing_of(head.index, identity)) is None:
        raise no_such_principal()


async def refuse_unknown(realm: State, name: str, identity: Identity) -> Refusal:
    """Returns the error for a catalog that does not exist: `NotFound` for callers who may list catalogs and need not
    rotate their secret, and for all others `Forbidden`, as for a caller without a privilege in a catalog. Raises
    `UnknownPrincipal` as `check_principal` does."""
    head = await realm.head()
    standing = await carry_out(realm, head.index, standing_of(head.index, identity))
    if standing is None:
        raise no_such_principal()
    if Privilege.CATALOG_LIST in standing.service and not standing.must_rotate:
        return NotFound(f"Catalog does not exist: {name}")
    return denied(without_privileges(standing, name), Privilege.CATALOG_LIST.value, "realm")


def without_privileges(standing: Standing, catalog: str) -> Forbidden:
    """Returns the error for a caller who has no privilege at all in a catalog that need not be hidden from the
    caller."""
    return Forbidden(f"Principal {standing.name} has no privilege in catalog {catalog}")


def no_such_principal() -> UnknownPrincipal:
    """Returns the error for a caller whose principal does not exist, or whose token is no longer valid: its secret was
    replaced, or the client may no longer act for the principal."""
    return UnknownPrincipal(
        "The caller's principal is not in this realm (any more), or the token is no longer valid: the secret for "
        "which it was issued was replaced, or the client that got it may not act for the principal"
    )
