"""A request at its route, decoded: names, query, headers and body, each checked where it is read."""

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property
from typing import TypeVar, cast
from urllib.parse import quote

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
from arco_catalog.http.spelling import Spelling, spelling_of
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.shapes import OBJECT, Fields
from arco_catalog.planning.names import Identifier
from arco_catalog.state.index import Namespace
from arco_catalog.state.memory import Hold
from storage_backends.lazy_dataclass import dataclass

T = TypeVar("T")


@dataclass(kw_only=True, eq=False)
class DecodedRequest:
    """A request at its route, decoded. `template` is the path of the route, and `params` are the decoded segments in
    the template's places. `body` is the JSON object that was sent, None on routes without one and for an optional body
    that is empty; `body_bytes` is the length in which it was sent. `form` is a form as it was sent, empty on all other
    routes. `hold` accounts for the memory of the request. `id` is the request's id in telemetry, None without
    telemetry. `raw_path` is the path as it was sent."""

    options: HttpOptions
    template: str
    params: Mapping[str, str]
    query: Query
    headers: Mapping[str, str]
    caller: Caller
    hold: Hold
    body: JsonObject | None = None
    body_bytes: int = 0
    form: bytes = b""
    raw_path: bytes = b""
    id: str | None = None
    _parsed: dict[Callable[["DecodedRequest"], object], object] = field(default_factory=dict, init=False, repr=False)

    def parsed(self, parse: Callable[["DecodedRequest"], T]) -> T:
        """Returns what `parse` returns for this request, computed by the first call. Raises what `parse` raises."""
        if parse not in self._parsed:
            self._parsed[parse] = parse(self)
        return cast(T, self._parsed[parse])

    @cached_property
    def namespace(self) -> Namespace:
        """The namespace in the path. Raises `BadRequest` if it is no valid name of a namespace."""
        return decode_namespace(self.params["namespace"], self.options.namespace_separator)

    @cached_property
    def table(self) -> str:
        """The table in the path. Raises `BadRequest` if it is no valid name."""
        return check_name(self.params["table"], "table")

    @cached_property
    def view(self) -> str:
        """The view in the path. Raises `BadRequest` if it is no valid name."""
        return check_name(self.params["view"], "view")

    def path_name(self, parameter: str) -> str:
        """Returns the name in the path for the `parameter` of the template. Raises `BadRequest` if it is no valid
        name."""
        return check_name(self.params[parameter], parameter)

    @property
    def fields(self) -> Fields:
        """The fields of the request's JSON body, for reading them with checks; no fields if the request has no body."""
        return Fields(self.body or {}, "request")

    def check_identifier_is_of_path(self, name: str, what: str) -> None:
        """Raises `BadRequest` if the body's `identifier` is not the namespace in the path with `name`. The field may be
        missing; `what` is the kind of the object in the error message."""
        identifier = self.fields.optional("identifier", OBJECT)
        if identifier is None:
            return
        separator = self.options.namespace_separator
        if read_identifier(identifier, "request.identifier", separator) != (self.namespace, name):
            raise BadRequest(
                f"Invalid request.identifier: in a commit it must be the namespace and the name of the {what} "
                "in the path"
            )

    @property
    def spelling(self) -> Spelling:
        """The way in which the client spells names in paths."""
        return spelling_of(self.headers)

    def check_new(self, name: str, what: str) -> str:
        """Returns the name of a new object, if later requests of this client can send it in a path, and it has no
        character that changes the display of text. Raises `BadRequest` otherwise, with a message that begins with
        `what`. It does not call `check_name`."""
        return check_routable(name, what, self.options.unroutable, self.spelling)

    def new_name(self) -> str:
        """Returns the `name` in the body for a new object. Raises `BadRequest` if it is missing or invalid, or if
        `check_new` does not accept it."""
        return self.check_new(read_name(self.fields), "request.name")

    def check_creation(self, change: JsonObject, name: str) -> None:
        """Raises `BadRequest` if the commit `change` creates a table of this `name`, and `check_new` does not accept
        the name."""
        if creates(change):
            self.check_new(name, "table")

    def renaming(self) -> tuple[Identifier, Identifier]:
        """Returns the source and the destination in the body of a rename. Raises `BadRequest` if one of them is missing
        or invalid, or if `check_new` does not accept the new name."""
        separator = self.options.namespace_separator
        source = required_identifier(self.fields, "source", separator)
        destination = required_identifier(self.fields, "destination", separator)
        self.check_new(destination[1], "request.destination.name")
        return source, destination

    @cached_property
    def canonical_path(self) -> str:
        """The path in one encoding, with the prefix and without the server's base path, however the client sent it;
        paths of different objects differ in it. An idempotency key is bound to it, and receipts contain it. Raises
        `BadRequest` for an invalid namespace."""
        levels: list[str] = []
        for level in self.template.split("/"):
            if level == "{namespace}":
                level = quote(UNIT_SEPARATOR.join(self.namespace), safe="")
            elif level.startswith("{"):
                level = quote(self.params[level[1:-1]], safe="")
            levels.append(level)
        return "/".join(levels)
