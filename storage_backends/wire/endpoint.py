"""The address of a store: a value, and the parsing of its URL."""

from urllib.parse import SplitResult, urlsplit

from storage_backends.base import StoreError
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a store's server. `authority` is the value of the header `host`; `path` is the prefix of every
    request's path."""

    tls: bool
    host: str
    port: int
    authority: str
    path: str

    @property
    def origin(self) -> str:
        """The URL of the server without a path."""
        return f"{'https' if self.tls else 'http'}://{self.authority}"

    @property
    def url(self) -> str:
        """The URL of the server with the path that is before each request's path."""
        return self.origin + self.path


def parse_endpoint(url: str, vendor: str) -> Endpoint:
    """Returns the endpoint that a URL names; its path has no slash at its end. Raises `StoreError`, with the name of
    the vendor in it, for what is not `http(s)://host[:port][/path]`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:  # brackets that do not close, ports that are no numbers
        raise StoreError(f"no {vendor} client can be made: invalid endpoint URL {url!r}: {error}") from error
    more = "@" in parts.netloc or parts.query or parts.fragment
    if parts.scheme not in ("http", "https") or not parts.hostname or more:
        raise StoreError(
            f"no {vendor} client can be made: expected an endpoint http(s)://host[:port][/path], got {url!r}"
        )
    tls = parts.scheme == "https"
    usual = 443 if tls else 80
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    authority = host if port in (None, usual) else f"{host}:{port}"
    return Endpoint(tls, parts.hostname, port or usual, authority, parts.path.rstrip("/"))


def target_of(parts: SplitResult) -> str:
    """Returns the path and the query of a URL, as a request line has them."""
    return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
