"""All that a client does with a name, as it spells it: what the tests of names do behind each kind of endpoint."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps, loads
from tests.http.spellings import Speller, lost
from tools.support.request_bodies import scan_report, schema, set_property, view_request

Send = Callable[[str, str, bytes, Mapping[str, str]], tuple[int, bytes]]
"""Method, target, body and headers of a request; status and body of its answer."""


@dataclass(frozen=True)
class Naming:
    """A client at one server, with what it is answered."""

    speller: Speller
    send: Send

    def ask(self, method: str, target: str, body: object = None) -> tuple[int, JsonObject]:
        headers = {"User-Agent": self.speller.user_agent, "Content-Type": "application/json"}
        data = b"" if body is None else dumps(cast(JsonValue, body))
        status, answer = self.send(method, target, data, headers)
        document = loads(answer) if answer else {}
        assert isinstance(document, dict)
        return status, document

    def done(self, method: str, target: str, body: object = None) -> JsonObject:
        """The answer to a request that must succeed."""
        status, document = self.ask(method, target, body)
        assert status in (200, 204), (method, target, document)
        return document

    def refused(self, target: str, body: object) -> str:
        """The message of a request that must be refused as a bad one."""
        status, document = self.ask("POST", target, body)
        assert status == 400, (target, document)
        return str(cast(JsonObject, document["error"])["message"])

    def make(self, *levels: str) -> None:
        """A namespace, unless it is there."""
        assert self.ask("POST", "/v1/wh/namespaces", {"namespace": [*levels]})[0] in (200, 409)

    def works(self, name: str) -> None:
        """Makes a namespace, tables and views of this name, does to them what can be done, and drops them."""
        path, space = self.speller.target, ("top", name)
        self.make("top")
        self.done("POST", "/v1/wh/namespaces", {"namespace": [*space]})
        assert self.done("GET", path("namespaces", space))["namespace"] == [*space]
        self.done("HEAD", path("namespaces", space))
        self.done("POST", path("namespaces", space, "properties"), {"updates": {name: name}})
        assert [*space] in cast(list[object], self._children("top"))
        self.done("POST", "/v1/wh/namespaces", {"namespace": [*space, "inner"]})
        assert self._children(*space) == [[*space, "inner"]]
        self.done("DELETE", path("namespaces", (*space, "inner")))
        self._tables(space, name)
        self._views(space, name)
        self.done("DELETE", path("namespaces", space))
        assert self.ask("HEAD", path("namespaces", space))[0] == 404

    def _children(self, *levels: str) -> JsonValue:
        return self.done("GET", f"/v1/wh/namespaces?parent={self.speller.parent(levels)}")["namespaces"]

    def _tables(self, space: tuple[str, str], name: str) -> None:
        path = self.speller.target
        tables, table = path("namespaces", space, "tables"), path("namespaces", space, "tables", name)
        identifier: JsonObject = {"namespace": [*space], "name": name}
        made = self.done("POST", tables, {"name": name, "schema": schema("x")})
        assert self.done("GET", table)["metadata-location"] == made["metadata-location"]
        self.done("HEAD", table)
        committed = self.done("POST", table, {**set_property("k", name), "identifier": identifier})
        self.done("POST", path("namespaces", space, "tables", name, "metrics"), scan_report(name))
        assert self.done("GET", tables)["identifiers"] == [identifier]
        elsewhere: JsonObject = {"namespace": ["top"], "name": name}
        self.done("POST", "/v1/wh/tables/rename", {"source": identifier, "destination": elsewhere})
        moved = self.done("GET", path("namespaces", ("top",), "tables", name))
        assert moved["metadata-location"] == committed["metadata-location"]
        self.done("POST", "/v1/wh/tables/rename", {"source": elsewhere, "destination": identifier})
        self.done("DELETE", table)
        assert self.ask("HEAD", table)[0] == 404
        again = {"name": name, "metadata-location": committed["metadata-location"]}
        self.done("POST", path("namespaces", space, "register"), again)
        self.done("DELETE", table)
        assert self.done("GET", tables)["identifiers"] == []

    def _views(self, space: tuple[str, str], name: str) -> None:
        path = self.speller.target
        views, view = path("namespaces", space, "views"), path("namespaces", space, "views", name)
        identifier: JsonObject = {"namespace": [*space], "name": name}
        made = self.done("POST", views, view_request(name))
        assert self.done("GET", view)["metadata-location"] == made["metadata-location"]
        self.done("HEAD", view)
        self.done("POST", view, {"requirements": [], "updates": [{"action": "set-properties", "updates": {"k": "v"}}]})
        assert self.done("GET", views)["identifiers"] == [identifier]
        elsewhere: JsonObject = {"namespace": ["top"], "name": name}
        self.done("POST", "/v1/wh/views/rename", {"source": identifier, "destination": elsewhere})
        self.done("DELETE", path("namespaces", ("top",), "views", name))

    def works_unless_lost(self, name: str) -> None:
        """The name works, or is refused where the client's own paths would lose some of it."""
        if lost(self.speller, name):
            self.is_refused(name, f"{self.speller.name} does not escape it in paths")
        else:
            self.works(name)

    def is_refused(self, name: str, why: str) -> None:
        """No new object gets the name, and the refusal has the reason."""
        self.make("top")
        renaming = {
            "source": {"namespace": ["top"], "name": "plain"},
            "destination": {"namespace": ["top"], "name": name},
        }
        space = self.speller.target("namespaces", ("top",))
        for target, body in (
            ("/v1/wh/namespaces", {"namespace": [name]}),
            ("/v1/wh/namespaces", {"namespace": ["top", name]}),
            (f"{space}/tables", {"name": name, "schema": schema("x")}),
            (f"{space}/views", view_request(name)),
            ("/v1/wh/tables/rename", renaming),
            ("/v1/wh/views/rename", renaming),
        ):
            assert why in self.refused(target, body)
        assert self._children("top") == []
        assert self.done("GET", f"{space}/tables")["identifiers"] == []
