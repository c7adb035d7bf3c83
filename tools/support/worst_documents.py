"""The worst documents that each bound of docs/bounds.md lets through, and some beyond it. `make bench-hostile` sends
them; tests/docs/test_bounds.py holds them to their bounds."""

import gzip
import zlib
from collections.abc import Callable, Mapping
from typing import Protocol

from arco_catalog.http.options import MAX_BODY_BYTES
from arco_catalog.http.requests import MAX_VALUES
from arco_catalog.iceberg.commit import MAX_UPDATES
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.operations.lineage import MAX_EVENT_BYTES
from arco_catalog.operations.policies.policies import MAX_CONTENT_BYTES
from arco_catalog.planning import governance
from arco_catalog.planning.semantic_models import MAX_MODEL_BYTES
from arco_catalog.state.lineage import MAX_DATASETS, MAX_NAME
from arco_catalog.state.memory import MAX_METADATA_BYTES, max_metadata_values

Make = Callable[[], bytes]


class Grow(Protocol):
    """A function that makes the worst document of a valid metadata file."""

    def __call__(self, document: bytes, max_bytes: int = MAX_METADATA_BYTES) -> bytes: ...


SPARE = 64
"""Values, and bytes, that are left for what stands around the repeated part."""


def padded(unit: bytes, size: int, head: bytes = b'{"x":[', tail: bytes = b"1]}") -> bytes:
    """The unit again and again, in so many bytes at most."""
    return head + unit * ((size - len(head) - len(tail)) // len(unit)) + tail


def _valued(unit: bytes, values: int, each: int) -> bytes:
    return b'{"x":[' + unit * ((values - SPARE) // each) + b"1]}"


BODIES: Mapping[str, Make] = {
    "empty arrays": lambda: _valued(b"[],", MAX_VALUES, 2),
    "objects of one": lambda: _valued(b'{"a":1},', MAX_VALUES, 2),
    "short strings": lambda: _valued(b'"abc",', MAX_VALUES, 1),
    "integers beyond 64 bits": lambda: padded(
        b"123456789012345678901,", min(MAX_BODY_BYTES, 22 * (MAX_VALUES - SPARE))
    ),
    "one string of escapes": lambda: padded(b"\\u00e9", MAX_BODY_BYTES, b'{"x":"', b'"}'),
    "brackets that never close": lambda: b"[" * (MAX_VALUES - SPARE) + b" " * (MAX_BODY_BYTES - MAX_VALUES),
    "brackets within each other": lambda: padded(b"[" * 190 + b"1" + b"]" * 190 + b",", 2 * (MAX_VALUES - 5 * SPARE)),
    "more values than a body may have": lambda: padded(b"[],", MAX_BODY_BYTES),
    "updates of one commit": lambda: dumps(
        {"updates": [{"action": "set-properties", "updates": {f"k{number}": "v"}} for number in range(MAX_UPDATES)]}
    ),
}
"""Bodies of a commit."""


def _metadata(unit: bytes, each: int, values: int | None = None) -> Grow:
    """A field of values, as many as the bound allows unless a number is given."""

    def grown(document: bytes, max_bytes: int = MAX_METADATA_BYTES) -> bytes:
        count = max_metadata_values(max_bytes) - 2_000 if values is None else values
        return document[:-1] + b',"x":[' + unit * (count // each) + b"1]}"

    return grown


def _strings(length: int) -> Grow:
    """Strings of escapes, which take longest to write, each with this many bytes at most."""

    def grown(document: bytes, max_bytes: int = MAX_METADATA_BYTES) -> bytes:
        room, parts = max_bytes - len(document) - SPARE, list[bytes]()
        while room > SPARE:
            size = min(length, room - SPARE)
            parts.append(b'"' + b"\\n" * (size // 2) + b'"')
            room -= len(parts[-1]) + 1
        return document[:-1] + b',"x":[' + b",".join(parts) + b"]}"

    return grown


def _keys(document: bytes, max_bytes: int = MAX_METADATA_BYTES) -> bytes:
    count = (max_metadata_values(max_bytes) - 2_000) // 2
    return document[:-1] + b',"x":[' + b",".join(b'{"k%07d":1}' % number for number in range(count)) + b"]}"


METADATA: Mapping[str, Grow] = {
    "empty arrays": _metadata(b"[],", 2),
    "objects of one, each with its own name": _keys,
    "short strings": _metadata(b'"abc",', 1),
    "arrays within each other": _metadata(b"[" * 500 + b"]" * 500 + b",", 501),
    "strings of 8 MB": _strings((8 << 20) - 2),
    "one string": _strings(MAX_METADATA_BYTES),
    "45 MB of empty arrays": _metadata(b"[],", 2, 30_000_000),
}
"""What a metadata file is replaced with: each is given the bytes of a valid one, and how many bytes it may have. The
last is beyond the bounds."""


def unpacking_to_more() -> bytes:
    """A gzip file of half a megabyte that unpacks to eight times what a metadata file may have."""
    packer = zlib.compressobj(wbits=31)
    megabyte = bytes(1 << 20)
    return b"".join(packer.compress(megabyte) for _ in range(8 * MAX_METADATA_BYTES >> 20)) + packer.flush()


def of_empty_members() -> bytes:
    """A file of as many gzip streams, each of nothing, as a metadata file has room for."""
    member = gzip.compress(b"", mtime=0)
    return member * (MAX_METADATA_BYTES // len(member))


GZIP: Mapping[str, Make] = {"unpacks to 512 MB": unpacking_to_more, "has three million members": of_empty_members}
"""Metadata files as they are stored."""


def packed(document: bytes) -> bytes:
    """The document as gzip, as small as that goes."""
    return gzip.compress(document, 9, mtime=0)


EVENT: JsonObject = {
    "eventType": "COMPLETE",
    "eventTime": "2026-11-24T00:00:00Z",
    "run": {"runId": "01876d9b-8a3c-7a51-a1f5-0d5a6c1f3b2e"},
    "job": {"namespace": "j", "name": "j"},
    "producer": "https://example.com",
    "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
}


def event() -> bytes:
    """An OpenLineage event with as many datasets as it may have."""
    datasets: list[JsonValue] = [{"namespace": "s", "name": f"d{number}"} for number in range(MAX_DATASETS)]
    whole: JsonObject = {
        **EVENT,
        "inputs": datasets,
        "outputs": datasets,
    }
    body = dumps(whole)
    return body[:-1] + b',"x":"' + b"y" * (MAX_EVENT_BYTES - len(body) - 1_000) + b'"}'


def policy() -> bytes:
    """A policy whose content nests as deep as its length allows."""
    return dumps({"name": "p", "type": "custom", "content": "[" * MAX_CONTENT_BYTES})


def event_of_names() -> bytes:
    """An OpenLineage event whose names are as long as they may be."""
    datasets: list[JsonValue] = [{"namespace": "s", "name": f"{n}" + "d" * (MAX_NAME - 8)} for n in range(900)]
    return dumps({**EVENT, "inputs": datasets})


SEMANTIC_MODELS: Mapping[str, Make] = {
    "a text of brackets": lambda: _model("[" * MAX_MODEL_BYTES),
    "a text of small values": lambda: _model('{"a":[' + "[]," * ((MAX_MODEL_BYTES - 20) // 3) + "1]}"),
    "as many data sets as there is room for": lambda: _model(
        '{"datasets":[' + ",".join(['{"name":"d","source":"db.t"}'] * (MAX_MODEL_BYTES // 30)) + "]}"
    ),
    "more than a text may have": lambda: _model(" " * (MAX_MODEL_BYTES + 1)),
}


def _model(text: str) -> bytes:
    return dumps({"name": "m", "document": {"version": "0.1.1", "semantic_model": text}})


GOVERNANCE: Mapping[str, Make] = {
    "as many changes as a request may have": lambda: dumps(
        {f"arco.tag.{number}": None for number in range(governance.MAX_CHANGES)}
    ),
    "changes without end": lambda: dumps({f"arco.tag.{number}": "x" for number in range(200_000)}),
    "a name of 1 MB": lambda: dumps({"arco.tag." + "x" * (1 << 20): "y"}),
    "numbers of columns": lambda: dumps({f"arco.column.{'9' * 10}.tag.{number}": "x" for number in range(1_000)}),
}
TASK_BODIES: Mapping[str, Make] = {
    "properties without end": lambda: dumps(
        {"operation_type": "SYNCHRONOUS_TABLE_PURGE", "config": {f"k{number}": "v" for number in range(200_000)}}
    ),
    "levels without end": lambda: dumps({"table_identity": {"namespace_levels": ["n"] * 400_000}}),
    "brackets": lambda: b"[" * 400_000,
}
"""Bodies for the delegation service."""
