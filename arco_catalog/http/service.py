"""What one app serves, and the parts of its endpoints that do not depend on their handlers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from arco_catalog.authentication.authentication import Authentication
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.requires import Requires
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.protocol.catalog import Catalog

if TYPE_CHECKING:  # a cold start without realms does not pay for them
    from arco_catalog.http.realms import RealmService


class Endpoint(Protocol):
    """A route without its handler: see `Route`."""

    @property
    def method(self) -> str: ...
    @property
    def template(self) -> str: ...
    @property
    def advertised(self) -> bool: ...
    @property
    def requires(self) -> Requires | None: ...
    @property
    def endpoint(self) -> str: ...
    @property
    def has_prefix(self) -> bool: ...
    @property
    def reads(self) -> bool: ...
    @property
    def commits(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Service:
    """What one app serves at `routes`: `warehouses` by their names, to callers that `authentication` knows, or the
    catalogs of `realms`. Without either it serves every caller that its gateway lets in."""

    warehouses: Mapping[str, Catalog]
    options: HttpOptions
    routes: Sequence[Endpoint]
    realms: "RealmService | None" = None
    authentication: Authentication | None = None

    def default_warehouse(self) -> str:
        """The warehouse of requests that name none. Raises `BadRequest`."""
        if self.options.default_warehouse is not None:
            return self.options.default_warehouse
        if self.realms is not None:
            raise BadRequest("Name a catalog in the query parameter 'warehouse'")
        if len(self.warehouses) != 1:
            raise BadRequest("This server has several warehouses: name one in the query parameter 'warehouse'")
        return next(iter(self.warehouses))
