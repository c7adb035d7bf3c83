"""Rights in one catalog, or in the realm itself, by what the registries say (docs/design/access.md#judgement)."""

from collections.abc import Sequence

from arco_catalog.iceberg.errors import CatalogChanged, Forbidden, NoSuchWarehouse, NotAuthorized, Refusal
from arco_catalog.planning.access import Identity, Requirement, Standing, judge, judge_service, standing_of
from arco_catalog.protocol.access import Access
from arco_catalog.protocol.lookup import carry_out, carry_out_loaded
from arco_catalog.protocol.mutation import Freshness
from arco_catalog.state.access import State
from arco_catalog.state.index import Index
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.realm import CatalogEntry, catalog_key, find_catalog
from arco_catalog.state.registry import RegistryState


class CatalogAccess(Access):
    """Rights in one catalog, which has this `name` and is this `entry` of the realm, by its id and version. `realm`
    reads the realm's registry; `hides` is whether the catalog seems not to exist to whoever has no privilege in it."""

    def __init__(
        self,
        realm: State,
        name: str,
        entry: tuple[str, int],
        identity: Identity,
        requirements: Sequence[Requirement],
        *,
        hides: bool = True,
    ) -> None:
        super().__init__(identity, requirements)
        self._realm = realm
        self._catalog = name
        self._entry = entry
        self._hides = hides
        self._fresh = False
        self.standing: Standing | None = None

    @property
    def is_fresh(self) -> bool:
        return self._fresh

    async def read(self, freshness: Freshness) -> None:
        if self._fresh and self.standing is not None:
            return
        cached = self._realm.cached_head() if freshness is not Freshness.FRESH else None
        self.standing = None if cached is None else await self._standing(cached)
        if self.standing is None:  # what is cached may be old: nobody is turned away by it
            self._fresh = True
            self.standing = await self._standing(await self._realm.head())
        if self.standing is None:
            raise gone()

    async def has_changed(self) -> bool:
        if self._fresh:
            return False
        before = self.standing
        self._fresh = True
        self.standing = await self._standing(await self._realm.head())
        if self.standing is None:
            raise gone()
        return self.standing != before

    async def judge(self, state: State, head: RegistryState) -> None:
        assert self.standing is not None
        try:
            await carry_out(state, head.index, judge(head.index, self._catalog, self.standing, self.requirements))
        except NoSuchWarehouse:
            if self._hides:
                raise
            raise Forbidden(f"Principal {self.standing.name} has no privilege in catalog {self._catalog}") from None

    def judge_loaded(self, index: Index) -> bool:
        assert self.standing is not None

        def judged(standing: Standing) -> Steps[bool]:
            yield from judge(index, self._catalog, standing, self.requirements)
            return True

        try:
            return carry_out_loaded(index, judged(self.standing)) is True
        except Refusal:
            return False

    async def _standing(self, head: RegistryState) -> Standing | None:
        """What the identity amounts to on this HEAD of the realm. Raises `NoSuchWarehouse` and `CatalogChanged` if the
        catalog is no longer what this request takes it for."""

        def looked_up() -> Steps[tuple[Standing | None, CatalogEntry | None]]:
            yield Needs(keys=[catalog_key(self._catalog)])
            return (yield from standing_of(head.index, self.identity)), find_catalog(head.index, self._catalog)

        standing, entry = await carry_out(self._realm, head.index, looked_up())
        if self._fresh and (entry is None or entry.entity != self._entry[0]):
            raise NoSuchWarehouse(f"Warehouse does not exist: {self._catalog}")
        if self._fresh and entry is not None and entry.version != self._entry[1]:
            raise CatalogChanged(f"Catalog {self._catalog} was changed just now: try again")
        return standing


class RealmAccess(Access):
    """Rights in the realm itself, whose own registry is what changes. `itself` is the principal that is acted on."""

    def __init__(self, identity: Identity, requirements: Sequence[Requirement], itself: str | None = None) -> None:
        super().__init__(identity, requirements)
        self._itself = itself

    @property
    def is_fresh(self) -> bool:
        return True  # as fresh as the HEAD that it is judged on

    async def read(self, freshness: Freshness) -> None:
        return None

    async def has_changed(self) -> bool:
        return False

    async def judge(self, state: State, head: RegistryState) -> None:
        standing = await carry_out(state, head.index, standing_of(head.index, self.identity))
        if standing is None:
            raise gone()
        judge_service(standing, self.requirements, self._itself)

    def judge_loaded(self, index: Index) -> bool:
        try:
            standing = carry_out_loaded(index, standing_of(index, self.identity))
            if standing is None:
                return False
            judge_service(standing, self.requirements, self._itself)
        except Refusal:
            return False
        return True


def gone() -> NotAuthorized:
    """What somebody is told whose principal no longer exists."""
    return NotAuthorized("The principal of this token does not exist (any more)")
