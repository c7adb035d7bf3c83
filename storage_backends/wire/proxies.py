"""Chooses the proxy for a request by the usual environment variables: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`,
`NO_PROXY`.

There is no standard. As in curl, a name in lower case comes first; as in Go, requests to this machine never use a
proxy.
"""

from collections.abc import Mapping
from dataclasses import field
from ipaddress import ip_address, ip_network

from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Proxies:
    """URLs of proxies for the two schemes, and the hosts that are reached without one. URLs may hold passwords."""

    https: str = field(default="", repr=False)
    http: str = field(default="", repr=False)
    exceptions: tuple[str, ...] = ()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Proxies":
        """Reads the proxies from the environment variables, in lower or upper case. A scheme without a variable of its
        own has the proxy of `ALL_PROXY`."""
        everywhere = _read(environment, "all_proxy")
        exceptions = (part.strip().lower() for part in _read(environment, "no_proxy").split(","))
        return cls(
            _read(environment, "https_proxy") or everywhere,
            _read(environment, "http_proxy") or everywhere,
            tuple(part for part in exceptions if part),
        )

    def proxy_for(self, *, tls: bool, host: str, port: int) -> str:
        """Returns the URL of the proxy on the way to a server, empty if there is none."""
        proxy = self.https if tls else self.http
        return "" if not proxy or self._is_direct(host.lower(), port) else proxy

    def _is_direct(self, host: str, port: int) -> bool:
        """Whether a host and port are called without a proxy, because `NO_PROXY` covers them or the host is this
        machine."""
        if host == "localhost" or _is_loopback(host):
            return True
        return any(_covers(exception, host, port) for exception in self.exceptions)


NO_PROXIES = Proxies()


def _read(environment: Mapping[str, str], name: str) -> str:
    """Returns the value of the environment variable with this name in lower case, or else in upper case; empty if
    neither is set."""
    return (environment.get(name) or environment.get(name.upper()) or "").strip()


def _covers(exception: str, host: str, port: int) -> bool:
    """Whether an entry of `NO_PROXY` covers a host and port: `*`, a name with all names below it, an address or a
    network. A name or an IPv4 address may have a port."""
    if exception == "*":
        return True
    if "/" in exception:
        return _is_in(exception, host)
    name, colon, text = exception.rpartition(":")
    if colon and text.isdigit() and ":" not in name:
        if int(text) != port:
            return False
        exception = name
    name = exception.removeprefix("*").removeprefix(".")
    return host == name or host.endswith(f".{name}")


def _is_in(network: str, host: str) -> bool:
    """Whether a host is an address in a network."""
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False


def _is_loopback(host: str) -> bool:
    """Whether a host is a loopback address; False for a name, which is not resolved, also for `localhost`."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
