"""Right bodies for Polaris's own operations: generic tables, semantic models, policies and notifications."""

from collections.abc import Mapping

from hypothesis import strategies as st

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from tests.fuzz.services import ATTACHED, KEPT, NAMESPACES, REGISTERED, TABLES, VIEWS, Address
from tests.iceberg.values import OTHER_UUID, UUID

Bodies = st.SearchStrategy[JsonObject]

CONTENTS = ('{"enable":true}', '{"version":"2025-02-03","enable":false,"config":{"k":1}}', "x", "{}", "[]")


def generic_table_creations(address: Address, names: st.SearchStrategy[str]) -> Bodies:
    return st.fixed_dictionaries(
        {"name": names, "format": st.sampled_from(["delta", "lance", "hudi", "csv", "Ü"])},
        optional={
            "base-location": st.sampled_from([f"{address.root}/{name}" for name in ("g", "g/h", "d%20e", "é")]),
            "doc": st.sampled_from(["", "what it is"]),
            "properties": st.dictionaries(st.sampled_from(["a", "location"]), st.sampled_from(["", "x"]), max_size=2),
        },
    )


def _document(sources: list[str], *, array: bool) -> JsonObject:
    datasets: list[JsonValue] = [{"name": f"d{place}", "source": source} for place, source in enumerate(sources)]
    model: JsonValue = {"name": "m", "datasets": datasets}
    return {"version": "0.1.1", "semantic_model": dumps([model] if array else model).decode()}


documents: Bodies = st.builds(
    _document, st.lists(st.sampled_from(["db.t", "db.v", "db.inner.t", "db.none"]), max_size=2), array=st.booleans()
)


def model_creations(names: st.SearchStrategy[str]) -> Bodies:
    return st.fixed_dictionaries({"name": names, "document": documents})


def model_replacements(address: Address) -> Bodies:
    """Of which those of the one model whose version is known can be right."""
    versions = st.sampled_from([address.model_version, address.model_version, "x"])
    return st.fixed_dictionaries({"entity-version": versions, "document": documents})


def policy_creations() -> Bodies:
    types = ["system.data-compaction", "system.snapshot_expiry", "ours", "ours", "custom.type"]
    return st.fixed_dictionaries(
        {"name": st.sampled_from(["n0", "n1", "n-2_"]), "type": st.sampled_from(types)},
        optional={"content": st.sampled_from(CONTENTS), "description": st.sampled_from(["", "why"])},
    )


def policy_updates() -> Bodies:
    return st.fixed_dictionaries(
        {"current-policy-version": st.sampled_from([0, 0, 0, 1])},
        optional={"content": st.sampled_from(CONTENTS), "description": st.sampled_from(["", "why"])},
    )


def _target(kind: str, *path: str) -> JsonObject:
    return {"type": kind, "path": [*path]}


TARGETS: list[JsonValue] = [
    _target("catalog"),
    *(_target("namespace", *namespace) for namespace in NAMESPACES),
    *(_target("table-like", *namespace, name) for namespace, name in (*TABLES, *VIEWS)),
]


def attachments() -> Bodies:
    parameters: Bodies = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["", "x"]), max_size=2)
    return st.builds(
        lambda target, given: {"target": target, "parameters": given}, st.sampled_from(TARGETS), st.none() | parameters
    )


def detachments() -> Bodies:
    return st.fixed_dictionaries({"target": st.just(ATTACHED) | st.sampled_from([ATTACHED, *TARGETS])})


def notifications(address: Address) -> Bodies:
    payloads: Bodies = st.fixed_dictionaries(
        {
            "table-name": st.just("registered"),
            "timestamp": st.integers(0, 3_000) | st.sampled_from([1_000, 2**63 - 1]),
            "table-uuid": st.sampled_from([UUID, UUID, OTHER_UUID]),
            "metadata-location": st.sampled_from([f"{address.root}/{file}" for file in (KEPT, REGISTERED)]),
        },
        optional={"metadata": st.just({})},
    )
    kinds = st.sampled_from(["CREATE", "UPDATE", "UPDATE", "DROP", "VALIDATE"])
    return st.builds(lambda kind, payload: {"notification-type": kind, "payload": payload}, kinds, payloads)


def native_bodies(address: Address, names: st.SearchStrategy[str]) -> Mapping[str, Bodies]:
    """By the method, where it matters, and the end of the operation's path; `names` are those that nothing has."""
    return {
        "/generic-tables": generic_table_creations(address, names),
        "/semantic-models": model_creations(names),
        "/semantic-models/{semantic-model-name}": model_replacements(address),
        "/policies": policy_creations(),
        "/policies/{policy-name}": policy_updates(),
        "PUT /polaris/v1/{prefix}/namespaces/{namespace}/policies/{policy-name}/mappings": attachments(),
        "POST /polaris/v1/{prefix}/namespaces/{namespace}/policies/{policy-name}/mappings": detachments(),
        "/notifications": notifications(address),
    }
