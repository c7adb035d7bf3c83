"""A request that a client sends for signing, and the answer (Iceberg REST specification, `RemoteSignRequest` and
`RemoteSignResult`)."""

from collections.abc import Mapping
from dataclasses import field

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.shapes import quoted
from storage_backends.lazy_dataclass import dataclass

NO_CACHE = {"Cache-Control": "no-cache"}
"""The header of every answer: Iceberg's client keeps a signature that is `private`, for any request to the same URL."""

_METHODS = ("PUT", "GET", "HEAD", "POST", "DELETE")


@dataclass(frozen=True, slots=True)
class SignRequest:
    """A client's request to sign a request to S3. Names of headers are in lower case, the method is in upper case.
    `body` is None if the client sent none with it; only DeleteObjects needs it."""

    region: str
    uri: str
    method: str
    headers: Mapping[str, tuple[str, ...]]
    body: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, document: JsonValue) -> "SignRequest":
        """Reads the JSON body of a client's request to sign. Raises `BadRequest` if it is invalid, or names a provider
        other than `s3`."""
        if not isinstance(document, dict):
            raise BadRequest("A request to sign must be an object")
        if document.get("provider") not in (None, "s3"):
            raise BadRequest("Only requests to S3 are signed: provider must be s3, or missing")
        body = document.get("body")
        if body is not None and not isinstance(body, str):
            raise BadRequest("body of a request to sign must be a string")
        method = _text(document, "method").upper()
        if method not in _METHODS:
            raise BadRequest(f"method of a request to sign must be one of {', '.join(_METHODS)}, not {quoted(method)}")
        return cls(_text(document, "region"), _text(document, "uri"), method, _headers(document), body)


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """The answer to a request for a signature: the URI to send the request to, and the headers to add to it, without
    any that the request has already: some clients would send them twice. `writes` is whether the request needs the
    right to write."""

    uri: str
    writes: bool
    headers: Mapping[str, str] = field(repr=False)

    @property
    def json(self) -> JsonObject:
        """The signed request as JSON, in the form of the Iceberg REST specification: a header has a list of values."""
        return {"uri": self.uri, "headers": {name: [value] for name, value in self.headers.items()}}


def _text(document: JsonObject, name: str) -> str:
    """Returns a required text in a request to sign. Raises `BadRequest` if it is missing, empty or no text."""
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise BadRequest(f"{name} of a request to sign must be a string that is not empty")
    return value


def _headers(document: JsonObject) -> dict[str, tuple[str, ...]]:
    """Returns the headers in a request to sign, by lower-case name. Raises `BadRequest` if they are missing or
    malformed, or a name occurs twice."""
    given = document.get("headers")
    if not isinstance(given, dict):
        raise BadRequest("headers of a request to sign must be an object")
    read: dict[str, tuple[str, ...]] = {}
    for name, values in given.items():
        if name.lower() in read:
            raise BadRequest(f"headers of a request to sign must have {name!r} once: upper and lower case are one name")
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise BadRequest(f"headers of a request to sign must have an array of strings for {name!r}")
        read[name.lower()] = tuple(str(value) for value in values)
    return read
