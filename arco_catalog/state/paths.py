"""Where each durable record lives under a catalog's root (docs/design/state.md)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

REALM_FOLDER = "_realm"
"""What holds the registry of a realm."""


@dataclass(frozen=True)
class Paths:
    """Keys of one catalog, or of a realm. `root` is a key prefix without slashes at its ends, or empty."""

    root: str
    folder: str = "_catalog"

    def _under(self, rest: str) -> str:
        return f"{self.root}/{rest}" if self.root else rest

    @cached_property
    def state(self) -> str:
        """The folder that holds everything but tables; no client ever names a location in it."""
        return self._under(self.folder)

    @property
    def warehouse(self) -> str:
        """The folder under which tables live by default."""
        return self._under("warehouse")

    @cached_property
    def manifest(self) -> str:
        """HEAD of the registry."""
        return f"{self.state}/core/manifest.json"

    @property
    def registry_commits(self) -> str:
        """Prefix of all commits of the registry."""
        return f"{self.state}/core/commits/"

    def registry_commit(self, commit_id: str) -> str:
        """One immutable commit of the registry."""
        return f"{self.registry_commits}{commit_id}.json"

    def index_segment(self, segment: str) -> str:
        """One immutable run of the registry's index."""
        return f"{self.state}/core/index/{segment}.json"

    def entity_value(self, kind: str, value_id: str) -> str:
        """One immutable value of an entity: a namespace's properties, say."""
        return f"{self.state}/core/entities/{kind}/{value_id}.json"

    @property
    def page_key(self) -> str:
        """What a realm seals page tokens with."""
        return f"{self.state}/core/page_key.json"

    @cached_property
    def pointers(self) -> str:
        """Prefix of all pointers."""
        return f"{self.state}/iceberg_pointers/"

    def pointer(self, entity: str) -> str:
        """The one mutable object of a table or view."""
        return f"{self.pointers}{entity}.json"

    @property
    def transactions(self) -> str:
        """Prefix of all transactions."""
        return f"{self.state}/transactions/"

    def transaction(self, transaction: str) -> str:
        """The one object that decides a transaction."""
        return f"{self.transactions}{transaction}.json"

    @property
    def metadata_claims(self) -> str:
        """Prefix of all claims on metadata files."""
        return f"{self.state}/metadata_claims/"

    def metadata_claim(self, location: str) -> str:
        """What decides whether a metadata file may be removed or is kept for who registered it."""
        digest = hashlib.sha256(location.encode()).hexdigest()
        return f"{self.metadata_claims}{digest[:2]}/{digest}.json"

    @property
    def markers(self) -> str:
        """Prefix of all markers."""
        return f"{self.state}/iceberg_idempotency/"

    def marker(self, key_hash: str) -> str:
        """Prefix of the slots of one idempotency key's marker."""
        return f"{self.markers}{key_hash[:2]}/{key_hash}/"

    def marker_slot(self, key_hash: str, slot: int) -> str:
        """One slot of a marker."""
        return f"{self.marker(key_hash)}{slot}.json"

    @property
    def operational(self) -> str:
        """Prefix of what jobs remember."""
        return f"{self.state}/operational/"

    def checkpoints(self, shard: int) -> str:
        """Part of what the reconciler remembers of its walks."""
        return f"{self.operational}reconciler/walked-{shard:02d}.json"

    @property
    def events(self) -> str:
        """Prefix of all receipts."""
        return f"{self.state}/events/"

    def receipt(self, stage: str, commit_key: str, metadata_ms: int) -> str:
        """A commit's receipt, `stage` being `pending` or `committed`; the day is that of the metadata file, in UTC, so
        that whoever writes the receipt, whenever, writes the same path (docs/design/reconciliation.md#rule-3)."""
        day = datetime.fromtimestamp(metadata_ms / 1000, UTC).date().isoformat()
        return f"{self.events}{day}/iceberg/{stage}/{commit_key}.json"


_FOLDERS: Mapping[str, str] = {
    "iceberg_pointers": "pointer",
    "iceberg_idempotency": "marker",
    "transactions": "transaction",
    "events": "receipt",
    "operational": "operational",
}
_CORE: Mapping[str, str] = {
    "manifest.json": "manifest",
    "commits": "registry-commit",
    "index": "registry-index",
    "entities": "registry-value",
    "page_key.json": "page-key",
}


def record_kind(key: str) -> str:
    """The kind of object under a key, without its name: a table's own files are `metadata`, all that a realm has beside
    its catalogs is `realm`."""
    _, state, rest = f"/{key}".partition("/_catalog/")
    if not state:
        return "realm" if "/_realm/" in f"/{key}" else "metadata"
    folder, _, below = rest.partition("/")
    return _CORE.get(below.partition("/")[0], "state") if folder == "core" else _FOLDERS.get(folder, "state")


def commit_key(entity: str, metadata_location: str) -> str:
    """Names one commit of one entity for ever: SHA-256, in hex, of the entity id and the metadata file's location."""
    return hashlib.sha256(f"{entity}\n{metadata_location}".encode()).hexdigest()
