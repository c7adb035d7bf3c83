"""The worst documents that each bound of docs/bounds.md lets through, and some beyond it. `make bench-hostile` sends
them; tests/docs/test_bounds.py holds them to their bounds."""

import gzip
import zlib
from collections.abc import Callable, Mapping

from arco_catalog.authentication.claims import MAX_TOKEN
from arco_catalog.http.options import MAX_BODY_BYTES
from arco_catalog.http.requests import MAX_VALUES
from arco_catalog.iceberg.commit import MAX_UPDATES
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.operations.lineage import MAX_EVENT_BYTES
from arco_catalog.operations.policies.policies import MAX_CONTENT_BYTES
from arco_catalog.state.lineage import MAX_DATASETS
from arco_catalog.state.memory import MAX_METADATA_BYTES, max_metadata_values
from arco_catalog.upkeep.purge.avro import MAX_BLOCK_BYTES, MAX_FILE_RECORDS
from tools.support.avro_files import avro_file, varint

Make = Callable[[], bytes]
SPARE = 64
"""Values, and bytes, that are left for what stands around the repeated part."""
METADATA_VALUES = max_metadata_values(MAX_METADATA_BYTES)


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


def _metadata(unit: bytes, values: int, each: int) -> Callable[[bytes], bytes]:
    def grown(document: bytes) -> bytes:
        return document[:-1] + b',"x":[' + unit * ((values - 2_000) // each) + b"1]}"

    return grown


def _long(document: bytes) -> bytes:
    room = MAX_METADATA_BYTES - len(document) - SPARE
    return document[:-1] + b',"x":"' + b"\\n" * (room // 2) + b'"}'


def _keys(document: bytes) -> bytes:
    members = b",".join(b'{"k%07d":1}' % number for number in range((METADATA_VALUES - 2_000) // 2))
    return document[:-1] + b',"x":[' + members + b"]}"


METADATA: Mapping[str, Callable[[bytes], bytes]] = {
    "empty arrays": _metadata(b"[],", METADATA_VALUES, 2),
    "objects of one, each with its own name": _keys,
    "short strings": _metadata(b'"abc",', METADATA_VALUES, 1),
    "arrays within each other": _metadata(b"[" * 500 + b"]" * 500 + b",", METADATA_VALUES, 501),
    "one string": _long,
    "45 MB of empty arrays": _metadata(b"[],", 30_000_000, 2),
}
"""What a metadata file is replaced with: each is given the bytes of a valid one. The last is beyond the bounds."""


def unpacking_to_more() -> bytes:
    """A gzip file of half a megabyte that unpacks to eight times what a metadata file may have."""
    packer = zlib.compressobj(wbits=31)
    megabyte = bytes(1 << 20)
    return b"".join(packer.compress(megabyte) for _ in range(8 * MAX_METADATA_BYTES >> 20)) + packer.flush()


def packed(document: bytes) -> bytes:
    """The document as gzip, as small as that goes."""
    return gzip.compress(document, 9, mtime=0)


MANIFESTS: JsonObject = {
    "type": "record",
    "name": "manifest_file",
    "fields": [{"name": "manifest_path", "type": "string"}, {"name": "manifest_length", "type": "long"}],
}


def avro(schema: JsonObject, blocks: list[tuple[int, bytes]]) -> bytes:
    """A file of blocks packed with deflate, each with the number of records that it states."""
    return avro_file(schema, [(count, _deflated(data)) for count, data in blocks], "deflate")


def _deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


LISTS: Mapping[str, Make] = {
    "as many records as a file may have, of two bytes": lambda: avro(
        MANIFESTS, [(1_000_000, bytes(2_000_000))] * (MAX_FILE_RECORDS // 1_000_000)
    ),
    "blocks of 64 MB in records of 4 MB": lambda: avro(
        MANIFESTS, [(16, (varint((4 << 20) - 5) + b"x" * ((4 << 20) - 5) + b"\0") * 16)] * 8
    ),
    "a block that unpacks to more than it may": lambda: avro(MANIFESTS, [(1, bytes(2 * MAX_BLOCK_BYTES))]),
    "a count of a billion": lambda: avro(MANIFESTS, [(10**9, b"\0\0")]),
}
"""Manifest lists of a table whose files are purged."""


def event() -> bytes:
    """An OpenLineage event with as many datasets as it may have."""
    datasets: list[JsonValue] = [{"namespace": "s", "name": f"d{number}"} for number in range(MAX_DATASETS)]
    whole: JsonObject = {
        "eventType": "COMPLETE",
        "eventTime": "2026-11-24T00:00:00Z",
        "run": {"runId": "01876d9b-8a3c-7a51-a1f5-0d5a6c1f3b2e"},
        "job": {"namespace": "j", "name": "j"},
        "producer": "https://example.com",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "inputs": datasets,
        "outputs": datasets,
    }
    body = dumps(whole)
    return body[:-1] + b',"x":"' + b"y" * (MAX_EVENT_BYTES - len(body) - 1_000) + b'"}'


def policy() -> bytes:
    """A policy whose content nests as deep as its length allows."""
    return dumps({"name": "p", "type": "custom", "content": "[" * MAX_CONTENT_BYTES})


def tokens() -> list[str]:
    """Tokens of the greatest length: brackets, blanks, dots, and a signature that is all there is."""
    return ["W1tb" * (MAX_TOKEN // 4), "e30." * (MAX_TOKEN // 4), "." * MAX_TOKEN, f"e30.{'W1tb' * 4_000}.AAAA"]
