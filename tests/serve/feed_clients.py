"""Clients that change a catalog in all ways that the event feed knows, each request until its answer is definite."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp

from arco_catalog.iceberg.json import JsonObject, JsonValue
from tests.serve.writers import LAST, NAMESPACE, Crowd, Request
from tools.support.arco_server import WAREHOUSE
from tools.support.request_bodies import creation_updates, renaming, set_property, view_request

CATALOG = f"/v1/{WAREHOUSE}"
TABLES, VIEWS = f"{CATALOG}/namespaces/{NAMESPACE}/tables", f"{CATALOG}/namespaces/{NAMESPACE}/views"
STEADY = [f"t{number}" for number in range(20)]
"""Tables that no client drops or renames, so that transactions over them succeed."""
NAMES = [f"c{number}" for number in range(12)]
"""Names of tables that come and go."""
VIEW_NAMES = [f"v{number}" for number in range(4)]
SPACES = [f"n{number}" for number in range(3)]
WAYS: Mapping[str, int] = {
    "commit": 30,
    "commit a passing table": 12,
    "create": 14,
    "drop": 9,
    "rename": 8,
    "transaction": 10,
    "transaction that creates": 4,
    "register": 5,
    "make a view": 3,
    "change a view": 5,
    "drop a view": 2,
    "rename a view": 2,
    "make a namespace": 2,
    "drop a namespace": 2,
}
"""How often each kind of request is drawn."""


@dataclass
class FeedCrowd(Crowd):
    """Clients with the numbers of records that each request leaves in the feed if it succeeds: those of commits, by
    `commits`, and those of operations, by `operations`, by the request's token."""

    commits: dict[str, int] = field(default_factory=dict)
    operations: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    """Metadata files of tables that come and go, which may be registered."""

    def expect(self, request: Request, commits: int, operation: str = "") -> Request:
        """Returns the request, after it has stored what the request leaves in the feed."""
        self.commits[request.token] = commits
        if operation:
            self.operations[request.token] = operation
        return request

    def set_up(self) -> list[Request]:
        """The creations of the tables that stay."""
        return [self.expect(self.create(name), 1, "create-table") for name in STEADY]

    async def next_request(self) -> Request | None:
        way = self.rng.choices([*WAYS], weights=[*WAYS.values()])[0]
        if "view" in way:
            return self._of_view(way)
        if "namespace" in way:
            return self._of_namespace(way, self.rng.choice(SPACES))
        match way:
            case "commit":
                return self.expect(self._commit(self.rng.choice(STEADY)), 1)
            case "transaction" | "transaction that creates":
                return self._transaction(creates=way != "transaction")
            case _:
                return await self._of_passing_table(way, *self.rng.sample(NAMES, 2))

    async def _of_passing_table(self, way: str, name: str, other: str) -> Request | None:
        match way:
            case "create":
                return self.expect(self.create(name), 1, "create-table")
            case "drop":
                await self._remember(name)
                return self.expect(self.drop(name), 0, "drop-table")
            case "rename":
                return self.expect(self.rename(name, other), 0, "rename-table")
            case "register":
                return self._register(name)
            case _:
                return self.expect(self._commit(name), 1)

    def _commit(self, name: str) -> Request:
        return self.request("POST", f"{TABLES}/{name}", lambda token: set_property(LAST, token))

    def _transaction(self, *, creates: bool) -> Request:
        names = self.rng.sample(STEADY, self.rng.randint(2, 4))

        def body(token: str) -> JsonObject:
            changes: list[JsonValue] = [
                {"identifier": {"namespace": [NAMESPACE], "name": name}, **set_property(LAST, token)} for name in names
            ]
            if creates:
                made: JsonObject = {"namespace": [NAMESPACE], "name": self.rng.choice(NAMES)}
                changes.append({"identifier": made, **_creation(token)})
            return {"table-changes": changes}

        return self.expect(self.request("POST", f"{CATALOG}/transactions/commit", body), len(names) + creates)

    async def _remember(self, name: str) -> None:
        """Remembers the metadata file of a table that is about to be dropped, which may then be registered."""
        url = f"{self.rng.choice(self.sender.uris())}{TABLES}/{name}"
        try:
            async with self.sender.session.get(url) as answer:
                if answer.status == 200:
                    self.files.append(str((await answer.json())["metadata-location"]))
        except (aiohttp.ClientError, OSError, TimeoutError):
            pass  # that server is down
        del self.files[:-10]

    def _register(self, name: str) -> Request | None:
        if not self.files:
            return None
        made: JsonObject = {"name": name, "metadata-location": self.rng.choice(self.files)}
        path = f"{CATALOG}/namespaces/{NAMESPACE}/register"
        return self.expect(self.request("POST", path, lambda token: made), 0, "register-table")

    def _of_view(self, way: str) -> Request:
        name, other = self.rng.sample(VIEW_NAMES, 2)
        match way:
            case "make a view":
                made = self.request("POST", VIEWS, lambda token: view_request(name, {LAST: token}))
                return self.expect(made, 1, "create-view")
            case "drop a view":
                return self.expect(self.request("DELETE", f"{VIEWS}/{name}"), 0, "drop-view")
            case "rename a view":
                renamed = self.request("POST", f"{CATALOG}/views/rename", lambda token: renaming(name, other))
                return self.expect(renamed, 0, "rename-view")
            case _:
                changed = self.request("POST", f"{VIEWS}/{name}", lambda token: set_property(LAST, token))
                return self.expect(changed, 1)

    def _of_namespace(self, way: str, name: str) -> Request:
        if way == "make a namespace":
            made = self.request("POST", f"{CATALOG}/namespaces", lambda token: {"namespace": [name]})
            return self.expect(made, 0, "create-namespace")
        return self.expect(self.request("DELETE", f"{CATALOG}/namespaces/{name}"), 0, "drop-namespace")


def _creation(token: str) -> JsonObject:
    """The change of a transaction that creates a table."""
    made: list[JsonValue] = [
        *creation_updates(),
        {"action": "set-properties", "updates": {LAST: token}},
    ]
    return {"requirements": [{"type": "assert-create"}], "updates": made}
