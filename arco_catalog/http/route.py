"""A route: method and path template, what serves it, and what its failures mean."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from importlib import import_module
from typing import cast

from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.requires import Requires
from arco_catalog.http.responses import Response

PREFIX = "{prefix}"
"""Stands for the catalog in a path template."""


JSON = ("application/json",)
"""How a body may be said to be JSON."""


class Effect(Enum):
    """What a request may do, and so what its failures mean."""

    READS = auto()
    """Changes nothing: needs no idempotency key."""
    MUTATES = auto()
    """Changes something, exactly once for its idempotency key."""
    COMMITS = auto()
    """Mutates tables that exist: clients delete the files that they wrote when told that it failed."""


Handler = Callable[[RequestContext], Awaitable[Response]]


@dataclass(frozen=True)
class Route:
    """One endpoint: method and path template exactly as in the specification. `handling` is the handler, or its module
    and name in this package. `requires` says what whoever asks needs, where there are grants; a `public` one is
    answered to everybody, and any other must say it. One that is not `in_external` is refused in catalogs whose tables
    another catalog changes."""

    method: str
    template: str
    handling: Handler | str
    effect: Effect = Effect.READS
    advertised: bool = True
    takes_json: bool = True
    body_types: Sequence[str] = JSON
    optional_json: bool = False
    takes_form: bool = False
    public: bool = False
    requires: Requires | None = None
    in_external: bool = True
    bare_field: str | None = None
    """The field of the body whose value may also be sent as the body itself."""

    @cached_property
    def handler(self) -> Handler:
        """The handler, imported with the first request for it. Raises `ImportError` or `AttributeError` if it is not
        there."""
        if not isinstance(self.handling, str):
            return self.handling
        module, _, name = self.handling.rpartition(".")
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
        return self.method in ("POST", "PUT") and self.takes_json

    @cached_property
    def reads(self) -> bool:
        """Whether requests change nothing."""
        return self.effect is Effect.READS

    @cached_property
    def commits(self) -> bool:
        """Whether a 5xx leaves open if files are referred to."""
        return self.effect is Effect.COMMITS
