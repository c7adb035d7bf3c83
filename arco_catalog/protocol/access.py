"""What one request needs, and who asks: judged on the HEAD that it is answered from or commits on
(docs/design/access.md#judgement)."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

from arco_catalog.planning.access import Identity, Requirement, Securable
from arco_catalog.planning.privileges import Privilege
from arco_catalog.protocol.mutation import Freshness
from arco_catalog.state.access import State
from arco_catalog.state.index import Index
from arco_catalog.state.needs import Steps
from arco_catalog.state.registry import RegistryState


class Access(ABC):
    """What a request needs, and who asks. `requirements` are those of its route and body; what is
    required by what a request turns out to mean is asked with `holds`. `names_source`: it says on whose behalf it
    comes, for which its principal must be registered."""

    def __init__(self, identity: Identity, requirements: Sequence[Requirement], names_source: bool = False) -> None:
        self.identity = identity
        self.requirements = [*requirements]
        self.names_source = names_source

    async def page_key(self) -> bytes | None:
        """What page tokens are sealed with; None where there are no pages."""
        return None

    @property
    @abstractmethod
    def is_fresh(self) -> bool:
        """Whether what is judged by was read from the store for this request, so that it may be refused on that."""

    @abstractmethod
    async def read(self, freshness: Freshness) -> None:
        """Reads what the realm says of the caller. It refuses nobody: `judge` does, where that may be told. Raises
        `CatalogChanged`."""

    @abstractmethod
    async def has_changed(self) -> bool:
        """Reads it again, unless it was read for this request; whether it says anything else now. Raises
        `CatalogChanged`."""

    @abstractmethod
    async def judge(self, state: State, head: RegistryState) -> None:
        """Returns if this HEAD allows the request. Raises `Forbidden`, `UnknownPrincipal`, the refusal for what does
        not exist if the caller may not know of it, and `BadRequest` if it may not name a source."""

    @abstractmethod
    def judge_loaded(self, index: Index) -> bool:
        """The same without reading: whether it is known to be allowed."""

    @abstractmethod
    def holds(self, index: Index, requirement: Requirement) -> Steps[bool]:
        """Whether the caller has one thing more that turned out to be required."""

    @abstractmethod
    async def held(
        self, state: State, head: RegistryState, privileges: Collection[Privilege], on: Securable
    ) -> frozenset[Privilege]:
        """Which of these privileges the caller has on a securable, by this HEAD. `read` comes first."""
