"""Pins a client's session to one consistent cut: the snapshots that several tables had at one instant.

A program resolves the names once, and then reads each table at its snapshot, by PyIceberg or by Spark:

    cut = read_cut("http://127.0.0.1:8181", "arco", ["shop.orders", "shop.items"])
    cut.scan(catalog.load_table("shop.orders")).to_arrow()
    for statement in cut.spark_views("rest"):
        spark.sql(statement)

Needs nothing but the standard library. The cut is made by the catalog's endpoint `resolve` with `consistent`.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

__all__ = ["Cut", "CutError", "Scannable", "read_cut"]

Json: TypeAlias = dict[str, Any]
Levels: TypeAlias = tuple[str, ...]
"""The levels of a namespace, and the name of a table in it."""
TIMEOUT_SECONDS = 60.0
S = TypeVar("S", covariant=True)


class CutError(Exception):
    """The catalog gave no consistent cut. `kind` is the type of the catalog's error, empty without one. `retry_after`
    are the seconds that the response names for another try, 1 if it names none, also where no other try succeeds."""

    def __init__(self, message: str, kind: str = "", retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after


class Scannable(Protocol[S]):
    """What a cut needs of a table of PyIceberg."""

    def name(self) -> tuple[str, ...]:
        """Returns the levels of the namespace, and the name."""
        ...

    def scan(self, row_filter: str = ..., *, snapshot_id: int | None = ...) -> S:
        """Returns a scan of the rows of a snapshot that the filter selects; of the current snapshot for None."""
        ...


@dataclass(frozen=True)
class Cut:
    """The current snapshots of tables at one instant, by the levels of their names; None for a table that had none."""

    snapshots: Mapping[Levels, int | None]

    def snapshot_id(self, name: str | Sequence[str]) -> int | None:
        """Returns the snapshot of a table; None if it had none, so that it was empty. Raises `KeyError` for a table
        that is not in the cut."""
        return self.snapshots[_levels(name)]

    def scan(self, table: Scannable[S], row_filter: str = "true") -> S:
        """Returns PyIceberg's scan of a table as it was in the cut, of no rows if it had no snapshot. Raises `KeyError`
        for a table that is not in the cut."""
        snapshot_id = self.snapshot_id(table.name())
        return table.scan("false") if snapshot_id is None else table.scan(row_filter, snapshot_id=snapshot_id)

    def spark_table(self, catalog: str, name: str | Sequence[str]) -> str:
        """Returns a table as it was in the cut, as SQL for a FROM clause of Spark, which calls the catalog `catalog`; a
        query of no rows if the table had no snapshot. Raises `KeyError` for a table that is not in the cut."""
        snapshot_id = self.snapshot_id(name)
        quoted = ".".join(map(_quoted, (catalog, *_levels(name))))
        if snapshot_id is None:
            return f"(SELECT * FROM {quoted} WHERE false)"
        return f"{quoted} VERSION AS OF {snapshot_id}"

    def spark_views(self, catalog: str) -> list[str]:
        """Returns the statements that make a temporary view in a session of Spark for each table of the cut, with the
        name of the table alone. Raises `ValueError` if two tables have one name."""
        names = [levels[-1] for levels in self.snapshots]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"Several tables have the name {twice[0]}: make views of other names by spark_table")
        views = {_quoted(levels[-1]): self.spark_table(catalog, levels) for levels in self.snapshots}
        return [f"CREATE OR REPLACE TEMPORARY VIEW {view} AS SELECT * FROM {table}" for view, table in views.items()]


def read_cut(
    uri: str,
    warehouse: str,
    names: Sequence[str | Sequence[str]],
    *,
    headers: Mapping[str, str] | None = None,
    tries: int = 5,
) -> Cut:
    """Returns the snapshots that these tables have at one instant, by the catalog at `uri`. A name is a text with dots,
    or its levels. `headers` are sent with each request, such as `Authorization`. While the catalog is unavailable, as
    when the tables change too often, or their states exceed one response, it tries again, `tries` times in all, in the
    first case after the pause that the catalog requests; it blocks meanwhile. An error while it loads states
    that exceed one response is raised at once. Raises `CutError` if the catalog gives no cut, or does not know
    `consistent`; `LookupError` for a name without a table; `OSError` if no catalog responds; and `ValueError` if
    `tries` is less than 1."""
    endpoint = _Endpoint(f"{uri.rstrip('/')}/v1/{quote(warehouse, safe='')}/resolve", headers or {})
    wanted, known = [*map(_levels, names)], dict[Levels, _State]()
    for left in reversed(range(tries)):
        try:
            response = endpoint.send(_items(wanted, known), consistent=True)
        except CutError as error:
            if not left or error.kind not in ("AnswerTooLargeException", "ServiceUnavailableException"):
                raise
            if error.kind == "AnswerTooLargeException":  # a state that is known takes no bytes
                known = endpoint.states(_items(wanted, known), known)
            else:
                time.sleep(error.retry_after)
            continue
        if response.get("consistent") is not True:
            raise CutError("The response has no `consistent`: this catalog makes no consistent cuts")
        return Cut({levels: state.snapshot_id for levels, state in _states(response, known).items()})
    raise ValueError("tries must be at least 1")


@dataclass(frozen=True)
class _State:
    """The state of a table that is known by its ETag, and the current snapshot in it."""

    etag: str
    snapshot_id: int | None


@dataclass(frozen=True)
class _Endpoint:
    """The endpoint `resolve` of a catalog, and the headers of requests to it."""

    target: str
    headers: Mapping[str, str]

    def send(self, items: Sequence[Json], *, consistent: bool = False) -> Json:
        """Sends one request, and returns the body of the response. Raises `CutError` for the status of an error, and
        `OSError` without a response."""
        body = json.dumps({"relations": items, "consistent": consistent}).encode()
        request = Request(self.target, body, {"Content-Type": "application/json", **self.headers})
        try:
            with urlopen(request, timeout=TIMEOUT_SECONDS) as response:
                found: Json = json.load(response)
                return found
        except HTTPError as error:
            with error:
                raise _refusal(error) from error

    def states(self, items: Sequence[Json], known: Mapping[Levels, _State]) -> dict[Levels, _State]:
        """Loads the states of these items, each as it is at a moment of its own, by as many requests as that takes.
        Raises `CutError`, also if a response lists all items of its request as unprocessed, and `LookupError`."""
        found: dict[Levels, _State] = {}
        while items:
            response = self.send(items)
            found |= _states(response, known)
            rest = response.get("unprocessed", {}).get("relations", [])
            if len(rest) >= len(items):
                raise CutError(f"The catalog loaded none of the {len(items)} tables of a request: try again later")
            items = rest
        return found


def _items(wanted: Sequence[Levels], known: Mapping[Levels, _State]) -> list[Json]:
    """Returns the items of a request for these tables, with the ETags of those whose state is known."""
    return [
        {"identifier": [*levels], "snapshots": "refs", **({"etag": known[levels].etag} if levels in known else {})}
        for levels in wanted
    ]


def _states(response: Json, known: Mapping[Levels, _State]) -> dict[Levels, _State]:
    """Returns the states of the tables in a response, by their names; of a table that has not changed the known one.
    Raises `LookupError` for a name without a table, also for a view."""
    found: dict[Levels, _State] = {}
    for each in response["relations"]:
        levels, status = tuple(each["identifier"]), each["status"]
        if status == "not-modified":
            found[levels] = known[levels]
        elif status == "loaded" and each["result"]["object-type"] == "table":
            snapshot_id = each["result"]["table"]["metadata"].get("current-snapshot-id")
            found[levels] = _State(each["etag"], None if snapshot_id == -1 else snapshot_id)
        else:
            raise LookupError(f"There is no table {'.'.join(levels)}, or the caller may not know of it; a view is none")
    return found


def _refusal(error: HTTPError) -> CutError:
    """Returns the error in a response of the catalog. It has only the status if the response has no error in the
    catalog's form, and `retry_after` is 1 second if the response has none in whole seconds."""
    try:
        described = json.load(error)["error"]
        message, kind = str(described["message"]), str(described["type"])
    except (ValueError, LookupError, TypeError):  # the error of a proxy, say
        message, kind = f"The response has the status {error.code}", ""
    retry_after = error.headers.get("Retry-After", "")
    return CutError(message, kind, float(retry_after) if retry_after.isdigit() else 1.0)


def _levels(name: str | Sequence[str]) -> Levels:
    """Returns the levels of a name: a text is split at the dots."""
    return tuple(name.split(".")) if isinstance(name, str) else tuple(name)


def _quoted(level: str) -> str:
    """Returns a name as an identifier of Spark's SQL."""
    return f"`{level.replace('`', '``')}`"
