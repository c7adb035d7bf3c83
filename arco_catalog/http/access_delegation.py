"""The header `X-Iceberg-Access-Delegation`, by which a client requests access to the files of tables, and the access
that a response gives it."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.properties import SCAN_PLANNING_MODE
from storage_backends.lazy_dataclass import dataclass

if TYPE_CHECKING:  # importing it takes time, and most requests delegate no access
    from arco_catalog.vending.credential import StorageCredential

HEADER = "x-iceberg-access-delegation"


class Delegation(StrEnum):
    """The ways of delegating access that the REST specification defines, by their values in the header."""

    VENDED = "vended-credentials"
    SIGNED = "remote-signing"


def requested_ways(headers: Mapping[str, str]) -> frozenset[Delegation]:
    """Returns the ways of delegation that the client's header lists. Unknown values are ignored, and without the header
    the set is empty."""
    values = {value.strip().lower() for value in headers.get(HEADER, "").split(",")}
    return frozenset(way for way in Delegation if way in values)


@dataclass(frozen=True, slots=True)
class DelegatedAccess:
    """The access to a table's files that a response gives: its `way`, None for no access, the `config` and
    `credentials` for the client, and whether it `writes`; besides, who should plan scans (`planning`), None if clients
    decide. Its `repr` shows no secret."""

    way: Delegation | None = None
    config: Mapping[str, str] = field(default_factory=dict, repr=False)
    credentials: "Sequence[StorageCredential]" = ()
    writes: bool = False
    planning: str | None = None

    @property
    def client_config(self) -> Mapping[str, str]:
        """The configuration that the response has for the client: `config`, and if `planning` is not None also that."""
        return self.config if self.planning is None else {**self.config, SCAN_PLANNING_MODE: self.planning}

    @property
    def credentials_json(self) -> list[JsonObject]:
        """The credentials as the response contains them."""
        return [credential.json for credential in self.credentials]

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that the response needs: `Cache-Control: no-store` if it contains credentials, otherwise none."""
        return {"Cache-Control": "no-store"} if self.credentials else {}

    @property
    def grants(self) -> tuple[str, ...]:
        """The parts of the access that the ETag of the response includes: who plans scans, the right (`read`, `write`),
        and the prefix and expiry of each credential; without access only the first. New credentials change it, so a
        client never gets a 304 that makes it keep expired ones."""
        planning = () if self.planning is None else (f"{SCAN_PLANNING_MODE}={self.planning}",)
        if self.way is None:
            return planning
        rights = "write" if self.writes else "read"
        return (*planning, rights, *(f"{credential.prefix} {credential.expires_ms}" for credential in self.credentials))


NOT_DELEGATED = DelegatedAccess()
