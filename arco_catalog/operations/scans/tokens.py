"""The ids of plans, and plan tasks: what a client sends back so that any process can go on with the plan. They name no
file, and prove nothing: every field is checked, and rights are evaluated at each use
(docs/design/scan-planning.md#tokens)."""

import base64
import binascii
import hashlib
import struct
import zlib
from collections.abc import Iterable
from typing import Final, NamedTuple

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonValue, MalformedJson, dumps, loads
from arco_catalog.iceberg.scan_request import Scan
from arco_catalog.iceberg.shapes import ANY, BOOLEAN, INT, LONG, Shape, ShapeError, list_of
from arco_catalog.state.runtime import is_ulid
from storage_backends.lazy_dataclass import dataclass

LIFETIME_S: Final = 24 * 3600
"""How long a token is valid."""
AHEAD_S: Final = 300
"""How far the clock of the process that issued a token may be ahead."""
MAX_TOKEN: Final = 512
"""Maximum characters of a token: a plan id is a segment of paths."""
MAX_INLINE: Final = 300
"""Maximum bytes of a compressed request that a token contains. Tokens name a longer one by its hash."""
MAX_REQUEST_BYTES: Final = 4 << 20
"""Maximum bytes of a request in a token or in the store, unpacked."""
MAX_STORED: Final = 512 << 10
"""Maximum bytes of a compressed request that is stored."""
_BEST_BYTES: Final = 8 << 10
"""Bytes of a request up to which it is compressed as well as can be, which takes microseconds a byte."""

_HEAD: Final = struct.Struct(">B26sI?q")
_RANGE: Final = struct.Struct(">6I")
_VERSION: Final = 1
_HASH_BYTES: Final = 32
_INLINE, _STORED = b"\x00", b"\x01"


class InvalidToken(Exception):
    """A text is no plan id or plan task that this catalog issued, or it is not valid for the table, or not any more."""


class Position(NamedTuple):
    """A place in a scan: the number of the manifest list in the order in which the scan reads them, then that of the
    manifest in the list, and of the entry in the manifest."""

    list: int = 0
    manifest: int = 0
    entry: int = 0


class Range(NamedTuple):
    """A part of a scan, from the position `start` up to `end`, without it."""

    start: Position
    end: Position


MAX_NUMBER: Final = (1 << 32) - 1
WHOLE: Final = Range(Position(), Position(MAX_NUMBER, MAX_NUMBER, MAX_NUMBER))
"""The range of a whole scan."""


@dataclass(frozen=True, slots=True)
class Token:
    """The content of a plan id or of a plan task: the entity id of the table, when it was issued in seconds since 1970,
    the snapshot (None for a table without one), and `request`, the compressed bytes of the rest of the scan: the text
    contains them, or names long ones, which are stored, by a hash. A plan task has a `range`, a plan id None."""

    entity: str
    issued_s: int
    snapshot_id: int | None
    request: bytes
    range: Range | None = None

    @property
    def is_stored(self) -> bool:
        """Whether the rest of the scan is in the store, under the hash of its bytes."""
        return len(self.request) > MAX_INLINE

    @property
    def text(self) -> str:
        """The text of this plan id, or plan task if it has a range, as clients get it: base64 that a path may have."""
        return self._texts([self.range])[0]

    def tasks(self, parts: Iterable[Range]) -> list[str]:
        """Returns the plan tasks for these parts of the scan, as clients get them."""
        return self._texts(parts)

    def _texts(self, parts: Iterable[Range | None]) -> list[str]:
        """Returns the texts of plan tasks for these parts of the scan, and of the plan id for None, with the other
        fields of this token."""
        is_null = self.snapshot_id is None
        head = _HEAD.pack(_VERSION, self.entity.encode(), self.issued_s, is_null, self.snapshot_id or 0)
        request = _STORED + hashlib.sha256(self.request).digest() if self.is_stored else _INLINE + self.request
        places = [b"" if part is None else _RANGE.pack(*part.start, *part.end) for part in parts]
        texts = (base64.urlsafe_b64encode(head + bytes([len(place)]) + place + request) for place in places)
        return [text.decode().rstrip("=") for text in texts]


class ReceivedToken(NamedTuple):
    """A token that a client sent: the fields are those of `Token`, but for a stored request `request` has the bytes of
    the hash, and `digest` the hash in hexadecimal. Otherwise `digest` is None."""

    entity: str
    issued_s: int
    snapshot_id: int | None
    range: Range | None
    request: bytes
    digest: str | None

    def check(self, entity: str, now_s: int, *, is_task: bool) -> None:
        """Raises `InvalidToken` if the token is of another table, older than `LIFETIME_S`, issued more than `AHEAD_S`
        in the future, or a plan id where a plan task is expected, or the reverse."""
        if self.entity != entity:
            raise InvalidToken("the plan is of another table, or of an earlier one of this name: plan the scan again")
        if not now_s - LIFETIME_S <= self.issued_s <= now_s + AHEAD_S:
            raise InvalidToken("the plan has expired, or has a time in the future: plan the scan again")
        if is_task != (self.range is not None):
            raise InvalidToken("a plan id was sent as a plan task, or a plan task as a plan id")


def read_token(text: str) -> ReceivedToken:
    """Reads a token that a client sent. Checks only its form: not its age, nor whether its table exists. Raises
    `InvalidToken` for every other text."""
    if len(text) > MAX_TOKEN:
        raise InvalidToken(f"plan ids and plan tasks of this catalog have at most {MAX_TOKEN} characters")
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        version, entity, issued_s, is_null, snapshot_id = _HEAD.unpack_from(data)
        place_bytes = data[_HEAD.size]
    except (binascii.Error, ValueError, struct.error, IndexError):
        raise InvalidToken("this catalog did not issue it for a scan: plan the scan again") from None
    place, rest = data[_HEAD.size + 1 :][:place_bytes], data[_HEAD.size + 1 + place_bytes :]
    form, request = rest[:1], rest[1:]
    name = entity.decode("latin-1")
    if version != _VERSION or not is_ulid(name) or form not in (_INLINE, _STORED) or (is_null and snapshot_id):
        raise InvalidToken("this catalog did not issue it for a scan: plan the scan again")
    if len(request) != _HASH_BYTES if form == _STORED else len(request) > MAX_INLINE:
        raise InvalidToken("this catalog did not issue it for a scan: plan the scan again")
    digest = request.hex() if form == _STORED else None
    return ReceivedToken(name, issued_s, None if is_null else snapshot_id, _range(place), request, digest)


def _range(place: bytes) -> Range | None:
    """Reads the part of a scan in a token; None for the whole plan. Raises `InvalidToken`."""
    if not place:
        return None
    if len(place) != _RANGE.size:
        raise InvalidToken("this catalog did not issue it for a scan: plan the scan again")
    numbers = _RANGE.unpack(place)
    found = Range(Position(*numbers[:3]), Position(*numbers[3:]))
    if found.start >= found.end:
        raise InvalidToken("the plan task names no part of a scan: plan the scan again")
    return found


# The rest of a scan, which a token contains, or which is stored.


def pack_scan(scan: Scan, day: int) -> bytes:
    """Returns the compressed bytes of a scan without its snapshot. Bytes too long for a token, or of more than
    `_BEST_BYTES` unpacked, have the `day` since 1970 in them, so that the object with these bytes is no older than a
    day when a token names it. Raises `BadRequest` for a scan that is too long."""
    fields = _fields(scan)
    plain = dumps(fields)
    if len(plain) <= _BEST_BYTES and len(packed := zlib.compress(plain, 9)) <= MAX_INLINE:
        return packed
    plain = dumps([*fields, day])
    if len(plain) > MAX_REQUEST_BYTES:
        raise BadRequest(
            f"The filter of a scan, with the columns of stats-fields, may have at most {MAX_REQUEST_BYTES:,} bytes of "
            "JSON"
        )
    packed = zlib.compress(plain, 1)
    if len(packed) > MAX_STORED:
        raise BadRequest(
            f"The filter of a scan, with the columns of stats-fields, may have at most {MAX_STORED:,} bytes, "
            "compressed: use a shorter filter, or let the client plan its scans (scan-planning-mode=client)"
        )
    return packed


def unpack_scan(packed: bytes, snapshot_id: int | None) -> Scan:
    """Returns the scan of these compressed bytes at a snapshot. Raises `InvalidToken` for other bytes."""
    inflate = zlib.decompressobj()
    try:
        document = loads(inflate.decompress(packed, MAX_REQUEST_BYTES))
        if not inflate.eof or inflate.unused_data or not isinstance(document, list):
            raise InvalidToken("this catalog did not issue it for a scan: plan the scan again")
        schema_id, after, filter_, case_sensitive, columns, min_rows, *_ = document
        return Scan(
            snapshot_id,
            INT(schema_id),
            _nullable(LONG, after),
            ANY(filter_),
            BOOLEAN(case_sensitive),
            tuple(list_of(INT)(columns)),
            _nullable(LONG, min_rows),
        )
    except (zlib.error, MalformedJson, ShapeError, ValueError):
        raise InvalidToken("this catalog did not issue it for a scan: plan the scan again") from None


def _fields(scan: Scan) -> list[JsonValue]:
    """Returns the fields of a scan without the snapshot, in the order in which they are stored."""
    columns: list[JsonValue] = [*scan.stats_columns]
    return [scan.schema_id, scan.after, scan.filter, scan.case_sensitive, columns, scan.min_rows]


def _nullable(shape: Shape[int], value: JsonValue) -> int | None:
    """Returns None for a JSON null, else the value, which must pass this check."""
    return None if value is None else shape(value)
