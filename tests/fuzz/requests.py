"""Requests: what schemathesis makes of the specification, aimed at what there is, and right bodies gone wrong."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any
from urllib.parse import quote, unquote, urlencode

import schemathesis
from hypothesis import strategies as st
from schemathesis.core import NOT_SET

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from tests.fuzz.bodies import FRESH, body_of
from tests.fuzz.mutations import HOSTILE, mutants
from tests.fuzz.services import (
    EMPTY,
    GENERIC_TABLES,
    MODELS,
    NAMESPACES,
    PLANNED,
    POLICIES,
    TABLES,
    VIEWS,
    Address,
    Header,
    Request,
    joined,
)
from tests.fuzz.specification import management_operations, operations

RELATIONS = {
    "table": TABLES,
    "view": VIEWS,
    "generic-table": GENERIC_TABLES,
    "semantic-model-name": MODELS,
    "policy-name": POLICIES,
}
"""What there is, by the parameter of a path that names it."""
OAUTH = "POST /v1/oauth/tokens"


def addressed_to(table: str, body: JsonObject) -> JsonObject:
    """A notification that names the table of its path, as it must."""
    payload = body["payload"]
    assert isinstance(payload, dict)
    return {**body, "payload": {**payload, "table-name": table}}


def one_in(count: int) -> st.SearchStrategy[bool]:
    """True for one of so many; shrinks to False."""
    return st.integers(0, count - 1).map(lambda number: number == count - 1)


@lru_cache
def cases(label: str, *, positive: bool, body: bool) -> st.SearchStrategy[Any]:
    """What schemathesis generates for an operation, its body only where that is wanted."""
    mode = schemathesis.GenerationMode.POSITIVE if positive else schemathesis.GenerationMode.NEGATIVE
    operation = operations().get(label) or management_operations()[label]
    given = {"body": {}, "media_type": "application/json"} if operation.body and not body else {}
    cases: st.SearchStrategy[Any] = operation.as_strategy(mode, **given)
    return cases


def segment(value: str) -> str:
    return quote(value, safe="", errors="surrogatepass")


hostile_segments = (st.text(max_size=12) | st.sampled_from(HOSTILE)).map(segment) | st.text("%0aFf/+.=&;", max_size=10)


@st.composite
def _path(draw: st.DrawFn, template: str, generated: Mapping[str, object], address: Address) -> str:
    """The path, mostly of something that there is."""
    named = next((parameter for parameter in RELATIONS if f"{{{parameter}}}" in template), None)
    # A namespace itself is often the empty one, the only one that can be deleted.
    namespaces = (*NAMESPACES, EMPTY, EMPTY, EMPTY) if template.endswith("/namespaces/{namespace}") else NAMESPACES
    likely = {"prefix": address.warehouse, "namespace": joined(draw(st.sampled_from(namespaces))), "version": "0"}
    likely |= {"plan-id": address.plan_id} if address.plan_id else {}
    if named is not None:
        of_plan = address.plan_id and template.endswith(("/plan/{plan-id}", "/tables/{table}/tasks"))
        namespace, name = PLANNED if of_plan and draw(st.booleans()) else draw(st.sampled_from(RELATIONS[named]))
        likely |= {"namespace": joined(namespace), named: segment(name)}

    def value(parameter: str) -> str:
        if draw(one_in(40 if parameter == "prefix" else 12)):
            return draw(
                hostile_segments | st.just(str(generated.get(parameter, ""))) | st.sampled_from(FRESH).map(segment)
            )
        return likely.get(parameter, "x")

    return re.sub(r"{(.*?)}", lambda parameter: value(parameter[1]), template)


QUERIES: Mapping[str, st.SearchStrategy[str]] = {
    "pageToken": st.sampled_from(["", "", "x", "W10", "WyJhIiwiYiJd"]) | st.sampled_from(HOSTILE),
    "pageSize": st.sampled_from(["1", "2", "1000", "0", "-1", "1e3", "９", "9" * 30]),
    "parent": st.sampled_from(["db", "db\x1finner", "", "a b/c%d"]) | st.sampled_from(HOSTILE),
    "snapshots": st.sampled_from(["all", "refs", "none"]),
    "purgeRequested": st.sampled_from(["true", "false", "True", "1"]),
    "warehouse": st.sampled_from(["wh", "main", "", "none"]),
    "referenced-by": st.text(max_size=5),
    "planId": st.text(max_size=5),
    "policyType": st.sampled_from(["system.data-compaction", "system.data_compaction", "ours", ""])
    | st.sampled_from(HOSTILE),
    "namespace": st.sampled_from(["db", "db\x1finner", "", "a b/c%d"]) | st.sampled_from(HOSTILE),
    "target-name": st.sampled_from(["t", "v", "g", "m", "none", ""]) | st.sampled_from(HOSTILE),
    "table": st.sampled_from(["t", "v", "none", ""]),
    "status": st.sampled_from(["failure", "SUCCESS", "x"]),
    "stuck": st.sampled_from(["true", "false", "x"]),
    "unfinished": st.sampled_from(["true", "false", "x"]),
    "q": st.sampled_from(["t", "in", "db.t", "T", "_", "", "a b", "x" * 300]) | st.sampled_from(HOSTILE),
    "type": st.sampled_from(["table", "VIEW", "namespace", "generic-table", "tables", ""]),
    "limit": st.sampled_from(["1", "50", "1000", "0", "-1"]),
    "from": st.sampled_from(["0", "0", "0", "1", "snapshot:1", "x", "-1"]),
    "to": st.sampled_from(["0", "0", "0", "1", "snapshot:9", ""]),
    "at": st.sampled_from(["1", "1763000000000", "0", "-1", "9" * 30]),
    "detach-all": st.sampled_from(["true", "false", "True", "1"]),
}
REQUIRED = frozenset({"from", "q"})
"""Query parameters without which a request is refused."""


@st.composite
def _query(draw: st.DrawFn, generated: Mapping[str, object]) -> str:
    pairs = [(name, str(value)) for name, value in generated.items()]
    if not draw(one_in(6)):
        likely = [name for name, _ in pairs if name in QUERIES and (name in REQUIRED or draw(st.booleans()))]
        pairs = [(name, draw(QUERIES[name])) for name in likely]
    if draw(one_in(10)):
        name = draw(st.sampled_from([*QUERIES]))
        pairs.append((name, draw(QUERIES[name])))
    return urlencode(pairs, errors="surrogatepass")


def key_of(address: Address, number: int) -> str:
    """An idempotency key, made now."""
    time = f"{address.now_ms:012x}"
    return f"{time[:8]}-{time[8:]}-7000-8000-{number:012x}"


HEADERS: Mapping[str, st.SearchStrategy[str]] = {
    "If-None-Match": st.sampled_from(["*", '""', 'W/"x", "y"', '"', "x" * 3000]),
    "Idempotency-Key": st.sampled_from(["", "x", "017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "0" * 36, "1,2"]),
    "X-Iceberg-Access-Delegation": st.sampled_from(["vended-credentials", "remote-signing", "x"]),
    "Polaris-Generic-Table-Access-Delegation": st.sampled_from(["vended-credentials", "remote-signing", "x"]),
    "X-Arco-Admin-User": st.sampled_from(["me", "", "\xff"]),
    "X-Arco-Servo-Run-Id": st.sampled_from(["01ARZ3NDEKTSV4RRFFQ69G5FAV", "x"]),
    "Content-Type": st.sampled_from(["text/plain", "application/json; charset=utf-16", "x"]),
    "Accept-Encoding": st.sampled_from(["gzip", "gzip;q=0", "*"]),
}


@st.composite
def _headers(draw: st.DrawFn, generated: Mapping[str, object], address: Address) -> tuple[Header, ...]:
    headers: list[Header] = []
    if draw(one_in(5)):
        headers += [
            (name, str(value)) for name, value in generated.items() if re.fullmatch(r"[\x20-\x7e]*", str(value))
        ]
    if draw(one_in(8)):
        name = draw(st.sampled_from([*HEADERS]))
        headers.append((name, draw(HEADERS[name])))
    if draw(one_in(3)) and "Idempotency-Key" not in dict(headers):
        headers.append(("Idempotency-Key", key_of(address, draw(st.integers(0, 2**40) | st.integers(0, 1)))))
    return tuple(headers)


@st.composite
def sent_body(draw: st.DrawFn, right: st.SearchStrategy[JsonObject], generated: JsonValue, wrong: int) -> bytes:
    """`generated` None: a right body, or one out of `wrong` a mutant of it."""
    if generated is not None and draw(one_in(2)):
        return dumps(generated)
    document: JsonValue = draw(right)
    if generated is not None:  # something of the specification's in the place of something right
        return dumps(draw(mutants({**draw(right), "generated": generated}, 2)))
    if draw(one_in(wrong)):
        return dumps(draw(mutants(document)))
    return dumps(document)


@dataclass(frozen=True)
class Fuzz:
    """How requests are made: of `wrong` bodies one is a mutant, of `generated` one is schemathesis's own."""

    wrong: int = 2
    generated: int = 6

    @lru_cache  # noqa: B019 - a handful of them, all alive as long as the tests
    def requests(self, label: str, address: Address) -> st.SearchStrategy[Request]:
        """Requests for one operation of the specification."""
        return _request(label, address, self)

    def any_request(self, address: Address) -> st.SearchStrategy[Request]:
        """Requests for any of them."""
        return st.sampled_from([*operations()]).flatmap(lambda label: self.requests(label, address))


@st.composite
def _request(draw: st.DrawFn, label: str, address: Address, fuzz: Fuzz) -> Request:
    method, _, template = label.partition(" ")
    right = body_of(label, address)
    by_specification = right is None or draw(one_in(fuzz.generated))
    case = draw(cases(label, positive=draw(one_in(4)) is False, body=by_specification))
    path = draw(_path(template, case.path_parameters or {}, address))
    if right is not None and template.endswith("/notifications"):
        right = right.map(partial(addressed_to, unquote(path.split("/")[-2], errors="replace")))
    query = draw(_query(case.query or {}))
    headers = draw(_headers(case.headers or {}, address))
    body = b""
    if label == OAUTH:
        body = urlencode(case.body, errors="surrogatepass").encode() if isinstance(case.body, dict) else b"x"
    elif method in ("POST", "PUT"):
        generated = jsonable(case.body) if by_specification and case.body is not NOT_SET else None
        body = dumps(generated or {}) if right is None else draw(sent_body(right, generated, fuzz.wrong))
    target = f"{path}?{query}" if query else path
    return Request(label, method, target, headers, body)


def jsonable(value: object) -> JsonValue:
    """What schemathesis generated, as JSON has it: text without lone surrogates, numbers that are numbers."""
    match value:
        case dict():
            return {_text(str(name)): jsonable(inner) for name, inner in value.items()}
        case list() | tuple():
            return [jsonable(inner) for inner in value]
        case str():
            return _text(value)
        case None | bool() | int():
            return value
        case float():
            return value if value - value == 0 else None
        case _:
            return _text(str(value))


def _text(value: str) -> str:
    return value.encode("utf-8", "replace").decode()
