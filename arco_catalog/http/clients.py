"""What a request says of itself and may be repeated: ids and products, never free text."""

import re
from collections.abc import Mapping
from functools import lru_cache

from arco_catalog.http.asgi import Scope
from arco_catalog.telemetry.request_log import TraceParent

_ID = re.compile(r"[A-Za-z0-9_=+/.:-]{1,128}")
_PRODUCT = re.compile(r"(?<![^\s(;])[A-Za-z][A-Za-z0-9._-]{0,39}/v?[0-9][A-Za-z0-9.+_-]{0,31}")
_ICEBERG = re.compile(r"Apache Iceberg ([0-9][A-Za-z0-9.+_-]{0,31})(?![^\s])")
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"))
_UNPRINTABLE = re.compile(r"[^!-~]")
MAX_PRODUCTS = 4
MAX_AGENT = 512
"""Characters of a User-Agent that are looked at."""
MAX_PATH = 512


def method(text: str) -> str:
    """A method of HTTP's own; a client may send any text as one."""
    return text if text in _METHODS else "other"


def path(raw: bytes) -> str:
    """A path as it was sent, without its query, for people: nothing in it speaks to a terminal."""
    return _UNPRINTABLE.sub("?", raw[:MAX_PATH].decode("latin-1"))


def request_id(scope: Scope, headers: Mapping[str, str]) -> str | None:
    """The id by which the client knows the request, else the one that API Gateway gave it. What does not look like one
    is none."""
    return _id(headers.get("x-request-id")) or _id(_gateway(scope).get("requestId"))


def invocation(scope: Scope) -> str | None:
    """The id by which Lambda's own lines call this invocation."""
    return _id(getattr(scope.get("aws.context"), "aws_request_id", None))


def trace_parent(headers: Mapping[str, str]) -> TraceParent | None:
    """The W3C header that ties a request to its caller's trace, and the trace's id in it."""
    text = headers.get("traceparent")
    match = None if text is None else _TRACEPARENT.fullmatch(text.strip())
    return None if match is None else TraceParent(match[0], match[1])


def client_info(headers: Mapping[str, str]) -> str | None:
    """Products and versions of the client: those of its User-Agent and, of a Java client, whose User-Agent is that of
    its HTTP library whatever engine it is part of, the version of Iceberg."""
    named, version = products(headers.get("user-agent")), headers.get("x-client-version")
    iceberg = None if version is None else _ICEBERG.match(version[:MAX_AGENT])
    if iceberg is None:
        return named
    return f"{named or ''} Iceberg/{iceberg[1]}".lstrip()


def products(user_agent: str | None) -> str | None:
    """The products with versions that a User-Agent names. The rest of it is free text, and not repeated."""
    return _products((user_agent or "")[:MAX_AGENT])


@lru_cache(maxsize=256)  # keys of bounded length
def _products(user_agent: str) -> str | None:
    found = _PRODUCT.findall(user_agent)[:MAX_PRODUCTS]
    return " ".join(found) or None


def _gateway(scope: Scope) -> Mapping[str, object]:
    event = scope.get("aws.event")
    context = event.get("requestContext") if isinstance(event, dict) else None
    return context if isinstance(context, dict) else {}


def _id(text: object) -> str | None:
    return text if isinstance(text, str) and _ID.fullmatch(text) else None
