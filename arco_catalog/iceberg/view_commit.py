"""Commits to views: their requirements and updates, and the application of both to a view's metadata (view spec; REST
spec, `CommitViewRequest`)."""

from collections.abc import Callable
from typing import TypeAlias, assert_never, cast

from arco_catalog.iceberg.checkpoint import Checkpoint, no_deadline
from arco_catalog.iceberg.commit import parse_changes
from arco_catalog.iceberg.errors import BadRequest, NoSuchView
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.numbered import NumberedObjects
from arco_catalog.iceberg.primitives import same_uuid
from arco_catalog.iceberg.properties import is_true
from arco_catalog.iceberg.requirements import requirement_failed
from arco_catalog.iceberg.schema import NameBudget, Schema, check_schema, columns_by_id, numbered_schemas
from arco_catalog.iceberg.shapes import INT, STRING, Fields
from arco_catalog.iceberg.updates import (
    LAST_ADDED,
    TABLE_UPDATES,
    AddSchema,
    AssignUuid,
    RemoveProperties,
    SetLocation,
    SetProperties,
    UpgradeFormatVersion,
    remove_properties,
    resolved_id,
    set_properties,
)
from arco_catalog.iceberg.view_metadata import (
    FORMAT_VERSION,
    VIEW_VERSION,
    VersionLogEntry,
    ViewMetadata,
    ViewVersion,
    check_dialects,
    complete_view,
    current_version,
    dialects,
    history_size,
    version_meaning,
)
from storage_backends.lazy_dataclass import dataclass

DROP_DIALECT_ALLOWED = "replace.drop-dialect.allowed"


@dataclass(frozen=True, slots=True)
class AddViewVersion:
    """The update of a commit that adds a version to a view."""

    version: ViewVersion


@dataclass(frozen=True, slots=True)
class SetCurrentViewVersion:
    """The update of a commit that makes a version of a view the current one."""

    version_id: int


@dataclass(frozen=True, slots=True)
class AssertViewUuid:
    """The requirement of a commit that the view has this uuid, in any case of letters."""

    uuid: str

    def check(self, view: ViewMetadata) -> None:
        """Raises `CommitFailed` if the view's uuid is not the required one."""
        if not same_uuid(self.uuid, view["view-uuid"]):
            raise requirement_failed(f"view UUID does not match: expected {view['view-uuid']} != {self.uuid}")


ViewUpdate: TypeAlias = (
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetLocation
    | SetProperties
    | RemoveProperties
    | AddViewVersion
    | SetCurrentViewVersion
)

_SHARED = (
    "assign-uuid",
    "upgrade-format-version",
    "add-schema",
    "set-location",
)
VIEW_UPDATES: dict[str, Callable[[Fields], ViewUpdate]] = {
    **cast("dict[str, Callable[[Fields], ViewUpdate]]", {name: TABLE_UPDATES[name] for name in _SHARED}),
    "set-properties": set_properties,
    "remove-properties": remove_properties,
    "add-view-version": lambda fields: AddViewVersion(fields.required("view-version", VIEW_VERSION)),
    "set-current-view-version": lambda fields: SetCurrentViewVersion(fields.required("view-version-id", INT)),
}
VIEW_REQUIREMENTS: dict[str, Callable[[Fields], AssertViewUuid]] = {
    "assert-view-uuid": lambda fields: AssertViewUuid(fields.required("uuid", STRING)),
}


@dataclass(frozen=True, slots=True)
class ViewCommit:
    """A client's commit to one view: the requirements and updates in the request's order; and the names by which the
    request has them in `type` and `action`, in lower case."""

    requirements: tuple[AssertViewUuid, ...]
    updates: tuple[ViewUpdate, ...]
    requirement_types: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()


def parse_view_commit(body: JsonValue, checkpoint: Checkpoint = no_deadline) -> ViewCommit:
    """Reads a `CommitViewRequest`, except its identifier. Raises what `checkpoint` raises, and `BadRequest` for
    unknown, too many or invalid requirements and updates, as `parse_commit` does."""
    return ViewCommit(*parse_changes(body, VIEW_REQUIREMENTS, VIEW_UPDATES, checkpoint))


def apply_view_commit(
    base: JsonObject | None, commit: ViewCommit, *, now_ms: int, name: str, checkpoint: Checkpoint = no_deadline
) -> JsonObject | None:
    """Returns the view's next metadata, None if the commit changes nothing. `base` is never changed.

    `now_ms` is the time in milliseconds since 1970. Raises `NoSuchView` if `base` is None, `CommitFailed` if a
    requirement fails, `BadRequest` if an update is not allowed, and what `checkpoint` raises.
    """
    if base is None:
        raise NoSuchView(f"View does not exist: {name}")
    draft = ViewDraft(complete_view(base), now_ms)
    for requirement in commit.requirements:
        checkpoint()
        requirement.check(draft.base)
    for update in commit.updates:
        checkpoint()
        draft.apply(update)
    checkpoint()
    return draft.finish()


class ViewDraft:
    """The next metadata of a view while updates are applied to it. It shares members with its base, as `TableDraft`
    does."""

    def __init__(self, base: ViewMetadata, now_ms: int) -> None:
        self.base = base
        self.metadata = cast(
            ViewMetadata,
            {name: value.copy() if isinstance(value, list | dict) else value for name, value in base.items()},
        )
        self.now_ms = now_ms
        self.names = NameBudget()
        self.schemas = numbered_schemas(base["schemas"])
        self.versions = NumberedObjects(
            base["versions"],
            lambda version: version["version-id"],
            lambda version: len(version["representations"]),
            version_meaning,
        )
        self.last_added_schema: int | None = None
        self.last_added_version: int | None = None
        self.added: dict[int, ViewVersion] = {}
        self.log_entry: VersionLogEntry | None = None

    def apply(self, update: ViewUpdate) -> None:
        """Applies one update of a commit to the view's next metadata; a uuid or format version can only be confirmed.
        Raises `BadRequest` if it is not allowed."""
        match update:
            case AssignUuid(uuid):
                if not same_uuid(uuid, self.base["view-uuid"]):
                    raise BadRequest(f"Cannot reassign uuid: the view's is {self.base['view-uuid']}")
            case UpgradeFormatVersion(version):
                self._upgrade(version)
            case AddSchema(schema):
                self.add_schema(schema)
            case SetLocation(location):
                self.metadata["location"] = location
            case SetProperties(properties):
                self.metadata["properties"].update(properties)
            case RemoveProperties(names):
                for name in names:
                    self.metadata["properties"].pop(name, None)
            case AddViewVersion(version):
                self.add_version(version)
            case SetCurrentViewVersion(version_id):
                self.set_current(version_id)
            case _:
                assert_never(update)

    def _upgrade(self, version: int) -> None:
        """Fails for a format version that views can't have or that is lower than the present one; otherwise does
        nothing."""
        current = self.metadata["format-version"]
        if version < current:
            raise BadRequest(f"Cannot downgrade v{current} view to v{version}")
        if version > FORMAT_VERSION:
            raise BadRequest(f"Unsupported format version: {version} (supported for views: {FORMAT_VERSION})")

    def add_schema(self, schema: Schema) -> None:
        """Stores a schema under the id of an equal one, else under the next id. It becomes the one that `LAST_ADDED`
        stands for. The column ids are the client's. Raises `BadRequest` for a schema that is not valid."""
        check_schema(schema, columns_by_id(schema, self.names), 3)
        schema_id = self.schemas.id_of(schema)
        if schema_id is None:
            schema_id = self.schemas.next_id("schema")
            self.schemas.add(schema_id, cast(Schema, {**schema, "schema-id": schema_id}))
            self.metadata["schemas"].append(self.schemas.by_id[schema_id])
        self.last_added_schema = schema_id

    def add_version(self, version: ViewVersion) -> None:
        """Stores a version under the id of an equal one, else under its own id if that is higher than all others, else
        under the next id. It becomes the one that `LAST_ADDED` stands for, not the current one. Raises `BadRequest` for
        an unknown schema, and `IllegalArgument` for two queries of one dialect."""
        version = {**version, "schema-id": resolved_id("schema", version["schema-id"], self.last_added_schema)}
        known = self.versions.id_of(version)
        if known is not None:
            self.last_added_version = known
            return
        if version["schema-id"] not in self.schemas.by_id:
            raise BadRequest(f"Cannot add version with unknown schema: {version['schema-id']} (in add-view-version)")
        check_dialects(version)
        version_id = max(version["version-id"], self.versions.next_id("view version"), 1)
        version = {**version, "version-id": version_id}
        self.versions.add(version_id, version)
        self.metadata["versions"].append(version)
        self.added[version["version-id"]] = version
        self.last_added_version = version["version-id"]

    def set_current(self, version_id: int) -> None:
        """Makes a known version the current one; `LAST_ADDED` is the one that this commit added last. Only the last
        such change of a commit is added to the version log. Raises `BadRequest` for an unknown version."""
        if version_id == LAST_ADDED:
            if self.last_added_version is None:
                raise BadRequest(
                    "Cannot set last version id: no current version id has been set (the commit adds no version)"
                )
            version_id = self.last_added_version
        if version_id == self.metadata["current-version-id"]:
            return
        if version_id not in self.versions.by_id:
            raise BadRequest(f"Cannot set current version to unknown version: {version_id}")
        self.metadata["current-version-id"] = version_id
        time = self.added[version_id]["timestamp-ms"] if version_id in self.added else self.now_ms
        self.log_entry = {"timestamp-ms": time, "version-id": version_id}

    def finish(self) -> JsonObject | None:
        """Returns the document of the view's next metadata, None if it equals the base. It has at most as many versions
        as the history may have, or as this commit added together with the current one if those are more. Raises
        `BadRequest` if the current version lacks a dialect that the one before had, unless the property
        `replace.drop-dialect.allowed` is true, for an empty location, as `/` is, and if the size of the history is no
        positive integer."""
        if self.log_entry is not None:
            self.metadata["version-log"].append(self.log_entry)
        if self.metadata == self.base:
            return None
        if not self.metadata["location"]:
            raise BadRequest("Cannot write metadata without a location: 'set-location' has only slashes")
        self._refuse_lost_dialects()
        self._expire_versions()
        return cast(JsonObject, self.metadata)

    def _refuse_lost_dialects(self) -> None:
        """Fails if the current version does not have an SQL dialect of the one that was current before the commit,
        unless the property `replace.drop-dialect.allowed` is true."""
        if is_true(self.metadata["properties"], DROP_DIALECT_ALLOWED):
            return
        before, after = dialects(current_version(self.base)), dialects(current_version(self.metadata))
        if not set(before) <= set(after):
            raise BadRequest(
                f"Cannot replace view due to loss of view dialects ({DROP_DIALECT_ALLOWED}=false):\n"
                f"Previous dialects: [{', '.join(before)}]\nNew dialects: [{', '.join(after)}]"
            )

    def _expire_versions(self) -> None:
        """Removes the oldest versions except the current one, until as many are left as the history may have, or, if
        those are more, as this commit added together with the current one. The version log begins after the last entry
        of a removed version. Fails if the property for the history's size is not a positive integer."""
        size = history_size(self.metadata["properties"])
        versions, current = self.metadata["versions"], self.metadata["current-version-id"]
        count = max(size, len({*self.added, current}))
        if len(versions) <= count:
            return
        newest_first = sorted((version["version-id"] for version in versions), reverse=True)
        kept = {current, *[version_id for version_id in newest_first if version_id != current][: count - 1]}
        self.metadata["versions"] = [version for version in versions if version["version-id"] in kept]
        log: list[VersionLogEntry] = []
        for entry in self.metadata["version-log"]:
            if entry["version-id"] in kept:
                log.append(entry)
            else:
                log.clear()
        self.metadata["version-log"] = log
