"""Computes user delegation signatures (SAS) for Azure Storage, which give access to one directory, or to one container.
Pure functions.

Sources: Azure Storage REST API, "Create a user delegation SAS" (string to sign of version 2020-12-06 and later), "Get
User Delegation Key".
"""

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import field
from datetime import UTC, datetime
from hmac import digest
from urllib.parse import quote

from storage_backends.lazy_dataclass import dataclass

VERSION = "2022-11-02"
"""The version of the service that checks the signature."""
READ = "rl"
WRITE = "racwdl"
"""The permissions to read, add, create, write, delete and list, in the order that Azure requires."""


@dataclass(frozen=True, slots=True)
class DelegationKey:
    """A user delegation key, which Azure gave to an identity of Entra ID, to sign with until it expires. `start` and
    `expiry` are as Azure wrote them; `expires_ms` is the expiry in milliseconds since 1970."""

    object_id: str
    tenant_id: str
    start: str
    expiry: str
    service: str
    version: str
    value: str = field(repr=False)
    expires_ms: int


def iso_second(ms: int) -> str:
    """Returns a time, given in milliseconds since 1970, in the form of signatures: UTC, with seconds."""
    return datetime.fromtimestamp(ms // 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def user_delegation_sas(
    key: DelegationKey,
    account: str,
    container: str,
    directory: Sequence[str],
    permissions: str,
    start_ms: int,
    expires_ms: int,
) -> str:
    """Returns the SAS token, a query of URLs, that gives access with these permissions, only over https, to all files
    in a directory, given by its segments, or in the whole container if there are none."""
    fields = _fields(key, directory, permissions, start_ms, expires_ms)
    text = string_to_sign(fields, "/".join(["", "blob", account, container, *directory]))
    fields["sig"] = b64encode(digest(b64decode(key.value), text.encode(), "sha256")).decode()
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items())


def string_to_sign(fields: dict[str, str], resource: str) -> str:
    """Returns the text that a signature of access (user delegation SAS) signs: its query parameters and the resource in
    the order that Azure requires, with an empty line for each missing parameter."""
    first = ("sp", "st", "se")
    then = ("skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid", "sip", "spr", "sv", "sr")
    last = ("snapshot", "ses", "rscc", "rscd", "rsce", "rscl", "rsct")
    values = [fields.get(name, "") for name in (*first, "", *then, *last)]
    values[len(first)] = resource
    return "\n".join(values)


def _fields(
    key: DelegationKey, directory: Sequence[str], permissions: str, start_ms: int, expires_ms: int
) -> dict[str, str]:
    """Returns the query parameters of a user delegation signature, without the signature itself, for a directory, or
    for the whole container if `directory` has no segments."""
    return {
        "sp": permissions,
        "st": iso_second(start_ms),
        "se": iso_second(expires_ms),
        "skoid": key.object_id,
        "sktid": key.tenant_id,
        "skt": key.start,
        "ske": key.expiry,
        "sks": key.service,
        "skv": key.version,
        "spr": "https",
        "sv": VERSION,
        "sr": "d" if directory else "c",
        **({"sdd": str(len(directory))} if directory else {}),
    }
