"""The catalogs, options and endpoints of one app. The module does not import handlers, because they import it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from arco_catalog.authentication.authentication import Authentication
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.requires import Requires
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.protocol.catalog import Catalog
from storage_backends.lazy_dataclass import dataclass

if TYPE_CHECKING:  # importing them takes time, which a cold start without console and realms saves
    from arco_catalog.http.console.files import Console
    from arco_catalog.http.realms import RealmService
    from arco_catalog.protocol.policy import Policy


class Endpoint(Protocol):
    """What modules that handlers import use of a `Route`, a class that they cannot import."""

    @property
    def method(self) -> str:
        """The HTTP method."""

    @property
    def template(self) -> str:
        """The path template."""

    @property
    def advertised(self) -> bool:
        """Whether `/v1/config` lists the endpoint."""

    @property
    def requires(self) -> Requires | None:
        """Returns the privileges that a request needs in a realm; None if every caller may use the endpoint."""

    @property
    def endpoint(self) -> str:
        """Method and path template, with a space between them."""

    @property
    def has_prefix(self) -> bool:
        """Whether the path template has the parameter for a catalog."""

    @property
    def reads(self) -> bool:
        """Whether requests change no object or setting of a catalog or realm. They may store a report, an event or
        a plan, or resubmit a failed task."""

    @property
    def commits(self) -> bool:
        """Whether requests commit to tables or views, so that after an error 500 the commit may have been applied."""


@dataclass(frozen=True, slots=True)
class Service:
    """What one app serves at its `routes`: the catalogs of `realms`, or else `warehouses` by their names to callers
    that `authentication` accepts. Without realms and authentication it serves every caller that its gateway lets in.
    `console` are the files of the console, None if the app does not serve it. `policy` must allow each request, besides
    the grants; None if there is none."""

    warehouses: Mapping[str, Catalog]
    options: HttpOptions
    routes: Sequence[Endpoint]
    realms: "RealmService | None" = None
    authentication: Authentication | None = None
    console: "Console | None" = None
    policy: "Policy | None" = None

    @property
    def default_warehouse(self) -> str | None:
        """The warehouse of requests that name none: the configured one or, on a server without realms, the only one;
        None if there is neither."""
        if self.options.default_warehouse is not None or self.realms is not None or len(self.warehouses) != 1:
            return self.options.default_warehouse
        return next(iter(self.warehouses))

    def require_default_warehouse(self) -> str:
        """Returns the warehouse of requests that name none. Raises `BadRequest` if there is none."""
        if self.default_warehouse is not None:
            return self.default_warehouse
        if self.realms is not None:
            raise BadRequest(
                "The request names no catalog, and this server has no default one: name one in the query parameter "
                "'warehouse' of /v1/config, and use the prefix in the response"
            )
        raise BadRequest(
            "The request names no warehouse, and this server has several: name one in the query parameter "
            "'warehouse' of /v1/config, and use the prefix in the response"
        )
