"""Reads the header by which a client requests vended credentials for the files of a generic table."""

from collections.abc import Mapping

from arco_catalog.http.access_delegation import Delegation
from arco_catalog.iceberg.errors import BadRequest

HEADER = "polaris-generic-table-access-delegation"


def wants_credentials(headers: Mapping[str, str]) -> bool:
    """Whether the client's header requests vended credentials; False without the header. Raises `BadRequest` for any
    other value, because the server must provide the requested way of access or fail."""
    way = headers.get(HEADER)
    if way is None:
        return False
    if way.strip().lower() != Delegation.VENDED:
        raise BadRequest(f"Polaris-Generic-Table-Access-Delegation must be {Delegation.VENDED.value}, not {way[:64]!r}")
    return True
