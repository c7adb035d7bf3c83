"""A route of the HTTP API: its method and path template, the handler, and the meaning of its failures."""

from collections.abc import Awaitable, Callable, Sequence
from enum import Enum, auto
from functools import cached_property
from importlib import import_module
from typing import cast

from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.requires import Requires
from arco_catalog.http.responses import Response
from storage_backends.lazy_dataclass import dataclass

PREFIX = "{prefix}"
"""The parameter for the catalog in a path template."""


JSON = ("application/json",)
"""The content types of a JSON body."""


class Effect(Enum):
    """What the requests of a route may change: nothing, something, or tables and views by a commit. It decides what an
    error means to the client."""

    READS = auto()
    """The request changes no object or setting of a catalog or realm, and needs no idempotency key. It may store a
    report, an event or a plan, or resubmit a failed task."""
    MUTATES = auto()
    """The request changes something, exactly once for its idempotency key."""
    COMMITS = auto()
    """The request commits to tables or views. After an error that means failure a client deletes the files that it
    has written, so an unknown outcome must not be reported as a failure."""


Handler = Callable[[RequestContext], Awaitable[Response]]


@dataclass(frozen=True)
class Route:
    """One endpoint of the HTTP API, with method and path template exactly as in its specification, if it has one.
    `handling` is the handler, or its module and name in this package. `/v1/config` lists the routes that are
    `advertised`. A POST or PUT has a JSON body of one of the `body_types` if it `takes_json`, and may have one with
    `optional_json`; with `takes_form` the body is a form. `requires` returns the privileges that a caller needs in a
    realm; only a `public` route, which serves every caller, may lack it. Pages of other origins may link to a `linked`
    route, which has no data. A route that is not `in_external` is refused
    in catalogs of type EXTERNAL, whose tables another catalog changes."""

    method: str
    template: str
    handling: Handler | str
    requires: Requires | None = None
    effect: Effect = Effect.READS
    advertised: bool = True
    takes_json: bool = True
    body_types: Sequence[str] = JSON
    optional_json: bool = False
    takes_form: bool = False
    public: bool = False
    linked: bool = False
    in_external: bool = True
    bare_field: str | None = None
    """The field of the body whose value the client may also send as the whole body."""

    @cached_property
    def handler(self) -> Handler:
        """The handler, imported at the first use. Raises `ImportError` or `AttributeError` if it does not exist."""
        if not isinstance(self.handling, str):
            return self.handling
        module, _, name = self.handling.rpartition(".")
        return cast(Handler, getattr(import_module(f"{__package__}.{module}"), name))

    @cached_property
    def endpoint(self) -> str:
        """The endpoint as `/v1/config` lists it: method and path template."""
        return f"{self.method} {self.template}"

    @cached_property
    def has_prefix(self) -> bool:
        """Whether the path template has the parameter for a catalog, which clients may leave out."""
        return PREFIX in self.template

    @cached_property
    def has_body(self) -> bool:
        """Whether requests must have a JSON object as the body."""
        return self.method in ("POST", "PUT") and self.takes_json

    @cached_property
    def reads(self) -> bool:
        """Whether requests of the route change no object or setting of a catalog or realm (`Effect.READS`). They
        may store a report, an event or a plan, or resubmit a failed task."""
        return self.effect is Effect.READS

    @cached_property
    def commits(self) -> bool:
        """Whether requests of the route commit to tables or views. Then a 500 means that the commit may have been
        applied, so that the client must not delete the files that it has written; after a 503 this sending
        changed nothing."""
        return self.effect is Effect.COMMITS
