"""A webhook has a public address, unless private ones are allowed; a link-local one it never has."""

import pytest

from arco_catalog.upkeep.delivery.addresses import is_public, is_usable


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"])
def test_a_public_address_is_one(address: str) -> None:
    assert is_public(address)
    assert is_usable(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "::1",
        "fd00::1",
        "::ffff:10.0.0.1",
        "64:ff9b::10.0.0.1",
        "2002:0a00:0001::",
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "::10.0.0.1",
        "fec0::1",
        "64:ff9b:1::1",
        "64:ff9b:1:ffff::5db8:d70e",
    ],
)
def test_a_private_address_is_none_however_it_is_written(address: str) -> None:
    assert not is_public(address)
    assert is_usable(address)


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "fe80::1",
        "fe80::1%eth0",
        "::ffff:169.254.169.254",
        "64:ff9b::169.254.169.254",
        "224.0.0.1",
        "0.0.0.0",
        "::",
        "::169.254.169.254",
        "168.63.129.16",
        "::ffff:168.63.129.16",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
    ],
)
def test_an_address_of_the_machine_s_cloud_or_of_a_group_is_never_used(address: str) -> None:
    assert not is_public(address)
    assert not is_usable(address)
