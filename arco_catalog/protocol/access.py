"""Access control of one request, by the HEAD from which the request is answered or on which it commits
(docs/design/access.md#judgement).

Every session has an `Access`: a request whose caller has to be checked has one of `rights.py` or `policy.py`, and all
others name why there is nothing to check.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import ClassVar, TypeAlias

from arco_catalog.iceberg.errors import Refusal
from arco_catalog.planning.access import Requirement, Securable, Standing
from arco_catalog.planning.privileges import Privilege
from arco_catalog.protocol.mutation import Freshness
from arco_catalog.state.access import State
from arco_catalog.state.index import Index
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.registry import RegistryState

Requirements: TypeAlias = Callable[[Index], Steps[Sequence[Requirement]]]
"""Computes requirements from the index of a registry."""


class Access(ABC):
    """Decides whether the caller of one request has the rights that it needs. What the route and body require is known
    from the start; what the request turns out to require besides is decided by `holds`."""

    is_restricted: ClassVar[bool] = True
    """Whether there is anything to check. Where there is not, no method reads or refuses."""
    inherits: ClassVar[bool] = True
    """Whether a privilege on a catalog or namespace applies to everything in it. Otherwise each object is checked."""
    standing: Standing | None = None
    """The caller's rights in the realm, as last read; None if there are none, or no grants are checked."""

    @property
    def checks_grants(self) -> bool:
        """Whether the request is checked against the caller's grants."""
        return self.is_restricted

    @property
    def of_grants(self) -> "Access":
        """Returns the check of grants within this check of access: another object if this one also queries a policy,
        else itself."""
        return self

    async def prepare(self, state: State, head: RegistryState, requirements: Requirements) -> None:
        """Queries a policy at once about all of these requirements, before `held` and `holds` are called for them one
        by one. By default, without a policy, it does nothing, and does not even compute the requirements. Raises
        `Unavailable` if the policy can't be queried."""
        return None

    async def lists(self, state: State, head: RegistryState, items: Sequence[Requirement]) -> Sequence[bool]:
        """Returns for each item of a list that the caller may read whether a policy lets the caller see it, by the
        privilege to list that object. By default, without a policy, a caller who may read a list sees all of it. Raises
        `Unavailable` if the policy can't be queried."""
        return [True] * len(items)

    async def page_key(self) -> bytes | None:
        """Returns the key that seals page tokens, which it creates in the store if there is none yet; None if page
        tokens are not sealed, as by default."""
        return None

    @property
    @abstractmethod
    def is_fresh(self) -> bool:
        """Whether the caller's rights are new enough to refuse the request by them: they were read from the store for
        this request, or they are computed anew from every HEAD that is judged, or nothing is restricted. If False, they
        may be from a cache."""

    @abstractmethod
    async def read(self, freshness: Freshness) -> None:
        """Reads the caller's rights in the realm, from a cache if `freshness` allows it, unless they were read from the
        store for this request, or `judge` takes them from the HEAD. It refuses no request: `judge` does. A read from
        the store raises `CatalogChanged` if the realm has another version of the catalog's entry than this request
        uses, or another catalog of the name."""

    @abstractmethod
    async def has_changed(self) -> bool:
        """Reads the caller's rights from the store, and returns whether they differ from the rights that were read
        before, or the catalog no longer exists. Returns False without reading if the rights were read from the store
        for this request, or `judge` takes them from the HEAD. Raises `CatalogChanged` as `read` does."""

    @abstractmethod
    async def judge(self, state: State, head: RegistryState) -> None:
        """Returns if this HEAD and the caller's rights, as last read, allow the request. Raises `UnknownPrincipal` if
        the caller's principal or token is no longer valid, `NoSuchWarehouse` if the catalog does not exist or is hidden
        from the caller, `Forbidden` for a missing privilege, or a secret that must be rotated first, the error for an
        object that does not exist if the caller may not know of it, `BadRequest` if the caller may not name a source,
        and `Unavailable` if a policy can't be queried."""

    @abstractmethod
    def judge_loaded(self, index: Index, lookups: list[Needs]) -> bool:
        """Whether the loaded segments of this index and the caller's rights, as last read, show that the request is
        allowed; False if it is not, if a segment is missing, or if a policy has not allowed it shortly before. Reads
        and queries nothing. Appends the lookups in the index to `lookups`."""

    @abstractmethod
    def refusal(self, index: Index, requirement: Requirement) -> Steps[Refusal | None]:
        """Computes the error for a caller without the privilege of one further requirement, besides those of the
        route and body, by the rights as last read: the error of `judge`. None for a caller who has the privilege.
        `Unavailable` is raised, not returned, if a policy can't be queried."""

    def holds(self, index: Index, requirement: Requirement) -> Steps[bool]:
        """Computes whether the caller, by the rights as last read, has the privilege of one further requirement,
        besides those of the route and body. Raises `Unavailable` as `refusal` does."""
        return (yield from self.refusal(index, requirement)) is None

    @abstractmethod
    async def held(
        self, state: State, head: RegistryState, privileges: Collection[Privilege], on: Securable
    ) -> frozenset[Privilege]:
        """Returns those of these privileges that the caller has on a securable, by this HEAD; none if the caller must
        rotate a secret first. The rights must have been read (`read`) before. Raises `Unavailable` if a policy can't be
        queried."""


class UnrestrictedAccess(Access):
    """The access of a request that needs no rights: everything is allowed, and nothing is read. `reason` is why; the
    `repr` shows it."""

    is_restricted = False

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return self.reason

    @property
    def is_fresh(self) -> bool:
        """True, because there are no rights that may be old."""
        return True

    async def read(self, freshness: Freshness) -> None:
        """Does nothing, because there are no rights to read."""
        return None

    async def has_changed(self) -> bool:
        """Returns False, and reads nothing."""
        return False

    async def judge(self, state: State, head: RegistryState) -> None:
        """Allows the request: returns without reading anything."""
        return None

    def judge_loaded(self, index: Index, lookups: list[Needs]) -> bool:
        """Returns True, and looks nothing up."""
        return True

    def refusal(self, index: Index, requirement: Requirement) -> Steps[Refusal | None]:
        """Returns None, and looks nothing up: the requirement is met."""
        yield from ()
        return None

    async def held(
        self, state: State, head: RegistryState, privileges: Collection[Privilege], on: Securable
    ) -> frozenset[Privilege]:
        """Returns all of these privileges, without reading anything."""
        return frozenset(privileges)


ALLOW_ALL = UnrestrictedAccess("ALLOW_ALL")
"""For requests of deployments without access control, and for the programs and commands of operators."""
ALREADY_AUTHORIZED = UnrestrictedAccess("ALREADY_AUTHORIZED")
"""For further sessions of a request that another registry has allowed: its realm, or the catalog that it names."""
