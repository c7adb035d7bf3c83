"""Table and view properties that the catalog itself reads, reserves or protects."""

import re
from collections.abc import Iterable, Mapping, Sized

from arco_catalog.iceberg.errors import BadRequest

Properties = Mapping[str, str]

DEFAULT_FORMAT_VERSION = 2
SUPPORTED_FORMAT_VERSION = 3

FORMAT_VERSION = "format-version"
CREATED_AT = "created-at"
PARQUET_COMPRESSION = "write.parquet.compression-codec"
METADATA_PATH = "write.metadata.path"
METADATA_COMPRESSION = "write.metadata.compression-codec"
PREVIOUS_VERSIONS_MAX = "write.metadata.previous-versions-max"
DELETE_AFTER_COMMIT = "write.metadata.delete-after-commit.enabled"
GC_ENABLED = "gc.enabled"
METRICS_COLUMN_PREFIX = "write.metadata.metrics.column."
ENCRYPTION_KEY_ID = "encryption.key-id"
SCAN_PLANNING_MODE = "scan-planning-mode"
"""Who plans the scans of a table: `client` or `server`; a property of tables and catalogs, and of what clients read."""
COMMIT_APPENDS = "arco.commit.appends"
"""Whether the catalog may rebase appends to the table (docs/design/appends.md)."""
REBASE = "rebase"
"""The one value of that property, and of the snapshot's summary field by which a commit requests it."""

PLANNING_MODES = ("client", "server")

# Where engines write data instead of below the table's location; the last two are the old names of the first.
DATA_PATHS = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")

# Set by the format itself: a create request may name them, and they never become properties.
RESERVED_AT_CREATE = frozenset(
    {
        FORMAT_VERSION,
        "uuid",
        "snapshot-count",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
_COMMIT_RETRIES = (
    "commit.retry.num-retries",
    "commit.retry.min-wait-ms",
    "commit.retry.max-wait-ms",
    "commit.retry.total-timeout-ms",
)
_ENCRYPTION = (ENCRYPTION_KEY_ID, "encryption.data-key-length")
_RESERVED_PREFIX = "arco."
_POLARIS_PREFIX = "polaris."
MAX_PROPERTIES = 100_000
"""Maximum number of properties that one update sets or removes, or a create sets: a map is copied and compared in one
step, during which the process does nothing else."""


def is_reserved(name: str) -> bool:
    """Whether a name belongs to the catalog itself: `arco.*`, in any case of letters
    (docs/design/polaris.md#rule-16)."""
    return name.casefold().startswith(_RESERVED_PREFIX)


def may_be_set(name: str) -> bool:
    """Whether clients may set and remove a property with this name on views and namespaces; on tables they may set
    `arco.commit.appends` besides. They may not for the catalog's own names (`arco.*`) and for those that Apache Polaris
    reserves (`polaris.*`), so that their requests work with both catalogs."""
    return not (is_reserved(name) or name.startswith(_POLARIS_PREFIX))


def refuse_reserved(names: Iterable[str]) -> None:
    """Raises `BadRequest` if some of these names begin with `arco.`, in any case of letters, and lists them, or else if
    some begin with `polaris.`, and lists those: clients may not set or remove such properties."""
    invalid = sorted(name for name in names if not may_be_set(name))
    reserved = [name for name in invalid if is_reserved(name)]
    if reserved:
        raise BadRequest(
            f"Properties that start with {_RESERVED_PREFIX!r} are reserved: {', '.join(reserved)} (clients may "
            "not set or remove them)"
        )
    if invalid:
        raise BadRequest(
            f"Properties that start with {_POLARIS_PREFIX!r} are reserved: {', '.join(invalid)} (clients may "
            "not set or remove them)"
        )


def refuse_reserved_of_table(names: Iterable[str]) -> None:
    """Raises `BadRequest` as `refuse_reserved` does, except for the one property of the catalog that clients may set
    and remove on a table."""
    refuse_reserved(name for name in names if name != COMMIT_APPENDS)


def check_settings(properties: Properties) -> None:
    """Raises `BadRequest` for a value of the property `arco.commit.appends` that the catalog does not know."""
    found = properties.get(COMMIT_APPENDS, REBASE)
    if found != REBASE:
        raise BadRequest(f"Table property {COMMIT_APPENDS} must be {REBASE!r}, found {found!r}")


def refuse_too_many(properties: object) -> None:
    """Raises `BadRequest` if a create, or one update of a commit, sets or removes more than `MAX_PROPERTIES`
    properties. `properties` is what the request has in that place, before any check of it; a value without a length is
    accepted."""
    count = len(properties) if isinstance(properties, Sized) else 0
    if count > MAX_PROPERTIES:
        raise BadRequest(
            f"Too many properties in a create, or in one update of a commit: {count:,}, and at most "
            f"{MAX_PROPERTIES:,} are allowed: send them in more updates or requests"
        )


def refuse_empty_paths(properties: Properties) -> None:
    """Raises `BadRequest` if a property that directs engines to write data or metadata elsewhere has the empty path:
    some engines take it for the root of the file system, others fail."""
    for name in (METADATA_PATH, *DATA_PATHS):
        if properties.get(name) == "":
            raise BadRequest(
                f"Table property {name} must not be empty: remove it to write below the location of the table or view"
            )


def refuse_key_change(old: Properties, new: Properties) -> None:
    """Raises `BadRequest` if the property of the table's encryption key would be changed or removed: its files need the
    key."""
    key = old.get(ENCRYPTION_KEY_ID)
    if key is not None and new.get(ENCRYPTION_KEY_ID) != key:
        raise BadRequest(f"Cannot change or remove the property {ENCRYPTION_KEY_ID} once it is set")


def check_new_table(properties: Properties, format_version: int, column_names: frozenset[str]) -> None:
    """Checks the properties of a new table. It is not called for old tables, so that these stay usable. Raises
    `BadRequest` for metrics of an unknown column, for a number or time of commit retries that is no 32-bit integer
    from 0 on, and before format version 3 for properties of encryption."""
    for name in properties:
        column = name.removeprefix(METRICS_COLUMN_PREFIX)
        if column != name and column not in column_names:
            raise BadRequest(
                f"Invalid metrics config, could not find column {column} from table prop {name} in the schema of a new "
                "table"
            )
    for name in _COMMIT_RETRIES:
        if name in properties and integer(properties, name, 0) < 0:
            raise BadRequest(f"Table property {name} must have non negative integer value in a new table")
    encryption = sorted(set(_ENCRYPTION) & set(properties))
    if format_version < 3 and encryption:
        raise BadRequest(f"Invalid properties for a new table of v{format_version}: {encryption} need format version 3")


def integer(properties: Properties, name: str, default: int) -> int:
    """Returns the value of a property that is a 32-bit integer, or the default without the property. Raises
    `BadRequest` for any other value."""
    text = properties.get(name)
    if text is None:
        return default
    if re.fullmatch(r"[+-]?[0-9]{1,10}", text) and -(2**31) <= int(text) < 2**31:
        return int(text)
    raise BadRequest(f"The table's or view's property {name} must have integer value of 32 bits, not {text[:100]!r}")


def is_true(properties: Properties, name: str) -> bool:
    """Whether a property is `true`, in any case of letters; false without the property."""
    return properties.get(name, "").lower() == "true"


def strip_trailing_slash(location: str) -> str:
    """Returns a location as tables write it: without slashes at its end, except those of a bare `scheme://`."""
    while location.endswith("/") and not location.endswith("://"):
        location = location[:-1]
    return location
