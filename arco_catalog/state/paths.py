"""The keys of all stored records of a catalog, realm or delegation service (docs/design/state.md)."""

import hashlib
import re
from datetime import UTC, date, datetime
from functools import cached_property

from storage_backends.lazy_dataclass import dataclass

_HINT = r"([0-9]{8}T[0-9]{6})([0-9]{3})Z-([0-9A-Za-z-]+)"
_LINEAGE = "openlineage"
REALM_FOLDER = "_realm"
"""The folder with the registry of a realm."""
DEFAULT_REALM = "default"
"""The name of the realm at a store's root, and of a store without a realm where a name is required."""


@dataclass(frozen=True)
class Paths:
    """Computes the keys of the stored records of one catalog, realm or delegation service. `root` is a key prefix
    without slashes at its ends, or empty."""

    root: str
    folder: str = "_catalog"

    def _under(self, rest: str) -> str:
        """Returns a path below the catalog's root."""
        return f"{self.root}/{rest}" if self.root else rest

    @cached_property
    def state(self) -> str:
        """The folder with all of the catalog's records, but no files of tables. No client may choose a location in
        it."""
        return self._under(self.folder)

    @property
    def warehouse(self) -> str:
        """The folder in which tables have their default locations, in a catalog outside of realms."""
        return self._under("warehouse")

    @cached_property
    def manifest(self) -> str:
        """The key of HEAD of the registry."""
        return f"{self.state}/core/manifest.json"

    @property
    def registry_commits(self) -> str:
        """Prefix of the keys of all commits of the registry."""
        return f"{self.state}/core/commits/"

    def registry_commit(self, commit_id: str) -> str:
        """Returns the key of one immutable commit of the registry."""
        return f"{self.registry_commits}{commit_id}.json"

    @property
    def index_segments(self) -> str:
        """Prefix of the keys of all segments of the registry's index."""
        return f"{self.state}/core/index/"

    def index_segment(self, segment: str) -> str:
        """Returns the key of one segment, an immutable run of entries of the registry's index."""
        return f"{self.index_segments}{segment}.json"

    @property
    def entity_values(self) -> str:
        """Prefix of the keys of the values of entities, such as the properties of namespaces."""
        return f"{self.state}/core/entities/"

    @property
    def namespace_values(self) -> str:
        """Prefix of the keys of the values of namespaces, which have their properties."""
        return f"{self.entity_values}namespace/"

    def entity_value(self, kind: str, value_id: str) -> str:
        """Returns the key of one immutable value of an entity, such as a namespace's properties."""
        return f"{self.entity_values}{kind}/{value_id}.json"

    @property
    def proposals(self) -> str:
        """Prefix of the keys of all proposals: changes of the registry that any process may commit."""
        return f"{self.state}/core/proposals/"

    def proposal(self, attempt: str, base: int) -> str:
        """Returns the key of the proposal of an attempt with this base. Keys are in the order of the attempts' ids."""
        return f"{self.proposals}{attempt}-{base}.json"

    @property
    def bell(self) -> str:
        """The key of the bell, an object that processes change to announce proposals."""
        return f"{self.state}/core/bell.json"

    @property
    def page_key(self) -> str:
        """The object key of the record with the secret by which a realm, or a catalog with a policy that hides names,
        seals page tokens."""
        return f"{self.state}/core/page_key.json"

    @cached_property
    def pointers(self) -> str:
        """Prefix of the keys of all pointers of tables and views."""
        return f"{self.state}/iceberg_pointers/"

    def pointer(self, entity: str) -> str:
        """Returns the key of the pointer of a table or view, the one object that its commits change."""
        return f"{self.pointers}{entity}.json"

    @property
    def transactions(self) -> str:
        """Prefix of the keys of all transactions over several tables."""
        return f"{self.state}/transactions/"

    def transaction(self, transaction: str) -> str:
        """Returns the key of the one object that decides a transaction."""
        return f"{self.transactions}{transaction}.json"

    @property
    def metadata_claims(self) -> str:
        """Prefix of the keys of all claims on metadata files."""
        return f"{self.state}/metadata_claims/"

    def metadata_claim(self, location: str) -> str:
        """Returns the key of the claim that decides whether a metadata file may be removed, or was registered and is
        kept."""
        digest = hashlib.sha256(location.encode()).hexdigest()
        return f"{self.metadata_claims}{digest[:2]}/{digest}.json"

    @property
    def markers(self) -> str:
        """Prefix of the keys of all markers of idempotency keys."""
        return f"{self.state}/iceberg_idempotency/"

    def marker(self, key_hash: str) -> str:
        """Returns the prefix of the keys of the slots of one idempotency key's marker."""
        return f"{self.markers}{key_hash[:2]}/{key_hash}/"

    def marker_slot(self, key_hash: str, slot: int) -> str:
        """Returns the key of one slot of an idempotency key's marker."""
        return f"{self.marker(key_hash)}{slot}.json"

    @property
    def tasks(self) -> str:
        """Prefix of the keys of all background tasks, and of the hints that lead to them."""
        return f"{self.state}/tasks/"

    def task(self, task: str) -> str:
        """Returns the prefix of the keys of the versions of one background task."""
        return f"{self.tasks}{task}/"

    def task_version(self, task: str, number: int) -> str:
        """Returns the key of one version of a background task."""
        return f"{self.task(task)}{number}.json"

    @property
    def open_tasks(self) -> str:
        """Prefix of the keys of the hints that lead to background tasks which have not ended."""
        return f"{self.tasks}open/"

    def open_task(self, task: str, not_before_ms: int) -> str:
        """Returns the key of a hint that a worker should read a task from this time on. The object is empty: its key
        has the task and the time."""
        time = datetime.fromtimestamp(not_before_ms / 1000, UTC)
        return f"{self.open_tasks}{time:%Y%m%dT%H%M%S}{not_before_ms % 1000:03}Z-{task}"

    def read_open_task(self, key: str) -> tuple[str, int] | None:
        """Returns the task's id and the time, in milliseconds, in the key of a hint; None for a key of another form."""
        match = re.fullmatch(_HINT, key.removeprefix(self.open_tasks))
        if match is None:
            return None
        try:
            time = datetime.strptime(match[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
        except ValueError:  # digits that are no date
            return None
        return match[3], int(time.timestamp()) * 1000 + int(match[2])

    @property
    def operational(self) -> str:
        """Prefix of the keys of the records of jobs, such as checkpoints."""
        return f"{self.state}/operational/"

    def checkpoints(self, shard: int) -> str:
        """Returns the key of one shard of the reconciler's checkpoints of walks."""
        return f"{self.operational}reconciler/walked-{shard:02d}.json"

    @property
    def all_purge_chunks(self) -> str:
        """Prefix of the keys of the inventories of all purges."""
        return f"{self.operational}purges/"

    def purge_chunks(self, task: str) -> str:
        """Returns the prefix of the keys of the chunks of the inventory of a purge's task."""
        return f"{self.all_purge_chunks}{task}/"

    def purge_chunk(self, task: str, chunk: str) -> str:
        """Returns the key of one immutable chunk of a purge's inventory."""
        return f"{self.purge_chunks(task)}{chunk}.json"

    @property
    def all_expiry_records(self) -> str:
        """Prefix of the keys of the records of all expiries of snapshots."""
        return f"{self.operational}expiries/"

    def expiry_records(self, entity: str) -> str:
        """Returns the prefix of the keys of the records of the snapshots that expiries of a table remove."""
        return f"{self.all_expiry_records}{entity}/"

    def expiry_records_of(self, entity: str, task: str) -> str:
        """Returns the prefix of the keys of a task's records of the snapshots of a table that it removes."""
        return f"{self.expiry_records(entity)}{task}/"

    def expiry_record(self, entity: str, task: str, commit: str) -> str:
        """Returns the key of the record of the snapshots that a commit of a task removes, given its `commit_key`."""
        return f"{self.expiry_records_of(entity, task)}{commit}.json"

    @property
    def all_file_directories(self) -> str:
        """Prefix of the keys of the records in which purges store the directories of tables' files."""
        return f"{self.operational}file-directories/"

    def file_directories(self, shard: int) -> str:
        """Returns the key of one shard of the records in which purges store the directories of tables' files."""
        return f"{self.all_file_directories}{shard:02d}.json"

    @property
    def subscriptions(self) -> str:
        """Prefix of the keys of all subscriptions to events, and of nothing else."""
        return f"{self.operational}subscriptions/"

    def subscription(self, name: str) -> str:
        """Returns the key of a subscription to events, given its name."""
        return f"{self.subscriptions}{name}.json"

    def dead_letters(self, subscription: str) -> str:
        """Returns the prefix of the keys of the events that could not be delivered to the subscription with this id."""
        return f"{self.operational}dead-letters/{subscription}/"

    def dead_letter(self, subscription: str, number: int) -> str:
        """Returns the key of an event that could not be delivered, by its number in the feed."""
        return f"{self.dead_letters(subscription)}{number:016d}.json"

    @property
    def collector(self) -> str:
        """Prefix of the keys of the floors up to which collections may have deleted records."""
        return f"{self.operational}collector/"

    def floors(self, shard: int) -> str:
        """Returns the key of one shard of the floors up to which receipts may have been collected."""
        return f"{self.collector}floors-{shard:02d}.json"

    @property
    def registry_floor(self) -> str:
        """The key of the floor before which commits of the registry may have been collected."""
        return f"{self.collector}registry.json"

    def kept_aside(self, keeping: str, key: str) -> str:
        """Returns the key of the copy of an object that the recovery with the id `keeping` made before it replaced the
        object."""
        return f"{self.state}/recovery/{keeping}/{key.removeprefix(f'{self.state}/')}"

    @property
    def events(self) -> str:
        """Prefix of the keys of all receipts, of OpenLineage events, and of the late marks on days."""
        return f"{self.state}/events/"

    def receipt(self, stage: str, commit_key: str, metadata_ms: int) -> str:
        """Returns the key of a commit's receipt of the `stage` `pending` or `committed`. Its day, in UTC, is that of
        the metadata file, so that every process writes the receipt to one path at any time
        (docs/design/reconciliation.md#rule-3)."""
        return f"{self.receipts_of_day(stage, day_of(metadata_ms))}{commit_key}.json"

    def receipts_of_day(self, stage: str, day: date) -> str:
        """Returns the prefix of the keys of a day's receipts of the `stage` `pending` or `committed`."""
        return f"{self.events}{day.isoformat()}/iceberg/{stage}/"

    def read_receipt_day(self, key: str) -> date | None:
        """Returns the day in the key of a receipt; None for any other key."""
        return _day(key.removeprefix(self.events).partition("/iceberg/")[0])

    @property
    def late_marks(self) -> str:
        """Prefix of the keys of the marks on days to which receipts are added after their end."""
        return f"{self.events}late/"

    def late_mark(self, day: date) -> str:
        """Returns the key of the mark that receipts may be written into this day after its end."""
        return f"{self.late_marks}{day.isoformat()}"

    def read_late_mark(self, key: str) -> date | None:
        """Returns the marked day in the key of a mark on a day to which receipts are added late; None for any other
        key."""
        return _day(key.removeprefix(self.late_marks)) if key.startswith(self.late_marks) else None

    def lineage_event(self, name: str, received_ms: int) -> str:
        """Returns the key of an OpenLineage event with this name in the folder of the day in UTC on which it was
        received."""
        return f"{self.lineage_events_of_day(day_of(received_ms))}{name}.json"

    def lineage_events_of_day(self, day: date) -> str:
        """Returns the prefix of the keys of the OpenLineage events that came on a day."""
        return f"{self.events}{day.isoformat()}/{_LINEAGE}/"

    def read_lineage_day(self, key: str) -> date | None:
        """Returns the day on which an OpenLineage event came, from the key; None for another key."""
        day, is_event, _ = key.removeprefix(self.events).partition(f"/{_LINEAGE}/")
        return _day(day) if is_event else None

    def is_lineage_event(self, key: str) -> bool:
        """Whether a key below `events` is that of an OpenLineage event."""
        return f"/{_LINEAGE}/" in key.removeprefix(self.events)

    def is_receipt(self, key: str) -> bool:
        """Whether a key below `events` is that of a receipt, of either stage: neither an OpenLineage event nor a late
        mark."""
        return not self.is_lineage_event(key) and self.read_late_mark(key) is None

    @property
    def feed_segments(self) -> str:
        """Prefix of the keys of all segments of the event feed."""
        return f"{self.state}/feed/segments/"

    def feed_segment(self, first: int) -> str:
        """Returns the key of the segment of the event feed whose first record has this number."""
        return f"{self.feed_segments}{first:016d}.json"

    def read_feed_segment(self, key: str) -> int | None:
        """Returns the number of the first record in the key of a segment of the event feed; None for any other key."""
        digits = key.removeprefix(self.feed_segments).removesuffix(".json")
        return int(digits) if re.fullmatch("[0-9]{16}", digits) else None

    @property
    def all_feed_cursors(self) -> str:
        """Prefix of the keys of the cursors of the event feed, and of nothing else."""
        return f"{self.state}/feed/cursors/"

    def feed_cursors(self, shard: int) -> str:
        """Returns the key of one shard of the cursors up to which tables and views are in the event feed."""
        return f"{self.all_feed_cursors}{shard:02d}.json"

    @property
    def feed_floor(self) -> str:
        """The key of the number of the first segment of the event feed that is not collected."""
        return f"{self.state}/feed/floor.json"

    @property
    def reports(self) -> str:
        """Prefix of the keys of all engines' reports of scans and commits."""
        return f"{self.state}/reports/"

    def report(self, day: date, report: str) -> str:
        """Returns the key of an engine's report of a scan or commit, by the day in UTC on which it came."""
        return f"{self.reports_of_day(day)}{report}.json"

    def reports_of_day(self, day: date) -> str:
        """Returns the prefix of the keys of the engines' reports that came on a day."""
        return f"{self.reports}{day.isoformat()}/"

    def read_report_day(self, key: str) -> date | None:
        """Returns the day on which a report came, from the key; None for another key."""
        return _day(key.removeprefix(self.reports).partition("/")[0])

    @property
    def plan_requests(self) -> str:
        """Prefix of the keys of the requests of scans that are too long for the tokens of their plans."""
        return f"{self.state}/plans/"

    def plan_request(self, digest: str) -> str:
        """Returns the key of the request of a scan, by the SHA-256 of its bytes in hexadecimal."""
        return f"{self.plan_requests}{digest}"


def day_of(ms: int) -> date:
    """Returns the day, in UTC, of a time in milliseconds since 1970."""
    return datetime.fromtimestamp(ms / 1000, UTC).date()


def _day(text: str) -> date | None:
    """Returns the date in a text of ISO 8601; None for any other text."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


SERVICE = Paths("")
"""Keys of a delegation service: at the store's root it has tasks and markers, and no registry."""


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """A kind of objects in the state folder, which have the key or folder `place` below it. `name` is the one in
    traces. Backups hold it if `backed_up`, and collections delete old ones, or old entries of them, if `collected`."""

    name: str
    place: str
    backed_up: bool = True
    collected: bool = True


OBJECT_KINDS = (
    ObjectKind("manifest", "core/manifest.json", collected=False),
    ObjectKind("registry-commit", "core/commits/"),
    ObjectKind("registry-index", "core/index/"),
    ObjectKind("registry-value", "core/entities/"),
    ObjectKind("proposal", "core/proposals/", backed_up=False),
    ObjectKind("bell", "core/bell.json", backed_up=False, collected=False),
    ObjectKind("page-key", "core/page_key.json", collected=False),
    ObjectKind("pointer", "iceberg_pointers/"),
    ObjectKind("marker", "iceberg_idempotency/"),
    ObjectKind("transaction", "transactions/"),
    ObjectKind("state", "metadata_claims/"),
    ObjectKind("receipt", "events/"),
    ObjectKind("feed", "feed/"),
    ObjectKind("report", "reports/"),
    ObjectKind("plan", "plans/", backed_up=False),
    ObjectKind("task", "tasks/"),
    ObjectKind("operational", "operational/reconciler/", backed_up=False),
    ObjectKind("operational", "operational/collector/"),
    ObjectKind("operational", "operational/file-directories/", backed_up=False),
    ObjectKind("purge", "operational/purges/", backed_up=False),
    ObjectKind("expiry", "operational/expiries/", backed_up=False),
    ObjectKind("subscription", "operational/subscriptions/", backed_up=False, collected=False),
    ObjectKind("dead-letter", "operational/dead-letters/", backed_up=False, collected=False),
    ObjectKind("recovery", "recovery/", backed_up=False, collected=False),
)
"""All kinds of objects that a catalog or a realm stores. Code that reads or deletes a whole state must handle each."""


def record_kind(key: str) -> str:
    """Returns the name of the kind of object under a key. The records of a realm, apart from its catalogs, are `realm`,
    and objects outside of all state, such as a table's files, are `metadata`."""
    _, state, rest = f"/{key}".partition("/_catalog/")
    if not state:
        return "realm" if "/_realm/" in f"/{key}" else "metadata"
    return kind_in_state(rest)


def kind_in_state(rest: str) -> str:
    """Returns the name of the kind of object under a key, which is given without the folder of the state; `state` for
    an unknown one."""
    kind = object_kind(rest)
    return "state" if kind is None else kind.name


def object_kind(rest: str) -> ObjectKind | None:
    """Returns the kind of object under a key, which is given without the folder of the state; None for an unknown one.
    A prefix of keys has the kind of the objects under it."""
    for kind in OBJECT_KINDS:
        if f"{rest}/".startswith(kind.place) if kind.place.endswith("/") else rest == kind.place:
            return kind
    return None


def is_state(key: str) -> bool:
    """Whether a key is that of an object in the state of a catalog or realm, and not of a table's file."""
    return record_kind(key) != "metadata"


def is_manifest(key: str) -> bool:
    """Whether a key is that of the HEAD of a registry, of a catalog or of a realm, or of a copy of one that a recovery
    kept."""
    return is_state(key) and f"/{key}".endswith("/core/manifest.json")


def catalog_root(manifest: str) -> str:
    """Returns the root of the catalog that has its HEAD under a key."""
    return manifest.rpartition("/_catalog/")[0]


def outermost_root(key: str) -> str | None:
    """Returns the root of the catalog whose state has an object under a key, the outermost of several; None for other
    keys, and for those of a catalog at the root of the store."""
    root, state, _ = key.partition("/_catalog/")
    return root if state else None


def commit_key(entity: str, metadata_location: str) -> str:
    """Returns the name of one commit of one entity: SHA-256, in hex, of the entity id and the metadata file's
    location."""
    return hashlib.sha256(f"{entity}\n{metadata_location}".encode()).hexdigest()
