"""The definitions of the tables of `system` (docs/pipeline.md describes them for users)."""

from arco_catalog.state import watermarks
from reconciler.system.definition import Column, SystemTable, Type

_ENTITY = Column("entity", Type.STRING, "the catalog's own id of the table or view: it survives renames", required=True)
_ENTITY_TYPE = Column("entity_type", Type.STRING, "table or view")
_UUID = Column("table_uuid", Type.STRING, "the uuid in its metadata, which clients choose")
_NAMESPACE = Column("namespace", Type.STRING, "the levels of its namespace, joined by dots, at that time")
_NAME = Column("name", Type.STRING, "its name at that time")
_COMMIT_KEY = Column("commit_key", Type.STRING, "SHA-256 of entity and metadata location: one commit for ever", True)
_COMMITTED_AT = Column("committed_at", Type.TIME, "the time in the metadata file that the commit made current", True)
_METADATA = Column("metadata_location", Type.STRING, "the metadata file that it made current")
_GONE = Column(
    "metadata_gone",
    Type.BOOLEAN,
    "the file was deleted before it was read; null if it could not be read: both rows are the receipt's",
)
_CURRENT = Column("current", Type.BOOLEAN, "whether this is the newest of the entity", required=True)
_BATCH = Column("batch", Type.LONG, "the batch that brought the row: what is new since batch n has a higher one", True)
_FORMAT = Column("format_version", Type.INT, "version of Iceberg's format")
_PRINCIPAL = Column("principal", Type.STRING, "the principal that sent the request")
_SOURCE_KIND = Column("source_kind", Type.STRING, "IcebergRest, Servo, AdminApi, Cli, Reconciler, Restored")
_CLIENT = Column("client", Type.STRING, "products of the client's User-Agent")
_RUN = Column("run_id", Type.STRING, "the Servo run, of a commit by Servo")
_TASK = Column("task_id", Type.STRING, "the Servo task, of a commit by Servo")
_USER = Column("user_id", Type.STRING, "the user of the admin API, of a commit by it")
_PARENT_RUNS = (
    Column("parent_run_id", Type.STRING, "the run of which it is a part (facet parent)"),
    Column("root_run_id", Type.STRING, "the run that started it and its parents (facet parent, root)"),
)
_JOB = (
    Column("job_namespace", Type.STRING, "where the job is known: its scheduler, often"),
    Column("job_name", Type.STRING, "what ran"),
    Column("principal", Type.STRING, "who sent the event, or committed"),
)
_LINEAGE_COMMIT = Column("commit_key", Type.STRING, "the commit that wrote it; null if none is known")
_PROPERTIES = Column("properties", Type.PROPERTIES, "its properties")

_COMMIT = (_ENTITY, _COMMIT_KEY, _COMMITTED_AT, _NAMESPACE, _NAME)
_CALLER = (_PRINCIPAL, _SOURCE_KIND, _CLIENT, _RUN, _TASK, _USER)

COMMITS = SystemTable(
    watermarks.COMMITS,
    "One row for each commit of a table or view, from the receipt.",
    (
        Column("event_id", Type.STRING, "a ULID of the commit's time and key", True),
        _COMMIT_KEY,
        _COMMITTED_AT,
        _ENTITY,
        _ENTITY_TYPE,
        _UUID,
        _NAMESPACE,
        _NAME,
        _METADATA,
        Column("previous_metadata_location", Type.STRING, "the file that it replaced; null for a create"),
        Column("sequence_number", Type.LONG, "of the snapshot that became current"),
        Column("snapshot_id", Type.LONG, "the current snapshot after the commit"),
        Column("added_snapshot_ids", Type.LONGS, "the snapshots that it added"),
        Column("operation", Type.STRING, "of the newest snapshot that it added: append, overwrite, delete, replace"),
        Column("summary", Type.PROPERTIES, "of that snapshot"),
        Column("requirements", Type.STRINGS, "the kinds of requirements that it made"),
        Column("updates", Type.STRINGS, "the kinds of updates that it made"),
        Column("request_method", Type.STRING, "of the HTTP request"),
        Column("request_path", Type.STRING, "of the HTTP request"),
        Column("request_id", Type.STRING, "by which logs know the request: the client's X-Request-Id, if it sent one"),
        Column("idempotency_key_hash", Type.STRING, "SHA-256 of its Idempotency-Key, by which its marker is kept"),
        Column("attempt", Type.STRING, "the id of the attempt that committed: the move in the table's pointer"),
        _SOURCE_KIND,
        _CLIENT,
        Column("engine", Type.STRING, "the engine that made the snapshot, as the snapshot's summary names it"),
        _PRINCIPAL,
        Column("principal_id", Type.STRING, "the principal's id in the realm, if there is one"),
        _RUN,
        _TASK,
        _USER,
        Column("source_claimed", Type.BOOLEAN, "an anonymous client declared the source, which is not verified"),
        Column("lineage_confidence", Type.STRING, "Verified, DeclaredUnverified or None", True),
        Column("quality_status", Type.STRING, "Checked or NotChecked", True),
        _GONE,
        _BATCH,
    ),
    order=("entity", "committed_at"),
    day="committed_at",
)
CATALOG_EVENTS = SystemTable(
    watermarks.CATALOG_EVENTS,
    "One row for each operation on the catalog's registry: names, properties of namespaces, grants.",
    (
        Column("event_id", Type.STRING, "the operation's id", True),
        Column("commit_id", Type.STRING, "the registry commit that made it", True),
        Column("sequence", Type.LONG, "the number of that commit", True),
        Column("at", Type.TIME, "the time of that commit", True),
        Column("kind", Type.STRING, "create-table, drop-table, rename-table, register-table, add-grant, ...", True),
        Column("entity", Type.STRING, "the table, view or namespace that it is about"),
        _NAMESPACE,
        _NAME,
        Column("to_namespace", Type.STRING, "of a rename: the namespace that it has since"),
        Column("to_name", Type.STRING, "of a rename: the name that it has since"),
        *_CALLER,
        Column("details", Type.STRING, "the registry's record of the operation, as JSON"),
    ),
    order=("sequence",),
    day="at",
    watermark=watermarks.REGISTRY_SEQUENCE,
)
_VERSION = (*_COMMIT, _METADATA, _CURRENT)
TABLES = SystemTable(
    "tables",
    "One row for each version of a table, from the metadata file.",
    (
        *_VERSION,
        _UUID,
        _FORMAT,
        Column("location", Type.STRING, "where its files lie"),
        _PROPERTIES,
        Column("schema_id", Type.INT, "of its schema in this version"),
        Column("partition_spec", Type.STRING, "by which new files are partitioned, as JSON"),
        Column("sort_order", Type.STRING, "by which new files are sorted, as JSON"),
        Column("snapshot_id", Type.LONG, "its current snapshot; null if it has none"),
        Column("snapshots", Type.LONG, "how many snapshots it keeps"),
        Column("records", Type.LONG, "in the current snapshot, from the summary"),
        Column("data_files", Type.LONG, "in the current snapshot"),
        Column("bytes", Type.LONG, "in the current snapshot"),
        _GONE,
    ),
    order=("namespace", "name", "committed_at"),
    has_current=True,
)
VIEWS = SystemTable(
    "views",
    "One row for each version of a view, from the metadata file.",
    (
        *_VERSION,
        Column("view_uuid", Type.STRING, "the uuid in its metadata"),
        _FORMAT,
        Column("location", Type.STRING, "where its metadata lies"),
        _PROPERTIES,
        Column("version_id", Type.INT, "its current version"),
        Column("dialects", Type.STRINGS, "in which it is written"),
        Column("sql", Type.STRING, "its text in the first of them"),
        _GONE,
    ),
    order=("namespace", "name", "committed_at"),
    has_current=True,
)
COLUMNS = SystemTable(
    "columns",
    "One row for each column of a table's or view's schema, in each version that set a schema.",
    (
        *_VERSION,
        _ENTITY_TYPE,
        Column("schema_id", Type.INT, "of the schema"),
        Column("field_id", Type.INT, "of the column: it survives renames"),
        Column("position", Type.INT, "from 1; nested fields follow the one that holds them"),
        Column("column_name", Type.STRING, "with the names of what holds it before it, joined by dots", True),
        Column("data_type", Type.STRING, "its type"),
        Column("nullable", Type.BOOLEAN, "whether it may be null"),
        Column("comment", Type.STRING, "its documentation"),
    ),
    order=("namespace", "name", "position"),
    has_current=True,
)
REFS = SystemTable(
    "refs",
    "One row for each branch and tag of a table, in each version.",
    (
        *_VERSION,
        Column("ref", Type.STRING, "name of the branch or tag", True),
        Column("ref_type", Type.STRING, "branch or tag"),
        Column("snapshot_id", Type.LONG, "where it points"),
    ),
    order=("namespace", "name", "ref"),
    has_current=True,
)
SNAPSHOTS = SystemTable(
    "snapshots",
    "One row for each snapshot that a commit added to a table.",
    (
        *_COMMIT,
        Column("snapshot_id", Type.LONG, "its id", True),
        Column("parent_id", Type.LONG, "the snapshot before it"),
        Column("sequence_number", Type.LONG, "its sequence number"),
        Column("snapshot_at", Type.TIME, "its own time, by its writer's clock"),
        Column("operation", Type.STRING, "append, overwrite, delete or replace"),
        Column("manifest_list", Type.STRING, "its file"),
        Column("schema_id", Type.INT, "of the schema by which it was written"),
        Column("added_data_files", Type.LONG, "by it"),
        Column("deleted_data_files", Type.LONG, "by it"),
        Column("added_records", Type.LONG, "by it"),
        Column("deleted_records", Type.LONG, "by it"),
        Column("added_bytes", Type.LONG, "by it"),
        Column("removed_bytes", Type.LONG, "by it"),
        Column("total_records", Type.LONG, "in the table after it"),
        Column("total_data_files", Type.LONG, "in the table after it"),
        Column("total_delete_files", Type.LONG, "in the table after it"),
        Column("total_bytes", Type.LONG, "in the table after it"),
        Column("summary", Type.PROPERTIES, "the snapshot's summary, as the writer made it"),
        _GONE,
    ),
    order=("entity", "snapshot_id"),
    day="committed_at",
)
FILES_HEALTH = SystemTable(
    "files_health",
    "One row for each snapshot that was current when a batch read the table: the counts of the manifests.",
    (
        *_COMMIT,
        Column("snapshot_id", Type.LONG, "whose files these are", True),
        Column("data_files", Type.LONG, "live data files"),
        Column("small_files", Type.LONG, "data files under three quarters of the table's target size"),
        Column("delete_files", Type.LONG, "live delete files, deletion vectors among them"),
        Column("manifests", Type.LONG, "manifests of the snapshot"),
        Column("records", Type.LONG, "rows in data files, deleted ones included"),
        Column("bytes", Type.LONG, "of data files"),
        Column("small_bytes", Type.LONG, "of small data files"),
        Column("largest_bytes", Type.LONG, "of the largest data file"),
        Column("target_bytes", Type.LONG, "the table's target size of data files"),
        Column("partitions", Type.LONG, "partitions with data files"),
        Column("largest_partition_bytes", Type.LONG, "of the partition that has most: beside the mean, the skew"),
        Column("snapshots", Type.LONG, "how many snapshots the table keeps"),
        Column("unreadable", Type.STRING, "why the manifests could not be read; null where they were"),
    ),
    order=("entity",),
    day="committed_at",
)
TASKS = SystemTable(
    "tasks",
    "One row for each task that ended: a purge, say. One that failed and was submitted again may end twice.",
    (
        Column("task_id", Type.STRING, "the task", True),
        Column("task_version", Type.LONG, "the version of its record that ended it", True),
        Column("task_type", Type.STRING, "TABLE_PURGE, ...", True),
        Column("entity", Type.STRING, "the table that it is about"),
        _NAMESPACE,
        _NAME,
        Column("status", Type.STRING, "SUCCESS or FAILURE", True),
        Column("created_at", Type.TIME, "when it was submitted", True),
        Column("ended_at", Type.TIME, "when it ended"),
        Column("attempts", Type.LONG, "that failed or were lost"),
        Column("summary", Type.STRING, "what came of it"),
        Column("payload", Type.STRING, "what was to be done, as JSON"),
        Column("checkpoint", Type.STRING, "how far it came, as JSON"),
    ),
    order=("task_id",),
    day="created_at",
    watermark=None,
)
LINEAGE_EVENTS = SystemTable(
    "lineage_events",
    "One row for each dataset that an OpenLineage event names, and one for an event that names none.",
    (
        Column("event", Type.STRING, "SHA-256 of the event's stored bytes", True),
        Column("received_on", Type.TIME, "the day on which it came, by the store's clock: its midnight in UTC", True),
        Column("happened_at", Type.TIME, "the event's own time, by the sender's clock", True),
        Column("state", Type.STRING, "START, RUNNING, COMPLETE, ABORT, FAIL or OTHER; null if it is of no run"),
        Column("run_id", Type.STRING, "the run, a uuid; null for an event about a job or dataset alone"),
        *_PARENT_RUNS,
        *_JOB,
        Column("role", Type.STRING, "input or output; null if the event names no dataset"),
        Column("dataset_namespace", Type.STRING, "of the dataset, as the event names it: s3://bucket, file, ..."),
        Column("dataset_name", Type.STRING, "of the dataset, in that namespace: a path, often"),
        Column("further_names", Type.STRINGS, "of the same dataset (facet symlinks): table names, often"),
        Column("further_namespaces", Type.STRINGS, "in which it has these names, one for each"),
        Column("snapshot_id", Type.LONG, "what was read or written of it (facet version)"),
        _BATCH,
    ),
    order=("run_id", "happened_at"),
    day="received_on",
)
LINEAGE = SystemTable(
    "lineage",
    "One row for each edge: what a run read, and the snapshot that it wrote.",
    (
        Column("edge_id", Type.STRING, "SHA-256 of what the edge is: run, input, output, commit", True),
        Column("happened_at", Type.TIME, "the time of the commit; without one, the day on which the event came", True),
        Column("input_entity", Type.STRING, "the table that was read; null if it is none of this catalog"),
        Column("input_namespace", Type.STRING, "its namespace, levels joined by dots"),
        Column("input_name", Type.STRING, "its name"),
        Column("input_snapshot_id", Type.LONG, "the snapshot that was read; null if the event has none"),
        Column("input_dataset", Type.STRING, "the input as the event names it; null if no event names inputs"),
        Column("output_entity", Type.STRING, "the table that was written; null if it is none of this catalog"),
        Column("output_namespace", Type.STRING, "its namespace, levels joined by dots"),
        Column("output_name", Type.STRING, "its name"),
        Column("output_snapshot_id", Type.LONG, "the snapshot that was written: the commit's, or the event's"),
        Column("output_dataset", Type.STRING, "the output as the event names it"),
        _LINEAGE_COMMIT,
        Column("matched_by", Type.STRING, "how the commit was found: snapshot, run or time; null if it was not"),
        Column("run_id", Type.STRING, "the run: OpenLineage's uuid, or the ULID of Servo's", True),
        *_PARENT_RUNS,
        Column("task_id", Type.STRING, "the Servo task, if it made the commit"),
        *_JOB,
        Column("event", Type.STRING, "the event with the edge; null if it is from the receipt of a Servo task"),
        Column("lineage_confidence", Type.STRING, "Verified or DeclaredUnverified", True),
    ),
    order=("output_entity", "happened_at"),
    day="happened_at",
)
REPORTS = SystemTable(
    "reports",
    "One row for each report of a scan or a commit that an engine sent (ARCO_METRICS=store).",
    (
        Column("report_id", Type.STRING, "its name: a ULID of its receipt", True),
        Column("received_at", Type.TIME, "when it came", True),
        Column("report_type", Type.STRING, "scan or commit", True),
        Column("entity", Type.STRING, "the table; null for one that was staged"),
        _NAMESPACE,
        _NAME,
        *_CALLER,
        Column("snapshot_id", Type.LONG, "that was read or written"),
        Column("sequence_number", Type.LONG, "of the snapshot that was written"),
        Column("operation", Type.STRING, "of a commit: append, overwrite, delete, replace"),
        Column("schema_id", Type.INT, "by which was read"),
        Column("filter", Type.STRING, "of a scan, as JSON"),
        Column("projected", Type.STRINGS, "the columns that were read"),
        Column("duration_ms", Type.LONG, "of the planning of a scan, or of a commit"),
        Column("data_files", Type.LONG, "that a scan has to read, or a commit added"),
        Column("delete_files", Type.LONG, "that a scan has to read, or a commit added"),
        Column("records", Type.LONG, "that a commit added"),
        Column("bytes", Type.LONG, "of the data files that a scan has to read, or a commit added"),
        Column("metrics", Type.PROPERTIES, "all counters and timers, by their names"),
        _BATCH,
    ),
    order=("entity", "received_at"),
    day="received_at",
)
MAINTENANCE = SystemTable(
    "maintenance",
    "One row for each procedure that was called to maintain a table: reason and outcome.",
    (
        Column("task_id", Type.STRING, "the task of the table's maintenance", True),
        Column("step", Type.LONG, "which of its procedures this was, from 1", True),
        _ENTITY,
        _NAMESPACE,
        _NAME,
        Column("procedure", Type.STRING, "rewrite_data_files, rewrite_manifests, expire_snapshots, ...", True),
        Column("policy", Type.STRING, "the policy that required it, with the namespace"),
        Column("policy_version", Type.LONG, "the version of that policy"),
        Column("reason", Type.STRING, "why it was due, in figures"),
        Column("expected", Type.STRING, "what it was expected to gain"),
        Column("arguments", Type.STRING, "of the call, as JSON"),
        Column("began_at", Type.TIME, "when it was begun first", True),
        Column("ended_at", Type.TIME, "when the outcome was known", True),
        Column("outcome", Type.STRING, "done, partly, conflict (a writer was first), failed or held-back", True),
        Column("explanation", Type.STRING, "of an outcome that is not plainly done"),
        Column("snapshot_id_before", Type.LONG, "the current snapshot before"),
        Column("snapshot_id_after", Type.LONG, "the current snapshot afterwards"),
        Column("data_files_before", Type.LONG, "live data files before"),
        Column("data_files_after", Type.LONG, "live data files afterwards, those of writers meanwhile included"),
        Column("delete_files_before", Type.LONG, "live delete files before"),
        Column("delete_files_after", Type.LONG, "live delete files afterwards"),
        Column("bytes_before", Type.LONG, "of data files before"),
        Column("bytes_after", Type.LONG, "of data files afterwards"),
        Column("manifests_before", Type.LONG, "manifests of the current snapshot before"),
        Column("manifests_after", Type.LONG, "manifests of the current snapshot afterwards"),
        Column("snapshots_before", Type.LONG, "snapshots that the table kept before"),
        Column("snapshots_after", Type.LONG, "snapshots that the table keeps afterwards"),
        Column("result", Type.STRING, "the procedure's result, as JSON; of more than one call the counts added up"),
        Column("rewritten_bytes", Type.LONG, "of the files that all calls rewrote; null if the procedure reports none"),
        Column("took_ms", Type.LONG, "from when it was begun first until the outcome was known, in milliseconds"),
    ),
    order=("entity", "step"),
    day="ended_at",
    watermark=None,
)
READERS = SystemTable(
    "readers",
    "One row for each table, view or namespace with metadata that a principal may load by grants, in a realm.",
    (
        Column("principal", Type.STRING, "the principal's name", True),
        Column("entity_type", Type.STRING, "table or view: of which it may load the metadata", True),
        Column("namespace", Type.STRING, "in which it may, and below: levels joined by dots; null for everywhere"),
        Column("entity", Type.STRING, "the only one that it may; null for all there"),
    ),
    order=("principal", "entity_type", "namespace", "entity"),
    watermark=None,
)
"""It exists in a realm only, and is not in `ALL`."""
ALL = (
    *(COMMITS, CATALOG_EVENTS, TABLES, VIEWS, COLUMNS, REFS, SNAPSHOTS, FILES_HEALTH, TASKS),
    *(LINEAGE_EVENTS, LINEAGE, REPORTS, MAINTENANCE),
)
"""The tables that every catalog has."""
