"""Refuses requests of foreign web pages, above all for a server without authentication (docs/decisions/0029).

A browser sends the requests of any web page, also to loopback. Its headers name the page's origin (`Origin`,
`Sec-Fetch-Site`) and the host name of the request (`Host`). In a DNS rebinding attack the page's own name resolves to
this machine: to the browser the origin is then the same, and only `Host` reveals the attack. Pages of other origins
cannot read a response without CORS headers, which only origins allowed by the operator get. This module rejects the
requests themselves.
"""

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from ipaddress import ip_address

from arco_catalog.iceberg.errors import Forbidden, UnsupportedMediaType

ANY = "*"
"""In the list of allowed hosts: every host name is safe, so nothing protects from DNS rebinding."""

_HOST = r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]*)(?::[0-9]{1,5})?"
_ORIGIN = r"https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?"
REMEMBERED_HOSTS = 256
REMEMBERED_HOST_BYTES = 256
_FOREIGN_SITES = ("cross-site", "same-site")


def check_page(
    headers: Mapping[str, str],
    server: str | None,
    allowed_hosts: tuple[str, ...],
    allowed_origins: tuple[str, ...] = (),
    *,
    linked: bool = False,
) -> None:
    """Raises `Forbidden` if the `Host` in these headers is not safe (`_is_allowed`), from whatever page the request
    comes, or if a web page of another origin sent the request, unless `allowed_origins` contains that origin or the
    request is `linked`: a browser opens a page that has no data. Headers that are missing are not required. `server` is
    the address at which the request arrived, None if unknown."""
    host = headers.get("host")
    if host is not None:
        allowed = _remembered if len(host) <= REMEMBERED_HOST_BYTES else _is_allowed
        if not allowed(host, server, allowed_hosts):
            raise Forbidden(
                f"The host name {host[:100]!r} in the header Host is not allowed: connect by a name that is, or let "
                "the server's operator allow this one by --allowed-host or ARCO_ALLOWED_HOSTS"
            )
    origin = headers.get("origin")
    if linked or origin in allowed_origins:
        return
    # an origin without a host, such as "null", is foreign also to a request without a host
    if origin is not None and (not host or origin.partition("://")[2].lower() != host.lower()):
        raise Forbidden(
            f"A web page of another origin ({origin[:100]!r}) may not use this catalog: the server's operator can "
            "allow the origin, if it is of http or https, by --allowed-origin or ARCO_ALLOWED_ORIGINS"
        )
    site = headers.get("sec-fetch-site")
    if site is not None and site.lower() in _FOREIGN_SITES:
        raise Forbidden(
            f"A web page of another origin may not use this catalog: the browser's header Sec-Fetch-Site is "
            f"{site[:64]!r}, and the header Origin is missing, or names no origin that the server's operator allows"
        )


def is_navigation(method: str, headers: Mapping[str, str]) -> bool:
    """Whether the request is a GET or HEAD that a browser sends to open a page, as it does if a user follows a link; by
    the headers Sec-Fetch-Mode and Sec-Fetch-Dest. No other page can read the response."""
    opens = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return opens and method in ("GET", "HEAD")


def _is_allowed(host: str, server: str | None, allowed_hosts: tuple[str, ...]) -> bool:
    """Whether a `Host` header is safe from DNS rebinding: it has an IP address, a name of loopback, or a name in
    `allowed_hosts`, which may also be `ANY`. If `allowed_hosts` is empty, every header is safe unless the request
    arrived at a loopback address (`server`)."""
    match = re.fullmatch(_HOST, host)
    name = match[1].lower().rstrip(".") if match is not None else ""
    if name and (_is_address(name) or name == "localhost" or name.endswith(".localhost")):
        return True
    if ANY in allowed_hosts or (name and name in (allowed.lower() for allowed in allowed_hosts)):
        return True
    return not allowed_hosts and not (server is not None and is_loopback(server))


_remembered = lru_cache(REMEMBERED_HOSTS)(_is_allowed)


def check_media_type(headers: Mapping[str, str], allowed: Collection[str], *, needs_body: bool) -> None:
    """Raises `UnsupportedMediaType` unless the Content-Type is one of the `allowed` types of JSON, with any parameters;
    without `needs_body` it may be missing or empty. A web page cannot send these types to another origin without a
    preflight, so the check also stops requests that a page forged."""
    given = headers.get("content-type", "").strip()
    if not given and not needs_body:
        return
    # ClickHouse sends the header twice.
    if all(part.partition(";")[0].strip().lower() in allowed for part in given.split(",")):
        return
    shown = f"not {given[:100]!r}" if given else "and none was given"
    types = " or ".join(allowed)
    without = "" if needs_body else ", or without a body leave the header out"
    raise UnsupportedMediaType(f"Content-Type must be {types}, {shown}: send the body as JSON under that type{without}")


def parse_host(text: str) -> str:
    """Returns a host name for the list of allowed hosts in lower case, or `ANY` for `*`. Raises `ValueError` if the
    text has a scheme, a port, or anything else that no host name has."""
    if text != ANY and not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", text):
        raise ValueError(f"expected a host name without scheme and port, or {ANY}, got {text!r}")
    return text.lower()


def parse_origin(text: str) -> str:
    """Returns an origin as browsers send it: scheme and host in lower case, and the port if it is not that of the
    scheme. Raises `ValueError` for any other text."""
    origin = text.lower()
    if not re.fullmatch(_ORIGIN, origin):
        raise ValueError(
            f"expected an origin, a scheme and host with the port if it has one, such as http://localhost:3000, "
            f"got {text!r}"
        )
    return origin.removesuffix(":443" if origin.startswith("https:") else ":80")


def _is_address(name: str) -> bool:
    """Whether a host is an IP address, not a name."""
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def is_loopback(address: str) -> bool:
    """Whether an IP address is a loopback address, also an IPv4 address mapped into IPv6. A text that is no address is
    not."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return found.is_loopback or (mapped is not None and mapped.is_loopback)
