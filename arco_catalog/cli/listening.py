"""Opens a server's sockets and displays the start-up message."""

import errno
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from arco_catalog.authentication.setup import NONE
from arco_catalog.cli.client_config import Login, client_config
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.server_options import ServerOptions
from arco_catalog.http.browsers import is_loopback
from arco_catalog.state.restoration import describe_copy

BACKLOG = 1024
ATTEMPTS = 100
RETRY_SECONDS = 0.05
"""A start tries for five seconds to bind an address in use: workers of a killed server free it within that time."""
REALM_HEADER = "Polaris-Realm"


class AddressError(CliError):
    """A server cannot listen at its address."""


def listen(host: str, port: int) -> socket.socket:
    """Opens a socket that listens at the address, by IPv4 if the host name has both. Raises `AddressError` if that is
    impossible, or the address stays in use for five seconds."""
    return listen_together(host, port, 1)[0]


def listen_together(host: str, port: int, count: int) -> Sequence[socket.socket]:
    """Opens `count` sockets that listen at one address, by IPv4 if the host name has both; the kernel gives each
    connection to one of them. Raises `AddressError` as `listen` does.

    If there is more than one, they share the address. A first socket is bound without sharing and closed, so that an
    address in use by another program is an error even if that program shares it."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = min(found, key=lambda info: info[0] != socket.AF_INET)
        alone = _bind(str(address[0]), int(address[1]), family)
        if count == 1:
            return (alone,)
        with alone:
            address = alone.getsockname()
        return [
            socket.create_server(address[:2], family=family, backlog=BACKLOG, reuse_port=True) for _ in range(count)
        ]
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (while attempting")[0]
        raise AddressError(f"cannot listen on {host} port {port}: {why}") from error


def _bind(host: str, port: int, family: int) -> socket.socket:
    """Opens a socket that listens at an address and does not share it. While the address is in use, blocks and retries
    for `ATTEMPTS` times `RETRY_SECONDS`; blocking is harmless because nothing else runs at this point of the start.
    Raises `OSError` after that, and at once for any other failure."""
    for _ in range(ATTEMPTS):
        try:
            return socket.create_server((host, port), family=family, backlog=BACKLOG)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        time.sleep(RETRY_SECONDS)
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


@dataclass(frozen=True, slots=True)
class StoreReport:
    """The facts about a server's store for the start-up message: why the catalog is read-only if it is, the
    capabilities that the store lacks, whether it has a realm, the URI of the original if the catalog is a copy, a
    summary of the contents, and a warning if the rules for idempotency keys in the catalog's record differ from the
    server's variables. If the state could not be read, `copy_of` and `contents` are None."""

    read_only_because: str | None
    lacks: Sequence[str]
    has_realm: bool = False
    copy_of: str | None = None
    contents: str | None = None
    key_warning: str | None = None


def announce(
    options: ServerOptions,
    listener: socket.socket,
    store: StoreReport,
    *,
    quiet: bool,
    console: bool,
    workers: str | None = None,
    metrics: str | None = None,
) -> None:
    """Displays the start-up message: warnings on stderr; on stdout the server's URI, what the store has, on a loopback
    address how clients authenticate, the hint for further realms, the line `workers` if there is one, the URI of the
    `console` if it is served, that of `metrics` if there is one, and the configuration of engines. If `quiet`, it
    prints only the URI and the warnings."""
    uri = uri_of(listener, tls=options.tls_cert is not None) + options.base_path
    if store.read_only_because is not None:
        print(f"arco: this catalog is READ-ONLY: {store.read_only_because}", file=sys.stderr)
    for capability in store.lacks:
        print(f"arco: the store does not support {capability}", file=sys.stderr)
    if store.copy_of is not None:
        print(f"arco: {describe_copy(store.copy_of)}", file=sys.stderr)
    if store.key_warning is not None:
        print(f"arco: {store.key_warning}", file=sys.stderr)
    what = _realms(options.realm) if store.has_realm else f"the warehouse {options.warehouse!r} of"
    print(f"Arco serves {what} {options.store} at {uri} (Ctrl-C stops it)")
    if store.contents is not None and not quiet:
        print(store.contents)
    methods = [method for method in options.auth if method != NONE]
    exposed = not is_loopback(listener.getsockname()[0])
    if exposed:
        warning = _exposed(methods, store.has_realm, tls=options.tls_cert is not None)
        if warning is not None:
            print(f"arco: {warning}", file=sys.stderr)
    elif not quiet:
        print(_on_loopback(methods, store.has_realm))
    if len(options.realm) > 1 and not quiet:
        print(_in_other_realms(options.realm))
    if workers is not None and not quiet:
        print(workers)
    if console and not quiet:
        print(f"The console, for browsers, is at {uri}/ui")
    if metrics is not None and not quiet:
        print(f"Metrics for Prometheus are at {metrics}")
    if not quiet:
        print(f"\n{client_config(uri, options.warehouse, options.store, options.environment, Login.of(methods))}\n")
    sys.stdout.flush()


def _realms(names: Sequence[str]) -> str:
    """Returns the words for the served realms, to stand before the store's URL: their names, or `the realm in` if the
    options name none."""
    return f"the realm{'s' * (len(names) > 1)} {', '.join(map(repr, names))} of" if names else "the realm in"


def _in_other_realms(names: Sequence[str]) -> str:
    """Returns how clients select another realm than the first."""
    return (
        f"These settings are for the realm {names[0]!r}; for another one, such as {names[1]!r}, add its name as the "
        f"header {REALM_HEADER}: header.{REALM_HEADER}={names[1]} for Spark and PyIceberg"
    )


def _exposed(methods: Sequence[str], has_realm: bool, *, tls: bool) -> str | None:
    """Returns the warning for an address that other machines can reach. If clients must authenticate by these
    `methods`, it is about missing TLS, and None with TLS; if there are no methods, it is about missing
    authentication."""
    if methods:
        return (
            None
            if tls
            else (
                "other machines can reach this address, and it has no TLS: anyone on the network between can read "
                "tokens and secrets. Give it a certificate by --tls-cert and --tls-key, or put a proxy with TLS in "
                "front of it (docs/containers.md)"
            )
        )
    how = "--auth requires a login" if has_realm else "`arco bootstrap` and --auth make logins"
    return (
        "other machines can reach this address, and clients need not authenticate: anyone who can connect can change "
        f"everything. {how}; or put an authenticating proxy in front of it (docs/operating.md)"
    )


def _on_loopback(methods: Sequence[str], has_realm: bool) -> str:
    """Returns the line on authentication for an address that only this machine can reach."""
    if methods:
        return f"Clients must authenticate ({', '.join(methods)})"
    how = "--auth requires one" if has_realm else "`arco bootstrap` and --auth make logins"
    return f"No login: only this machine can connect, and every client may change everything ({how})"


def uri_of(listener: socket.socket, *, tls: bool = False) -> str:
    """Returns the URI of the server that listens on a socket, without a path. If it listens on all addresses, the URI
    has this machine's host name."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = socket.gethostname()
    scheme = "https" if tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
