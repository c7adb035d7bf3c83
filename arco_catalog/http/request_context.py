"""Routes, and the context that a handler gets: one decoded request with the catalog that it is for."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from importlib import import_module
from typing import cast
from urllib.parse import quote

from arco_catalog.http.compression import answer_limit
from arco_catalog.http.names import (
    check_name,
    check_routable,
    creates,
    decode_namespace,
    read_identifier,
    read_name,
    required_identifier,
)
from arco_catalog.http.options import UNIT_SEPARATOR, HttpOptions
from arco_catalog.http.principal import Caller
from arco_catalog.http.query import Query
from arco_catalog.http.responses import Response
from arco_catalog.http.source import update_source
from arco_catalog.http.spelling import Spelling, spelling_of
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.shapes import OBJECT, Fields
from arco_catalog.planning.names import Identifier
from arco_catalog.protocol.catalog import Catalog, Session
from arco_catalog.protocol.operation_request import IdempotencyKey, OperationRequest
from arco_catalog.state.index import Namespace
from arco_catalog.state.memory import Hold

PREFIX = "{prefix}"
"""Stands for the catalog in a path template."""


class Effect(Enum):
    """What a request may do, and so what its failures mean."""

    READS = auto()
    """Changes nothing: needs no idempotency key."""
    MUTATES = auto()
    """Changes something, exactly once for its idempotency key."""
    COMMITS = auto()
    """Mutates tables that exist: clients delete the files that they wrote when told that it failed."""


Handler = Callable[["RequestContext"], Awaitable[Response]]


@dataclass(frozen=True)
class Route:
    """One endpoint: method and path template exactly as in the specification. `handling` is the handler, or its module
    and name in this package."""

    method: str
    template: str
    handling: Handler | str
    effect: Effect = Effect.READS
    advertised: bool = True
    takes_json: bool = True

    @cached_property
    def handler(self) -> Handler:
        """The handler, imported with the first request for it. Raises `ImportError` or `AttributeError` if it is not
        there."""
        if not isinstance(self.handling, str):
            return self.handling
        module, _, name = self.handling.partition(".")
        return cast(Handler, getattr(import_module(f"{__package__}.{module}"), name))

    @cached_property
    def endpoint(self) -> str:
        """How `/v1/config` names it."""
        return f"{self.method} {self.template}"

    @cached_property
    def has_prefix(self) -> bool:
        """Whether the path names a catalog, or may."""
        return PREFIX in self.template

    @cached_property
    def has_body(self) -> bool:
        """Whether requests carry a JSON object."""
        return self.method == "POST" and self.takes_json

    @cached_property
    def commits(self) -> bool:
        """Whether a 5xx leaves open if files are referred to."""
        return self.effect is Effect.COMMITS


@dataclass(frozen=True, slots=True)
class Service:
    """What one app serves."""

    warehouses: Mapping[str, Catalog]
    options: HttpOptions
    endpoints: Sequence[str]

    def default_warehouse(self) -> str:
        """What is meant by who names none. Raises `BadRequest`."""
        if self.options.default_warehouse is not None:
            return self.options.default_warehouse
        if len(self.warehouses) != 1:
            raise BadRequest("This server has several warehouses: name one in the query parameter 'warehouse'")
        return next(iter(self.warehouses))


@dataclass(slots=True)
class RequestContext:
    """One request at its route. `params` are the decoded segments that the template names; `body` is None on routes
    that have none, `body_bytes` how long it was; `named` is the catalog that the prefix names, on routes with one."""

    service: Service
    route: Route
    params: Mapping[str, str]
    query: Query
    headers: Mapping[str, str]
    caller: Caller
    named: Catalog | None
    hold: Hold
    body: JsonObject | None = None
    body_bytes: int = 0

    @property
    def options(self) -> HttpOptions:
        return self.service.options

    @property
    def catalog(self) -> Catalog:
        """The catalog that the path's prefix names."""
        assert self.named is not None
        return self.named

    @property
    def namespace(self) -> Namespace:
        """The namespace in the path. Raises `BadRequest`."""
        return decode_namespace(self.params["namespace"], self.options.namespace_separator)

    @property
    def table(self) -> str:
        """The table in the path. Raises `BadRequest`."""
        return check_name(self.params["table"], "table")

    @property
    def view(self) -> str:
        """The view in the path. Raises `BadRequest`."""
        return check_name(self.params["view"], "view")

    @property
    def fields(self) -> Fields:
        """The body, to be read field by field."""
        return Fields(self.body or {}, "request")

    def check_identifier(self, name: str, what: str) -> None:
        """A commit may name what the path names, and nothing else. Raises `BadRequest`."""
        identifier = self.fields.optional("identifier", OBJECT)
        if identifier is None:
            return
        if read_identifier(identifier, "request.identifier", self.options.namespace_separator) != (
            self.namespace,
            name,
        ):
            raise BadRequest(f"Invalid request.identifier: it must name the {what} of the path")

    @property
    def spelling(self) -> Spelling:
        """How the client spells names in paths."""
        return spelling_of(self.headers)

    def check_new(self, name: str, what: str) -> str:
        """The name, if something new may have it: it must be possible to ask for it again. Raises `BadRequest`."""
        return check_routable(name, what, self.options.unroutable, self.spelling)

    def new_name(self) -> str:
        """The body's `name`, for something that is to be made. Raises `BadRequest`."""
        return self.check_new(read_name(self.fields), "request.name")

    def check_creation(self, change: JsonObject, name: str) -> None:
        """A commit that makes a table needs a name that can be asked for again. Raises `BadRequest`."""
        if creates(change):
            self.check_new(name, "table")

    def renaming(self) -> tuple[Identifier, Identifier]:
        """Source and destination of a rename. Raises `BadRequest`."""
        separator = self.options.namespace_separator
        source = required_identifier(self.fields, "source", separator)
        destination = required_identifier(self.fields, "destination", separator)
        self.check_new(destination[1], "request.destination.name")
        return source, destination

    def session(self) -> Session:
        """Opens this request's session: its deadline begins here. Raises `BadRequest` for a malformed key or source."""
        route, options, catalog = self.route, self.service.options, self.catalog
        source = update_source(self.headers, self.caller, options.source_principals)
        session = catalog.session(
            OperationRequest(
                method=route.method,
                path=route.template if route.effect is Effect.READS else self.canonical_path(),
                query=self.query.canonical,
                body=self.body,
                principal=self.caller.principal,
                source=source.stored,
                deadline_ms=catalog.runtime.now_ms() + catalog.settings.request_ms,
                key=self._key(),
                commit=route.commits,
                answer_limit=answer_limit(options, self.headers),
                body_bytes=self.body_bytes,
                role_session=self.caller.session,
                hold=self.hold,
            )
        )
        session.stats.ignored_claim = source.ignored
        return session

    def canonical_path(self) -> str:
        """The same text for the same path however it was encoded, and another for every other path: what an idempotency
        key is bound to, and what receipts show. Raises `BadRequest`."""
        return "/".join(
            quote(self._canonical(segment[1:-1]), safe="") if segment.startswith("{") else segment
            for segment in self.route.template.split("/")
        )

    def _canonical(self, parameter: str) -> str:
        return UNIT_SEPARATOR.join(self.namespace) if parameter == "namespace" else self.params[parameter]

    def _key(self) -> IdempotencyKey | None:
        text = self.headers.get("idempotency-key")
        if text is None or self.route.effect is Effect.READS:
            return None
        return IdempotencyKey.parse(text, self.options.dialect)
