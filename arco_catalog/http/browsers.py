"""Refuses requests of foreign web pages, for a server without authentication (docs/decisions/0029).

A browser sends whatever a page asks it to, to loopback too. It says where the page came from (`Origin`,
`Sec-Fetch-Site`), and which name it believes to talk to (`Host`): a page whose own name was rebound to this machine's
address is of the same origin to the browser, and gives itself away by that name alone. Without CORS headers,
which only pages of the operator's origins get, no page reads an answer of another origin; what is left is refused here.
"""

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from ipaddress import ip_address

from arco_catalog.iceberg.errors import Forbidden, UnsupportedMediaType

ANY = "*"
"""Among the allowed hosts: whatever name."""

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]*)(?::[0-9]{1,5})?")
REMEMBERED_HOSTS = 256
REMEMBERED_HOST_BYTES = 256
_FOREIGN_SITES = ("cross-site", "same-site")


def check_page(
    headers: Mapping[str, str],
    server: str | None,
    allowed_hosts: tuple[str, ...],
    allowed_origins: tuple[str, ...] = (),
) -> None:
    """Lets pass what no foreign web page can have sent, but for pages of allowed origins. `server` is the address at
    which the request arrived. Raises `Forbidden`."""
    host = headers.get("host")
    if host is not None:
        allowed = _remembered if len(host) <= REMEMBERED_HOST_BYTES else _is_allowed
        if not allowed(host, server, allowed_hosts):
            raise Forbidden(
                f"Host {host[:100]!r} is not allowed: to allow it, use --allowed-host or ARCO_ALLOWED_HOSTS"
            )
    origin = headers.get("origin")
    if origin in allowed_origins:
        return
    if origin is not None and origin.partition("://")[2].lower() != (host or "").lower():
        raise Forbidden(
            f"A web page of another origin ({origin[:100]!r}) may not use this catalog: to allow it, use "
            "--allowed-origin or ARCO_ALLOWED_ORIGINS"
        )
    site = headers.get("sec-fetch-site")
    if site is not None and site.lower() in _FOREIGN_SITES:
        raise Forbidden("A web page of another origin may not use this catalog (Sec-Fetch-Site)")


def _is_allowed(host: str, server: str | None, allowed_hosts: tuple[str, ...]) -> bool:
    """Addresses cannot be rebound. A name must be of this machine's loopback, or allowed; where none is and the request
    did not come over loopback, any will do."""
    match = _HOST.fullmatch(host)
    name = match[1].lower().rstrip(".") if match is not None else ""
    if name and (_is_address(name) or name == "localhost" or name.endswith(".localhost")):
        return True
    if ANY in allowed_hosts or (name and name in (allowed.lower() for allowed in allowed_hosts)):
        return True
    return not allowed_hosts and not (server is not None and is_loopback(server))


_remembered = lru_cache(REMEMBERED_HOSTS)(_is_allowed)


def check_media_type(headers: Mapping[str, str], allowed: Collection[str], *, needs_body: bool) -> None:
    """A body must be said to be JSON, of one of the `allowed` types: of what a page may send to another origin unasked,
    none is. Raises `UnsupportedMediaType`."""
    given = headers.get("content-type", "").strip()
    if not given and not needs_body:
        return
    # ClickHouse sends the header twice.
    if all(part.partition(";")[0].strip().lower() in allowed for part in given.split(",")):
        return
    shown = f"not {given[:100]!r}" if given else "and none was given"
    types = " or ".join(allowed)
    raise UnsupportedMediaType(f"Content-Type must be {types}, {shown}: send the body as JSON under that type")


def parse_host(text: str) -> str:
    """A name that may be allowed: without scheme and port. Raises `ValueError`."""
    if text != ANY and not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", text):
        raise ValueError(f"expected a host name without scheme and port, or {ANY}, got {text!r}")
    return text.lower()


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def is_loopback(address: str) -> bool:
    """Whether an address is loopback's; an IPv4 one may be written as an IPv6 one."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return found.is_loopback or (mapped is not None and mapped.is_loopback)
