"""A vended credential, as clients get it."""

from collections.abc import Mapping
from dataclasses import field, replace

from arco_catalog.iceberg.json import JsonObject
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class StorageCredential:
    """A vended credential: the properties that open files whose location starts with `prefix` (Iceberg REST
    specification, `StorageCredential`). `expires_ms` is in milliseconds since 1970. `refresh_property` is the property
    with the endpoint for the next credential, None without such an endpoint. The repr has no secret."""

    prefix: str
    config: Mapping[str, str] = field(repr=False)
    expires_ms: int
    refresh_property: str | None

    def refreshed_at(self, endpoint: str | None) -> "StorageCredential":
        """Returns this credential with `endpoint` as the place where clients get the next credential: a path below the
        catalog's URI, or a URL. Without an `endpoint`, or a property for it, it stays as it is."""
        if endpoint is None or self.refresh_property is None:
            return self
        return replace(self, config={**self.config, self.refresh_property: endpoint})

    @property
    def json(self) -> JsonObject:
        """The credential as JSON, in the form of the Iceberg REST specification (`StorageCredential`)."""
        return {"prefix": self.prefix, "config": dict(self.config)}


def longest_first(credentials: tuple[StorageCredential, ...]) -> tuple[StorageCredential, ...]:
    """Returns the credentials in the order of their prefixes, the longest first, so that a client that takes the first
    match takes the right one."""
    return tuple(sorted(credentials, key=lambda credential: -len(credential.prefix)))
