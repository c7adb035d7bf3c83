"""Reads the parts of a request that logs may contain: its method, path and ids, and the client's products. Other text
that the client chose is left out."""

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
"""Products are searched in this many characters of a User-Agent."""
MAX_PATH = 512
"""Maximum bytes of a path in a log."""


def method(text: str) -> str:
    """Returns the method if HTTP defines it, otherwise `other`: a client may send any text as a method."""
    return text if text in _METHODS else "other"


def path(raw: bytes) -> str:
    """Returns the first `MAX_PATH` bytes of a path as sent, with `?` for every space and every byte that is not
    printable ASCII, so that it cannot control a terminal."""
    return _UNPRINTABLE.sub("?", raw[:MAX_PATH].decode("latin-1"))


def request_id(scope: Scope, headers: Mapping[str, str]) -> str | None:
    """Returns the client's `X-Request-Id`, or else the request id of API Gateway; None if neither has the form of an
    id: at most 128 ASCII letters, digits and characters of `_=+/.:-`."""
    return _id(headers.get("x-request-id")) or _id(_gateway(scope).get("requestId"))


def invocation(scope: Scope) -> str | None:
    """Returns the request id of the Lambda invocation, which the log lines of Lambda contain; None outside of
    Lambda."""
    return _id(getattr(scope.get("aws.context"), "aws_request_id", None))


def trace_parent(headers: Mapping[str, str]) -> TraceParent | None:
    """Returns the W3C `traceparent` header and the trace id in it; None if the header is missing or malformed, or has
    the trace id of zeros."""
    text = headers.get("traceparent")
    match = None if text is None else _TRACEPARENT.fullmatch(text.strip())
    return None if match is None else TraceParent(match[0], match[1])


def client_info(headers: Mapping[str, str]) -> str | None:
    """Returns the client's products and versions: those of its User-Agent and, for Iceberg's Java client, the version
    of Iceberg from `X-Client-Version`, because its User-Agent names only its HTTP library. None if there are none."""
    named, version = products(headers.get("user-agent")), headers.get("x-client-version")
    iceberg = None if version is None else _ICEBERG.match(version[:MAX_AGENT])
    if iceberg is None:
        return named
    return f"{named or ''} Iceberg/{iceberg[1]}".lstrip()


def products(user_agent: str | None) -> str | None:
    """Returns the products with versions, separated by spaces, that the first `MAX_AGENT` characters of a User-Agent
    name, at most `MAX_PRODUCTS`, without the free text around them; None if they name none."""
    return _products((user_agent or "")[:MAX_AGENT])


@lru_cache(maxsize=256)  # keys of bounded length
def _products(user_agent: str) -> str | None:
    """Returns the products and versions that a User-Agent names, up to `MAX_PRODUCTS`; None without any."""
    found = _PRODUCT.findall(user_agent)[:MAX_PRODUCTS]
    return " ".join(found) or None


def _gateway(scope: Scope) -> Mapping[str, object]:
    """Returns the context that an API gateway has added to the event of a function; empty without one."""
    event = scope.get("aws.event")
    context = event.get("requestContext") if isinstance(event, dict) else None
    return context if isinstance(context, dict) else {}


def _id(text: object) -> str | None:
    """Returns the text if it is a valid id of a request, else None."""
    return text if isinstance(text, str) and _ID.fullmatch(text) else None
