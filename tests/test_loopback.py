"""No test leaves this machine: what would is found where it is tried."""

import socket

import pytest

from tests.support.loopback import LeavesThisMachine


def test_a_connection_beyond_loopback_fails() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,  # which sends nothing when it connects
        pytest.raises(LeavesThisMachine, match=r"192\.0\.2\.1"),
    ):
        sender.connect(("192.0.2.1", 9))


def test_a_look_up_of_another_machine_fails() -> None:
    with pytest.raises(LeavesThisMachine, match=r"nowhere\.invalid"):
        socket.getaddrinfo("nowhere.invalid", 443)


def test_this_machine_may_be_talked_to() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()[:2]) as client:
        assert client.getpeername() == server.getsockname()
    assert socket.getaddrinfo("localhost", 80)
