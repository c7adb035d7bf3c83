"""Reads what a request to sign means to S3: which operation on which key. Pure functions.

Only requests that S3, a proxy and any S3-compatible server read alike are understood; all others are refused. Source:
Amazon S3 API reference.
"""

import re
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

from arco_catalog.iceberg.errors import Forbidden
from arco_catalog.state.locations import fully_decoded, is_reserved
from storage_backends.lazy_dataclass import dataclass

_ESCAPES = re.compile(r"(?:[^%]|%[0-9A-Fa-f]{2})*")
_NUMBER = re.compile(r"[0-9]{1,9}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ufffe\uffff]")
MAX_KEY_BYTES = 1_024


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of S3 that may be signed: the method, whether it is on a key or on the bucket, and whether it needs
    the right to write. A request must have all `required` query parameters, and may have the `optional` ones, and
    `x-id` with the operation's name, which some SDKs send; no other is allowed."""

    name: str
    method: str
    on_key: bool
    writes: bool
    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()

    def fits(self, method: str, on_key: bool, query: Mapping[str, str]) -> bool:
        """Whether a request to S3 is this operation, judged by its method, its query parameters, and whether it names a
        key (`on_key`)."""
        names = {name for name in query if not (name == "x-id" and query[name] == self.name)}
        shape = method == self.method and on_key == self.on_key
        return shape and self.required <= names <= self.required | self.optional


_LISTED = frozenset({"delimiter", "max-keys", "encoding-type"})
_UPLOAD = frozenset({"uploadId"})
OPERATIONS = (
    Operation("GetObject", "GET", True, False),
    Operation("HeadObject", "HEAD", True, False),
    Operation("PutObject", "PUT", True, True),
    Operation("DeleteObject", "DELETE", True, True),
    Operation("CreateMultipartUpload", "POST", True, True, frozenset({"uploads"})),
    Operation("UploadPart", "PUT", True, True, _UPLOAD | {"partNumber"}),
    Operation("CompleteMultipartUpload", "POST", True, True, _UPLOAD),
    Operation("AbortMultipartUpload", "DELETE", True, True, _UPLOAD),
    Operation("ListParts", "GET", True, True, _UPLOAD, frozenset({"max-parts", "part-number-marker"})),
    Operation("ListObjects", "GET", False, False, frozenset({"prefix"}), _LISTED | {"marker"}),
    Operation(
        "ListObjectsV2",
        "GET",
        False,
        False,
        frozenset({"prefix", "list-type"}),
        _LISTED | {"continuation-token", "start-after", "fetch-owner"},
    ),
    Operation("DeleteObjects", "POST", False, True, frozenset({"delete"})),
)
"""All operations that are signed: none on versions, ACLs, tags or policies, and none whose parameters change the form
of the answer."""

_FLAGS = frozenset({"uploads", "delete"})
_NUMBERS = frozenset({"partNumber", "max-keys", "max-parts", "part-number-marker"})


def operation_of(method: str, key: str, query: Mapping[str, str]) -> Operation:
    """Returns the operation that a request to S3 does; `key` is empty for a request about the bucket. Raises
    `Forbidden` if it may not be signed: it is none of `OPERATIONS`, or has an invalid parameter."""
    found = [operation for operation in OPERATIONS if operation.fits(method, bool(key), query)]
    if len(found) != 1 or not all(_is_valid(name, value) for name, value in query.items()):
        about = "an object" if key else "the bucket"
        raise Forbidden(
            f"Not signed: {method} of {about} is not allowed with these parameters: {sorted(query)}"[:1_000]
        )
    return found[0]


def _is_valid(name: str, value: str) -> bool:
    """Whether a query parameter of an operation may have this value."""
    match name:
        case "list-type":
            return value == "2"
        case "encoding-type":
            return value == "url"
        case "fetch-owner":
            return value in ("true", "false")
        case _ if name in _FLAGS:
            return value == ""
        case _ if name in _NUMBERS:
            return _NUMBER.fullmatch(value) is not None
    return name != "uploadId" or value != ""


def decoded(text: str) -> str:
    """Returns a part of a URL, decoded once. Raises `Forbidden` for broken escapes, for bytes that are not UTF-8, and
    for control characters, U+FFFE and U+FFFF."""
    if not _ESCAPES.fullmatch(text):
        raise Forbidden("Not signed: the URI has a % without two hexadecimal digits after it")
    try:
        plain = unquote_to_bytes(text).decode()
    except UnicodeDecodeError as error:
        raise Forbidden("Not signed: the URI, without its escapes, is not UTF-8") from error
    if _CONTROL.search(plain):
        raise Forbidden("Not signed: the URI has a control character, U+FFFE or U+FFFF")
    return plain


def parameters_of(query: str) -> dict[str, str]:
    """Reads the parameters in a query string. Raises `Forbidden` for a parameter that is there twice or has no name,
    and for a query that servers read differently."""
    if "+" in query or ";" in query:  # a space or a plus; a separator or a semicolon
        raise Forbidden("Not signed: + and ; must be escaped in the query of the URI")
    read: dict[str, str] = {}
    for part in query.split("&") if query else ():
        name, _, value = part.partition("=")
        name, value = decoded(name), decoded(value)
        if not name or name in read:
            raise Forbidden("Not signed: a parameter in the query of the URI is there twice, or has no name")
        read[name] = value
    return read


def check_key(key: str) -> None:
    """Raises `Forbidden` for a key, or a prefix of a LIST, for which no request is signed: one that is empty or too
    long, that a proxy or server might read as another one (with empty segments, backslashes, control characters, `.` or
    `..`, however often it is decoded), or that is in the state of a catalog."""
    if len(key.encode()) > MAX_KEY_BYTES:
        raise Forbidden(f"Not signed: the key or prefix of the objects is longer than {MAX_KEY_BYTES:,} bytes")
    segments = key.removesuffix("/").split("/")
    for segment in segments:
        plain = fully_decoded(segment)
        parts = re.split(r"[/\\]", plain)
        if not segment or "\\" in segment or _CONTROL.search(plain) or any(part in (".", "..") for part in parts):
            raise Forbidden(f"Not signed: servers may read a key with the segment {segment!r} differently"[:1_000])
        if any(is_reserved(part) for part in parts):
            raise Forbidden("Not signed: the key lies in a catalog's own state, which no client may access")
