"""How a client wants to reach the files of tables: the header `X-Iceberg-Access-Delegation`, and what it is told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from arco_catalog.iceberg.json import JsonObject

if TYPE_CHECKING:  # a load without delegation does not pay for it
    from arco_catalog.vending.credential import StorageCredential

HEADER = "x-iceberg-access-delegation"


class Delegation(StrEnum):
    """The ways that the specification knows."""

    VENDED = "vended-credentials"
    SIGNED = "remote-signing"


def asked(headers: Mapping[str, str]) -> frozenset[Delegation]:
    """The ways that a client can use; others are ignored."""
    values = {value.strip().lower() for value in headers.get(HEADER, "").split(",")}
    return frozenset(way for way in Delegation if way in values)


@dataclass(frozen=True, slots=True)
class Delegated:
    """What a client is told of the files of a table. Its text shows no secret."""

    way: Delegation | None = None
    config: Mapping[str, str] = field(default_factory=dict, repr=False)
    credentials: "Sequence[StorageCredential]" = ()
    writes: bool = False

    @property
    def credentials_json(self) -> list[JsonObject]:
        return [credential.json for credential in self.credentials]

    @property
    def headers(self) -> Mapping[str, str]:
        """Credentials are for whoever asked, and for now."""
        return {"Cache-Control": "no-store"} if self.credentials else {}

    @property
    def grants(self) -> tuple[str, ...]:
        """What the answer depends on besides the table: credentials that replace others make another answer, so that no
        client is told to go on with old ones."""
        if self.way is None:
            return ()
        rights = "write" if self.writes else "read"
        return (rights, *(f"{credential.prefix} {credential.expires_ms}" for credential in self.credentials))


NOT_DELEGATED = Delegated()
