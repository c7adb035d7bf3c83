"""What must be true of every answer, and of the catalog after it."""

from collections.abc import AsyncIterator, Mapping
from urllib.parse import quote

from arco_catalog.http.errors import TABLE
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.operations.receipts import receipts
from arco_catalog.upkeep.reconcile import reconcile
from tests.fuzz.requests import OAUTH
from tests.fuzz.services import Address, FuzzedService, Request, joined
from tests.fuzz.specification import collection_of, describes, violations
from tools.support.asgi_client import Answer
from tools.support.request_bodies import set_property

SECONDS = 5.0
"""How long an answer may take, by the service's stopwatch."""
MESSAGE_BYTES = 16 << 10
"""How long an error may be, whatever was sent: 16 levels of a namespace can stand in it."""
COMMITS = (
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/namespaces/{namespace}/views/{view}",
    "POST /v1/{prefix}/transactions/commit",
)
NATIVE_NAMES = {"generic-tables": "generic-table", "semantic-models": "semantic-model-name", "policies": "policy-name"}
"""The collections below `/polaris`, and the parameter that names one of each."""
OLD_KEY = "Idempotency-Key is older than a day"
"""The answer to a change under such a key, whose outcome is unknown, with a 500
(docs/design/idempotency.md#rule-7)."""
TYPES = {kind for _, kind in TABLE.values()}


def check_answer(request: Request, answer: Answer, seconds: float) -> None:
    """The server did not fail, answered in time, and as specified."""
    changes = request.method in ("POST", "PUT", "DELETE")
    if answer.status == 500 and changes and OLD_KEY in answer.message:
        return
    assert answer.status < 500, f"the server failed: {answer.status} {answer.body!r}"
    assert seconds < SECONDS, f"took {seconds:.1f} s"
    if request.method == "HEAD" or answer.status in (204, 304):
        assert answer.body == b""
    elif answer.status >= 400 and request.label != OAUTH:
        assert answer.error_type in TYPES
        assert len(answer.body) <= MESSAGE_BYTES, f"an error of {len(answer.body)} bytes"
    label = request.label and (collection_of(request.label, request.target.partition("?")[0]) or request.label)
    sent = {name for name, _ in request.headers}
    if label and not describes(label):
        refusals = (400, 404, 405) if "Authorization" in sent else (400, 401, 404, 405)
        assert request.method == "HEAD" or answer.status in refusals, f"{answer.status} to {label}"
    elif label:
        violation = violations(label, answer, keyed="Idempotency-Key" in sent)
        assert violation is None, f"{answer.status} {answer.body[:2000]!r}: {violation}"


async def everything(service: FuzzedService, prefix: str) -> AsyncIterator[tuple[str, str]]:
    """Key and version of every object."""
    page = await service.store.list(prefix)
    while True:
        for entry in page.entries:
            yield entry.key, entry.version
        if page.after is None:
            return
        page = await service.store.list(prefix, page.after)


async def state_of(service: FuzzedService) -> Mapping[str, str]:
    """Versions of all that can change: HEAD and the pointers."""
    catalog = f"{service.address.warehouse}/_catalog"
    mutable = [f"{catalog}/core/manifest.json", f"{catalog}/iceberg_pointers/"]
    return {key: version for prefix in mutable async for key, version in everything(service, prefix)}


def check_unchanged(request: Request, answer: Answer, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """A read, and a request that was refused, changed nothing. Two traces do not count: a pointer without a name, left
    by a refused create (docs/design/registry.md#rule-1), and a location that a commit reserved in HEAD before it was
    refused (docs/design/state.md#rule-6)."""
    if request.method in ("GET", "HEAD") or answer.status >= 400:
        moved = {key for key, version in before.items() if after.get(key) != version}
        if request.label in COMMITS:
            moved = {key for key in moved if not key.endswith("/core/manifest.json")}
        assert not moved, f"{answer.status} {answer.body[:500]!r} and yet it changed {moved}"


async def audit(service: FuzzedService) -> int:
    """Everything that is listed loads and can be changed, its receipts tell its history, and nothing lies outside of
    the warehouse. Returns how many tables and views there are."""
    found = 0
    async for namespace in _namespaces(service, ()):
        target = f"{service.address.namespaces}/{joined(namespace)}"
        for kind in ("tables", "views"):
            for name in await _names(service, f"{target}/{kind}"):
                found += 1
                await _audit_relation(service, f"{target}/{kind}/{quote(name, safe='')}", kind)
                if kind == "tables" and not service.external:
                    await _audit_receipts(service, namespace, name)
        for collection, parameter in NATIVE_NAMES.items():
            await _audit_native(service, namespace, collection, parameter)
    await reconcile(service.session())
    warehouse = service.address.warehouse
    async for key, _ in everything(service, ""):
        assert key.startswith((f"{warehouse}/_catalog/", f"{warehouse}/warehouse/")), f"{key} lies outside"
    return found


async def _audit_relation(service: FuzzedService, target: str, kind: str) -> None:
    parameter = kind.removesuffix("s")
    label = f"/v1/{{prefix}}/namespaces/{{namespace}}/{kind}/{{{parameter}}}"
    loaded = await service.send(Request("", "GET", target))
    assert loaded.status == 200, f"{target} is listed and does not load: {loaded.body!r}"
    check_answer(Request(f"GET {label}", "GET", target), loaded, 0)
    check_inside(service.address, str(loaded.json["metadata-location"]))
    if kind == "tables":
        refs = await service.send(Request("", "GET", f"{target}?snapshots=refs"))
        check_answer(Request(f"GET {label}", "GET", target), refs, 0)
    change = Request(f"POST {label}", "POST", target, (), dumps(set_property("audited", "yes")))
    changed = await service.send(change)
    expected = 400 if service.external else 200
    assert changed.status == expected, f"{target} loads and can't be changed as it should: {changed.body!r}"
    check_answer(change, changed, 0)


async def _audit_native(service: FuzzedService, namespace: tuple[str, ...], collection: str, parameter: str) -> None:
    """What is listed below `/polaris` loads."""
    template = f"/polaris/v1/{{prefix}}/namespaces/{{namespace}}/{collection}"
    target = f"{service.address.polaris}/{joined(namespace)}/{collection}"
    for name in await _names(service, target):
        load = Request(f"GET {template}/{{{parameter}}}", "GET", f"{target}/{quote(name, safe='')}")
        loaded = await service.send(load)
        assert loaded.status == 200, f"{load.target} is listed and does not load: {loaded.body!r}"
        check_answer(load, loaded, 0)


def check_inside(address: Address, location: str) -> None:
    """Metadata lies in the warehouse."""
    assert location.startswith(f"{address.root}/"), f"{location} is outside of the warehouse"
    assert "/../" not in location


async def _audit_receipts(service: FuzzedService, namespace: tuple[str, ...], name: str) -> None:
    target = f"{service.address.namespaces}/{joined(namespace)}/tables/{quote(name, safe='')}"
    current = (await service.send(Request("", "GET", target))).json
    found = await receipts(service.session(), namespace, name)
    assert found, f"no receipt of {name}"
    assert found[0]["metadata_location"] == current["metadata-location"]


async def _namespaces(service: FuzzedService, parent: tuple[str, ...]) -> AsyncIterator[tuple[str, ...]]:
    query = f"?parent={joined(parent)}" if parent else ""
    listed = await service.send(Request("", "GET", f"{service.address.namespaces}{query}"))
    assert listed.status == 200, listed.body
    levels = listed.json["namespaces"]
    assert isinstance(levels, list)
    for each in levels:
        assert isinstance(each, list)
        namespace = tuple(str(level) for level in each)
        yield namespace
        async for inner in _namespaces(service, namespace):
            yield inner


async def _names(service: FuzzedService, target: str) -> list[str]:
    listed = await service.send(Request("", "GET", target))
    assert listed.status == 200, listed.body
    identifiers = listed.json["identifiers"]
    assert isinstance(identifiers, list)
    return [str(_object(identifier)["name"]) for identifier in identifiers]


def _object(value: object) -> JsonObject:
    assert isinstance(value, dict)
    return value
