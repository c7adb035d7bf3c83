"""Opens a server's sockets and prints its start-up message."""

import errno
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from arco_catalog.authentication.setup import NONE
from arco_catalog.cli.client_config import Login, client_config
from arco_catalog.cli.errors import CliError
from arco_catalog.http.browsers import is_loopback
from arco_catalog.state.restoration import describe_copy

BACKLOG = 1024
ATTEMPTS = 100
RETRY_SECONDS = 0.05
"""A start tries for five seconds to bind an address in use: workers of a killed server free it within that time."""
REALM_HEADER = "Polaris-Realm"


class AddressError(CliError):
    """No socket can listen at the address."""


class Announced(Protocol):
    """What the command line said that is told again."""

    @property
    def store(self) -> str: ...

    @property
    def warehouse(self) -> str: ...

    @property
    def auth(self) -> Sequence[str]: ...

    @property
    def realm(self) -> Sequence[str]: ...

    @property
    def base_path(self) -> str: ...

    @property
    def tls_cert(self) -> str | None: ...

    @property
    def quiet(self) -> bool: ...

    @property
    def environment(self) -> Mapping[str, str]: ...


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; IPv4 where a name has both. Raises `CliError`."""
    return listen_together(host, port, 1)[0]


def listen_together(host: str, port: int, count: int) -> Sequence[socket.socket]:
    """So many sockets that listen at one address, each connection going to one of them. Raises `CliError`.

    The first is bound alone, so that an address in use is an error, also where its user would share it.
    """
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
    """A socket that alone listens at an address. Blocks while workers that outlived a killed server hold it: a start
    has nothing else to do meanwhile."""
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
    """What a catalog's store turned out not to honour, and not to have, whether a realm is in it, the place of the
    original if the catalog is a copy, how much is in it, and a warning if it reads idempotency keys in another way than
    the server's variables set."""

    read_only_because: str | None
    lacks: Sequence[str]
    has_realm: bool = False
    copy_of: str | None = None
    contents: str | None = None
    key_warning: str | None = None


def announce(said: Announced, listener: socket.socket, store: StoreReport, workers: str | None = None) -> None:
    """Prints where the server is, what its `workers` are, and how engines get there."""
    uri = uri_of(listener, tls=said.tls_cert is not None) + said.base_path
    if store.read_only_because is not None:
        print(f"arco: this catalog is READ-ONLY: {store.read_only_because}", file=sys.stderr)
    for capability in store.lacks:
        print(f"arco: the store does not support {capability}", file=sys.stderr)
    if store.copy_of is not None:
        print(f"arco: {describe_copy(store.copy_of)}", file=sys.stderr)
    if store.key_warning is not None:
        print(f"arco: {store.key_warning}", file=sys.stderr)
    what = _realms(said.realm) if store.has_realm else f"the warehouse {said.warehouse!r} of"
    print(f"Arco serves {what} {said.store} at {uri} (Ctrl-C stops it)")
    if store.contents is not None and not said.quiet:
        print(store.contents)
    kinds = [kind for kind in said.auth if kind != NONE]
    exposed = not is_loopback(listener.getsockname()[0])
    if exposed:
        warning = _exposed(kinds, store.has_realm, tls=said.tls_cert is not None)
        if warning is not None:
            print(f"arco: {warning}", file=sys.stderr)
    elif not said.quiet:
        print(_on_loopback(kinds, store.has_realm))
    if len(said.realm) > 1 and not said.quiet:
        print(_in_other_realms(said.realm))
    if workers is not None and not said.quiet:
        print(workers)
    if not said.quiet:
        print(f"\n{client_config(uri, said.warehouse, said.store, said.environment, Login.of(kinds))}\n")
    sys.stdout.flush()


def _realms(names: Sequence[str]) -> str:
    return f"the realm{'s' * (len(names) > 1)} {', '.join(map(repr, names))} of" if names else "the realm in"


def _in_other_realms(names: Sequence[str]) -> str:
    """How clients get to those that are not the first."""
    return (
        f"These settings are for the realm {names[0]!r}; for another one, such as {names[1]!r}, add its name as the "
        f"header {REALM_HEADER}: header.{REALM_HEADER}={names[1]} for Spark and PyIceberg"
    )


def _exposed(kinds: Sequence[str], has_realm: bool, *, tls: bool) -> str | None:
    """What is said where other machines can connect, if anything."""
    if kinds:
        return (
            None
            if tls
            else (
                "other machines can reach this address, and it has no TLS: who listens in between can take tokens and "
                "secrets. Give it a certificate by --tls-cert and --tls-key, or put a proxy with TLS in front of it "
                "(docs/containers.md)"
            )
        )
    how = "--auth says who is let in" if has_realm else "`arco bootstrap` and --auth make logins"
    return (
        "other machines can reach this address, and nobody is asked who they are: anyone who can connect can change "
        f"everything. {how}; or put an authenticating proxy in front of it (docs/operating.md)"
    )


def _on_loopback(kinds: Sequence[str], has_realm: bool) -> str:
    """Who is let in, where only this machine can connect."""
    if kinds:
        return f"Clients must authenticate ({', '.join(kinds)})"
    how = "--auth asks for one" if has_realm else "`arco bootstrap` and --auth make logins"
    return f"No login: only this machine can connect, and whoever does may change everything ({how})"


def uri_of(listener: socket.socket, *, tls: bool = False) -> str:
    """Where a client finds the server: one on this machine where it listens on loopback alone, else any."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = socket.gethostname()
    scheme = "https" if tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
