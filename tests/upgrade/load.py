"""Clients of two servers over one store, each of whose requests goes to the one or the other."""

import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from tools.support.arco_server import WAREHOUSE, ArcoServer

CLIENTS = 4
REQUEST_S = 60.0
Answer = Mapping[str, Any]


@dataclass
class Serving:
    """The servers that requests may go to, as a load balancer has them."""

    _servers: list[ArcoServer] = field(default_factory=list)
    _busy: Counter[str] = field(default_factory=Counter)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def add(self, server: ArcoServer) -> None:
        """From now on requests go to this server, too."""
        with self._changed:
            self._servers.append(server)

    def remove(self, server: ArcoServer) -> None:
        """No request goes to the server any more; returns when those at it have their answers."""
        with self._changed:
            self._servers.remove(server)
            assert self._changed.wait_for(lambda: self._busy[server.uri] == 0, REQUEST_S)

    def request(
        self, draw: random.Random, method: str, path: str, body: object = None, key: str | None = None
    ) -> tuple[int, str]:
        """Sends a request to one of the servers. Returns status and text of the answer."""
        with self._changed:
            uri = draw.choice(self._servers).uri
            self._busy[uri] += 1
        connection = http.client.HTTPConnection(urlsplit(uri).netloc, timeout=REQUEST_S)
        try:
            headers = {"content-type": "application/json", **({"idempotency-key": key} if key is not None else {})}
            text = None if body is None else json.dumps(body)
            connection.request(method, f"/v1/{WAREHOUSE}{path}", text, headers)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()
            with self._changed:
                self._busy[uri] -= 1
                self._changed.notify_all()


@dataclass
class Client:
    """Changes a namespace of its own and a table that all clients share, and reads each change at either server."""

    shared: str
    number: int
    serving: Serving
    sent: Counter[str] = field(default_factory=Counter)
    draw: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.draw = random.Random(self.number)

    def send(self, method: str, path: str, body: object = None, key: str | None = None) -> Answer:
        """The answer to a request. Raises `AssertionError` unless its status is 200 or 204."""
        status, text = self.serving.request(self.draw, method, path, body, key)
        self.sent[method] += 1
        assert status in (200, 204), f"{method} {path}: {status} {text[:500]}"
        answer: Answer = json.loads(text) if text else {}
        return answer

    def run(self, over: threading.Event) -> None:
        """Takes turns until the load is over."""
        turn = 0
        while not over.is_set():
            self.take_turn(turn)
            turn += 1

    def take_turn(self, turn: int) -> None:
        """Makes, changes, renames and drops a table. Each step is read, or repeated by its key, at either server."""
        namespace, table = f"{self.shared}_{self.number}_{turn}", f"t{turn}"
        created = {"namespace": [namespace], "properties": {"turn": str(turn)}}
        self.send("POST", "/namespaces", created, self.key())
        assert self.send("GET", f"/namespaces/{namespace}")["properties"]["turn"] == str(turn)
        tables = f"/namespaces/{namespace}/tables"
        self.send("POST", tables, {"name": table, "schema": schema()}, self.key())
        for value in range(3):
            self.set_property(f"{tables}/{table}", "value", str(value))
        self.set_property(f"/namespaces/{self.shared}/tables/{self.shared}", f"client-{self.number}", str(turn))
        there = {"namespace": [namespace], "name": table}
        key = self.key()
        for _ in range(2):
            self.send("POST", "/tables/rename", {"source": there, "destination": {**there, "name": "renamed"}}, key)
        assert [each["name"] for each in self.send("GET", tables)["identifiers"]] == ["renamed"]
        if turn % 2:
            self.send("DELETE", f"{tables}/renamed", key=self.key())
            self.send("DELETE", f"/namespaces/{namespace}", key=self.key())

    def set_property(self, path: str, name: str, value: str) -> None:
        """Sets a property twice, by one key, and reads it."""
        change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {name: value}}]}
        key = self.key()
        for _ in range(2):  # where others have committed since, the second answer may be of a later state
            assert self.send("POST", path, change, key)["metadata"]["properties"][name] == value
        assert self.send("GET", path)["metadata"]["properties"][name] == value

    def key(self) -> str:
        """A new idempotency key: a UUID of version 7, as clients send it."""
        bits = (time.time_ns() // 1_000_000) << 80 | 0x7 << 76 | self.draw.getrandbits(76)
        text = f"{bits & ~(0b11 << 62) | 0b10 << 62:032x}"
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def schema() -> Mapping[str, object]:
    """One of a single column."""
    return {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}


class Load:
    """All clients, at work while it is open; on leaving, each finishes its turn. Raises what a client raised.
    `shared` is the name of the table that all change, and of its namespace."""

    def __init__(self, serving: Serving, shared: str) -> None:
        self.clients = [Client(shared, number, serving) for number in range(CLIENTS)]
        self._over = threading.Event()
        self._pool = ExitStack()
        self._work: Sequence[Future[None]] = ()

    def __enter__(self) -> Self:
        setup = self.clients[0]
        setup.send("POST", "/namespaces", {"namespace": [setup.shared]})
        setup.send("POST", f"/namespaces/{setup.shared}/tables", {"name": setup.shared, "schema": schema()})
        pool = self._pool.enter_context(ThreadPoolExecutor(CLIENTS))
        self._work = [pool.submit(client.run, self._over) for client in self.clients]
        return self

    def go_on(self, seconds: float) -> None:
        """Waits while the clients work. Raises what a client raised meanwhile."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not any(each.done() for each in self._work):
            time.sleep(0.1)
        if any(each.done() for each in self._work):
            self.end()

    def end(self) -> None:
        """Waits for all clients to finish. Raises what a client raised."""
        self._over.set()
        for each in self._work:
            each.result()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._pool.close()
        if error is None:
            self.end()

    @property
    def requests(self) -> int:
        """How many were answered."""
        return sum(client.sent.total() for client in self.clients)
