"""The header by which a client asks for access to the files of a generic table."""

from collections.abc import Mapping

from arco_catalog.http.access_delegation import Delegation
from arco_catalog.iceberg.errors import BadRequest

HEADER = "polaris-generic-table-access-delegation"


def wants_credentials(headers: Mapping[str, str]) -> bool:
    """Whether a client asks for credentials. Raises `BadRequest` for any other way of access: it is provided, or the
    request fails."""
    way = headers.get(HEADER)
    if way is None:
        return False
    if way.strip().lower() != Delegation.VENDED:
        raise BadRequest(f"Polaris-Generic-Table-Access-Delegation must be {Delegation.VENDED.value}, not {way[:64]!r}")
    return True
