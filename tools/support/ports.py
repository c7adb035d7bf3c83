"""Finds free ports of this machine."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


def free_port() -> int:
    """A free port of 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def reserved_port() -> Iterator[int]:
    """A free port of 127.0.0.1 for a server that is slow to start and reuses addresses, as JVMs do. Until the context
    ends, the system gives the port to no other process, and the server can listen on it."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]
