"""Requests of the API of management, and what must be true of their answers: what schemathesis makes of the
specification, aimed at what there is in a realm, and right bodies gone wrong."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from hypothesis import given, seed
from hypothesis import strategies as st
from schemathesis.core import NOT_SET

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.planning.privileges import GRANTABLE
from tests.fuzz.campaign import Tally, bounds
from tests.fuzz.checks import check_answer
from tests.fuzz.realms import (
    CATALOG_ROLES,
    CATALOGS,
    HELD,
    PRINCIPALS,
    ROLES,
    FuzzedRealm,
    InMemoryRealm,
    RealmAddress,
    audit,
    authorization,
    heads,
)
from tests.fuzz.requests import cases, hostile_segments, jsonable, one_in, segment, sent_body
from tests.fuzz.services import Header, Request
from tests.fuzz.specification import management_operations
from tests.support.realm_service import on_catalog, on_namespace, on_policy, on_table
from tools.openapi.specifications import MANAGEMENT_BASE

Bodies = st.SearchStrategy[JsonObject]
Values = st.SearchStrategy[JsonValue]

FRESH = ("n0", "n1", "ü/n%2F")
"""Names that nothing has at first."""
THERE: Mapping[str, Sequence[str]] = {
    "principalName": PRINCIPALS,
    "principalRoleName": ROLES,
    "catalogName": CATALOGS,
    "catalogRoleName": CATALOG_ROLES,
    "catalog": ("lake",),
    "namespace": ("db",),
    "table": ("t",),
    "view": ("v",),
}
"""What there is, by the parameter of a path that names it."""
HOLDS_THE_REALM_TOGETHER = {
    "principalName": "root",
    "principalRoleName": "service_admin",
    "catalogRoleName": "catalog_admin",
}
CREDENTIALS = ("/rotate", "/reset")
"""No request may drop the principal of the token that sends these."""

names = st.sampled_from([*FRESH, *FRESH, *PRINCIPALS[:1], "root", "", " x ", "system$x", "."])
properties: Values = st.dictionaries(st.sampled_from(["a", "b", "ü"]), st.sampled_from(["", "x", "y"]), max_size=2)
versions = st.sampled_from([1, 1, 1, 1, 1, 1, 2, 0, -1])


def _named(of: str, known: st.SearchStrategy[str], *fields: str) -> Bodies:
    """A body that describes an entity, or only refers to it by its name."""
    described: dict[str, Values] = {"properties": properties, "entityVersion": versions}
    if "federated" in fields:
        described["federated"] = st.booleans()
    entity = st.fixed_dictionaries({"name": known}, optional=described)
    return entity.map(lambda entity: {of: entity})


def _catalogs(address: RealmAddress) -> Bodies:
    def catalog(name: str, kind: str, place: str, more: dict[str, str], storage: str) -> JsonObject:
        base = f"{address.root}/{place}"
        return {
            "catalog": {
                "type": kind,
                "name": name,
                "properties": {"default-base-location": base, **more},
                "storageConfigInfo": {"storageType": storage, "allowedLocations": [base]},
            }
        }

    kinds, places = st.sampled_from(["INTERNAL", "INTERNAL", "EXTERNAL"]), st.sampled_from(["n0", "n1", "n2", "lake/x"])
    return st.builds(catalog, names, kinds, places, properties, st.sampled_from(["FILE", "FILE", "FILE", "S3"]))


def _catalog_changes(address: RealmAddress) -> Bodies:
    storage: Bodies = st.sampled_from([*CATALOGS, "n0"]).map(
        lambda name: {"storageType": "FILE", "allowedLocations": [f"{address.root}/{name}"]}
    )
    changes: dict[str, Values] = {
        "currentEntityVersion": versions,
        "properties": properties,
        "storageConfigInfo": storage,
    }
    return st.fixed_dictionaries({}, optional=changes)


changes: Bodies = st.fixed_dictionaries({"currentEntityVersion": versions, "properties": properties})


def _grants() -> Bodies:
    """Any privilege on any kind of thing, most of which are there; and what is held."""
    on: Mapping[str, Callable[[str], JsonObject]] = {
        "catalog": on_catalog,
        "namespace": lambda privilege: on_namespace(privilege, "db"),
        "table": lambda privilege: on_table(privilege, "db", "t"),
        "view": lambda privilege: {"type": "view", "namespace": ["db"], "viewName": "v", "privilege": privilege},
        "policy": lambda privilege: on_policy(privilege, "db", "p"),
    }
    new = [on[kind](privilege) for kind in on for privilege in sorted(GRANTABLE[kind])]
    return st.sampled_from([*HELD, *HELD]) | st.sampled_from(new)


patches: Bodies = st.dictionaries(
    st.sampled_from(
        ["arco.owner", "arco.quality", "arco.protected", "arco.tag.a", "arco.column.1.tag.a", "arco.other"]
    ),
    st.sampled_from(["x", "", "true", None]),
    max_size=2,
)


def right_bodies(label: str, address: RealmAddress) -> Bodies | None:
    """Right bodies for an operation, None where it has none."""
    resets: dict[str, Values] = {
        "clientId": st.sampled_from(["chosen-id", "alice", ""]),
        "clientSecret": st.sampled_from(["a secret of its own", ""]),
    }
    known: Mapping[str, Bodies] = {
        "POST /catalogs": _catalogs(address),
        "PUT /catalogs/{catalogName}": _catalog_changes(address),
        "POST /principals": st.builds(
            lambda entity, rotates: {**entity, "credentialRotationRequired": rotates},
            _named("principal", names),
            st.booleans(),
        ),
        "PUT /principals/{principalName}": changes,
        "POST /principals/{principalName}/reset": st.fixed_dictionaries({}, optional=resets),
        "PUT /principals/{principalName}/principal-roles": _named("principalRole", st.sampled_from([*ROLES, "n0"])),
        "POST /principal-roles": _named("principalRole", names, "federated"),
        "PUT /principal-roles/{principalRoleName}": changes,
        "PUT /principal-roles/{principalRoleName}/catalog-roles/{catalogName}": _named(
            "catalogRole", st.sampled_from([*CATALOG_ROLES, "catalog_admin", "n0"])
        ),
        "POST /catalogs/{catalogName}/catalog-roles": _named("catalogRole", names),
        "PUT /catalogs/{catalogName}/catalog-roles/{catalogRoleName}": changes,
        "PUT /catalogs/{catalogName}/catalog-roles/{catalogRoleName}/grants": _grants().map(_granted),
        "POST /catalogs/{catalogName}/catalog-roles/{catalogRoleName}/grants": _grants().map(_granted),
        "POST /catalogs/{catalog}/check": _checks(),
    }
    method, _, template = label.partition(" ")
    if template.endswith("/governance") and method == "POST":
        return patches
    return known.get(f"{method} {template.removeprefix(MANAGEMENT_BASE)}")


def _checks() -> Bodies:
    """Checks of the caller and of others, some of which are there."""
    principals: Values = st.sampled_from([None, None, *PRINCIPALS, "n0"])
    check = st.builds(lambda grant, principal: {**grant, "principal": principal}, _grants(), principals)
    return st.lists(check, max_size=3).map(lambda checks: {"checks": [*checks]})


def _granted(grant: JsonObject) -> JsonObject:
    return {"grant": grant}


@st.composite
def _path(draw: st.DrawFn, label: str, generated: Mapping[str, object]) -> str:
    """The path, mostly of something that there is."""
    _, _, template = label.partition(" ")

    def value(parameter: str) -> str:
        if draw(one_in(15)):
            return draw(hostile_segments | st.just(segment(str(generated.get(parameter, "")))) | fresh)
        holds = HOLDS_THE_REALM_TOGETHER.get(parameter)
        if holds is not None and not template.endswith(CREDENTIALS) and draw(one_in(10)):
            return holds
        return draw(st.sampled_from(THERE[parameter]).map(segment))

    fresh = st.sampled_from(FRESH).map(segment)
    return re.sub(r"{(.*?)}", lambda parameter: value(parameter[1]), template)


@st.composite
def _headers(draw: st.DrawFn, address: RealmAddress, *, of_itself: bool) -> tuple[Header, ...]:
    """Mostly of the root, unless only a principal itself may do it: `alice` may do something in one catalog, and
    nothing to the realm."""
    usual, other = (address.root_token, address.other_token)[:: -1 if of_itself else 1]
    tokens = [usual, usual, usual, other]
    headers = [authorization(draw(st.sampled_from(tokens)))] if not draw(one_in(30)) else []
    if draw(one_in(12)):
        headers.append(("Content-Type", draw(st.sampled_from(["text/plain", "application/merge-patch+json", "x"]))))
    if draw(one_in(20)):
        headers.append(("Idempotency-Key", draw(st.sampled_from(["x", "017F22E2-79B0-7CC3-98C4-DC0C0C07398F"]))))
    if draw(one_in(20)):
        headers.append(("Polaris-Realm", draw(st.sampled_from(["r", "other", "\xff"]))))
    return tuple(headers)


@lru_cache
def requests(label: str, address: RealmAddress) -> st.SearchStrategy[Request]:
    """Requests for one operation."""
    return _request(label, address)


@st.composite
def _request(draw: st.DrawFn, label: str, address: RealmAddress) -> Request:
    method = label.partition(" ")[0]
    right = right_bodies(label, address)
    by_specification = right is None or draw(one_in(6))
    case = draw(cases(label, positive=draw(one_in(4)) is False, body=by_specification))
    target = draw(_path(label, case.path_parameters or {}))
    if label.endswith("/grants") and draw(one_in(3)):
        target += f"?cascade={draw(st.sampled_from(['true', 'false', 'x', '']))}"
    body = b""
    if method in ("POST", "PUT"):
        generated = jsonable(case.body) if by_specification and case.body is not NOT_SET else None
        body = dumps(generated or {}) if right is None else draw(sent_body(right, generated, 4))
    headers = draw(_headers(address, of_itself=label.endswith("/rotate")))
    return Request(label, method, target, headers, body)


def sequences(label: str, address: RealmAddress) -> st.SearchStrategy[list[Request]]:
    """A few requests of any kind, then some for one operation."""
    any_request = st.sampled_from([*management_operations()]).flatmap(lambda each: requests(each, address))
    aimed = st.lists(requests(label, address), min_size=1, max_size=3)
    return st.builds(lambda first, last: [*first, *last], st.lists(any_request, max_size=2), aimed)


async def play(realm: FuzzedRealm, sequence: list[Request], tally: Tally) -> None:
    """Sends requests one after the other, and looks at each answer and at what became of the realm. Raises
    AssertionError."""
    changed = False
    for request in sequence:
        before = await heads(realm)
        began = realm.stopwatch()
        answer = await realm.send(request)
        seconds = realm.stopwatch() - began
        tally.count(request, answer, seconds)
        check_answer(request, answer, seconds)
        moved = {key for key, version in before.items() if (await heads(realm)).get(key) != version}
        changed = changed or bool(moved)
        if request.method == "GET" or answer.status >= 400:
            assert not moved, f"{answer.status} {answer.body[:500]!r} and yet it changed {moved}"
    if changed:
        await audit(realm)


def in_memory() -> Callable[[], InMemoryRealm]:
    """Makes copies of one realm."""
    return asyncio.run(InMemoryRealm.start()).copy


def run(label: str, fresh: Callable[[], InMemoryRealm], examples: int, *, number: int | None = None) -> Tally:
    """Plays sequences at copies of a realm in memory; `number` seeds them, None for the same ones each time. Raises
    AssertionError, with the smallest sequence found, where something was wrong."""
    tally = Tally()
    address = fresh().address

    def one(sequence: list[Request]) -> None:
        try:
            asyncio.run(play(fresh(), sequence, tally))
        except AssertionError as error:
            error.add_note("\n".join(["after", *(repr(request) for request in sequence)]))
            raise

    test = given(sequences(label, address))(one)
    if number is not None:
        test = seed(number)(test)
    bounds(examples, derandomize=number is None)(test)()
    return tally
