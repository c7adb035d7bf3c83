"""Usual questions to the tables of `system`, as SQL for Spark, Trino and DuckDB, and as views.

The SQL names tables without their namespace: a view has a default namespace, and another query needs `USE` before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, LongType, NestedField, StringType, TimestamptzType

_TEXT, _NUMBER, _TIME = StringType(), LongType(), TimestamptzType()
_TABLE = (("namespace", _TEXT), ("name", _TEXT))
_WEEK = "current_timestamp - INTERVAL '7' DAY"


@dataclass(frozen=True, slots=True)
class Question:
    """A usual question to the tables of `system`, in words, the columns of the result, and the SQL as a template. With
    `hides_rows`, the result has only rows about tables and views that the querying user may load."""

    name: str
    description: str
    columns: Sequence[tuple[str, IcebergType]]
    sql: str
    hides_rows: bool = False

    def text(self, system: str = "") -> str:
        """Returns the SQL of the question, in which the text `system` is put before the names of tables, such as
        `main.system.`; by default they have no namespace."""
        return self.sql.format(system=system, week=_WEEK)

    @property
    def schema(self) -> Schema:
        """The Iceberg schema of the result."""
        return Schema(*(NestedField(place, name, type_) for place, (name, type_) in enumerate(self.columns, 1)))


LAST_WRITERS = Question(
    "last_writers",
    "Who wrote to a table in the last seven days, and from where?",
    (*_TABLE, *((name, _TEXT) for name in ("principal", "client", "engine")), ("commits", _NUMBER), ("last", _TIME)),
    """\
SELECT namespace, name, principal, client, engine, count(*) AS commits, max(committed_at) AS last
FROM {system}commits
WHERE committed_at > {week}
GROUP BY namespace, name, principal, client, engine""",
)
GROWTH = Question(
    "growth",
    "What grew in the last seven days, by bytes and rows?",
    (*_TABLE, ("snapshots", _NUMBER), ("grown_bytes", _NUMBER), ("grown_records", _NUMBER)),
    """\
SELECT namespace, name, count(*) AS snapshots,
  CAST(sum(coalesce(added_bytes, 0) - coalesce(removed_bytes, 0)) AS bigint) AS grown_bytes,
  CAST(sum(coalesce(added_records, 0) - coalesce(deleted_records, 0)) AS bigint) AS grown_records
FROM {system}snapshots
WHERE committed_at > {week}
GROUP BY namespace, name""",
)
UNVERIFIED_WRITES = Question(
    "unverified_writes",
    "Which commits added snapshots whose lineage is only declared?",
    (("committed_at", _TIME), *_TABLE, ("principal", _TEXT), ("client", _TEXT), ("snapshot_id", _NUMBER)),
    """\
SELECT c.committed_at, c.namespace, c.name, c.principal, c.client, s.snapshot_id
FROM {system}commits c
JOIN {system}snapshots s ON s.commit_key = c.commit_key
WHERE c.lineage_confidence = 'DeclaredUnverified'""",
)
STALE_TABLES = Question(
    "stale_tables",
    "Which tables, that were not dropped, got no snapshot for thirty days?",
    (*_TABLE, ("last_snapshot", _TIME), ("bytes", _NUMBER)),
    """\
SELECT t.namespace, t.name, s.last_snapshot, t.bytes
FROM {system}tables t
LEFT JOIN (
  SELECT entity, max(committed_at) AS last_snapshot
  FROM {system}snapshots
  GROUP BY entity
) s ON s.entity = t.entity
LEFT JOIN (
  SELECT entity,
    max(CASE WHEN kind IN ('drop-table', 'drop-followed') THEN sequence END) AS dropped,
    max(CASE WHEN kind = 'undrop' THEN sequence END) AS undropped
  FROM {system}catalog_events
  GROUP BY entity
) e ON e.entity = t.entity
WHERE t.current
  AND coalesce(s.last_snapshot, t.committed_at) < current_timestamp - INTERVAL '30' DAY
  AND (e.dropped IS NULL OR e.undropped > e.dropped)""",
)
HOT_TABLES = Question(
    "hot_tables",
    "Which tables were read and written most in the last seven days? (Reads are known with ARCO_METRICS=store.)",
    (*_TABLE, ("scans", _NUMBER), ("commits", _NUMBER)),
    """\
SELECT namespace, name, CAST(sum(scans) AS bigint) AS scans, CAST(sum(commits) AS bigint) AS commits
FROM (
  SELECT namespace, name, 1 AS scans, 0 AS commits
  FROM {system}reports
  WHERE report_type = 'scan' AND received_at > {week}
  UNION ALL
  SELECT namespace, name, 0 AS scans, 1 AS commits
  FROM {system}commits
  WHERE committed_at > {week}
) used
GROUP BY namespace, name""",
)
MADE_FROM = Question(
    "made_from",
    "What was a table made from, by which jobs, and can it be relied on?",
    (
        *(("output_namespace", _TEXT), ("output_name", _TEXT), ("input_namespace", _TEXT), ("input_name", _TEXT)),
        *(("input_dataset", _TEXT), ("job_name", _TEXT), ("lineage_confidence", _TEXT)),
        *(("edges", _NUMBER), ("last", _TIME)),
    ),
    """\
SELECT output_namespace, output_name, input_namespace, input_name, input_dataset, job_name, lineage_confidence,
  count(*) AS edges, max(happened_at) AS last
FROM {system}lineage
WHERE input_dataset IS NOT NULL
GROUP BY output_namespace, output_name, input_namespace, input_name, input_dataset, job_name, lineage_confidence""",
)
SAVINGS = Question(
    "savings",
    "What did each policy save?",
    (
        *_TABLE,
        *(("policy", _TEXT), ("procedure", _TEXT), ("calls", _NUMBER), ("data_files", _NUMBER)),
        *(("bytes", _NUMBER), ("snapshots", _NUMBER), ("rewritten_bytes", _NUMBER), ("took_ms", _NUMBER)),
    ),
    """\
SELECT namespace, name, policy, procedure, count(*) AS calls,
  CAST(sum(data_files_before - data_files_after) AS bigint) AS data_files,
  CAST(sum(bytes_before - bytes_after) AS bigint) AS bytes,
  CAST(sum(snapshots_before - snapshots_after) AS bigint) AS snapshots,
  CAST(sum(rewritten_bytes) AS bigint) AS rewritten_bytes,
  CAST(sum(took_ms) AS bigint) AS took_ms
FROM {system}maintenance
GROUP BY namespace, name, policy, procedure""",
)
ALL = (LAST_WRITERS, GROWTH, UNVERIFIED_WRITES, STALE_TABLES, HOT_TABLES, MADE_FROM, SAVINGS)
