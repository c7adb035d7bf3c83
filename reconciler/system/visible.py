"""The tables of `system`, and the answers of usual questions, as views that show a reader the rows of what it may load
(docs/pipeline.md#who-sees-which-rows).

Who asks is `current_user`, by the name of its principal, and `readers` tells what that may load. A row is judged by its
entity, or by the namespace that its table or view has today: that of the row, unless a rename has moved it since. A
grant on a namespace is none on what had left another namespace of its name before that was dropped. All
joins are by equality, but for one: the distinct namespaces of a table with the grants of one principal. Only the
columns by which files are pruned are told so plainly that a condition on them reaches the table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.system import questions, tables
from reconciler.system.definition import SystemTable
from reconciler.system.iceberg import schema_of
from reconciler.system.questions import Question

PREFIX = "visible_"
_RENAMES = "kind IN ('rename-table', 'rename-view')"
_ARRIVALS = (
    "kind IN ('create-table', 'create-view', 'register-table', 'register-view', 'rename-table', 'rename-view', "
    "'undrop', 'follow')"
)
_DROPS = "kind IN ('drop-table', 'drop-view', 'drop-followed')"


@dataclass(frozen=True, slots=True)
class Side:
    """One table or view that a row is about: the columns with its entity and namespace, and what it is, as SQL. Joins
    for it are named with `prefix`."""

    entity: str = "entity"
    namespace: str = "namespace"
    kind: str = "'table'"
    prefix: str = ""

    def joins(self, table: str) -> str:
        """What tells whether it may be seen."""
        p = self.prefix
        return f"""\
LEFT JOIN (
  SELECT DISTINCT entity
  FROM {{system}}readers
  WHERE principal = current_user AND entity IS NOT NULL
) {p}granted ON {p}granted.entity = x.{self.entity}
LEFT JOIN (
  SELECT entity, max_by(to_namespace, sequence) AS namespace
  FROM {{system}}catalog_events
  WHERE {_RENAMES}
  GROUP BY entity
) {p}moved ON {p}moved.entity = x.{self.entity}
LEFT JOIN (
  SELECT
    entity,
    max(CASE WHEN {_ARRIVALS} THEN sequence END) AS came,
    max(CASE WHEN {_DROPS} THEN sequence END) AS dropped
  FROM {{system}}catalog_events
  GROUP BY entity
) {p}history ON {p}history.entity = x.{self.entity}
LEFT JOIN (
  SELECT may.entity_type, there.namespace, min(may.since) AS since
  FROM (
    SELECT coalesce({self.namespace}, '') AS namespace FROM {{system}}{table}
    UNION
    SELECT coalesce(to_namespace, '') AS namespace FROM {{system}}catalog_events WHERE {_RENAMES}
  ) there
  JOIN (
    SELECT DISTINCT held.entity_type, held.namespace, coalesce(emptied.sequence, -1) AS since
    FROM {{system}}readers held
    LEFT JOIN (
      SELECT namespace, max(sequence) AS sequence
      FROM {{system}}catalog_events
      WHERE kind = 'drop-namespace'
      GROUP BY namespace
    ) emptied ON emptied.namespace = held.namespace
    WHERE held.principal = current_user AND held.entity IS NULL
  ) may ON may.namespace IS NULL
    OR there.namespace = may.namespace
    OR substr(there.namespace, 1, length(may.namespace) + 1) = concat(may.namespace, '.')
  GROUP BY may.entity_type, there.namespace
) {p}inside ON {p}inside.entity_type = {self.kind} AND {p}inside.namespace =
  CASE WHEN {p}moved.entity IS NULL THEN coalesce(x.{self.namespace}, '') ELSE coalesce({p}moved.namespace, '') END"""

    @property
    def seen(self) -> str:
        """Whether it may be. An entity of which no event is known came after the namespace was made."""
        p = self.prefix
        since = f"coalesce({p}history.came, {p}history.dropped, {p}inside.since + 1) > {p}inside.since"
        return f"({p}granted.entity IS NOT NULL OR ({p}inside.namespace IS NOT NULL AND {since}))"


@dataclass(frozen=True, slots=True)
class Shown:
    """How a table is shown: by what its rows are judged; the columns that are told otherwise, as SQL; which rows are
    about a table or view at all, and what is joined to find out."""

    table: SystemTable
    sides: Sequence[Side] = (Side(),)
    instead: Mapping[str, str] = field(default_factory=dict)
    about: str | None = None
    joined: str = ""

    @property
    def question(self) -> Question:
        """The view."""
        table = self.table
        columns = [(each.name, each.field_type) for each in schema_of(table).fields]
        pruned = {table.day, "current" if table.has_current else None}
        told = ",\n".join(f"  {self.instead.get(name) or _told(name, name in pruned)}" for name, _ in columns)
        joins = "\n".join(filter(None, [self.joined, *(side.joins(table.name) for side in self.sides)]))
        seen = " OR ".join(side.seen for side in self.sides)
        about = "" if self.about is None else f"({self.about})\n  AND "
        sql = f"SELECT\n{told}\nFROM {{system}}{table.name} x\n{joins}\nWHERE {about}({seen})"
        asks = f"Rows of {table.name} about what current_user may load. {table.doc}"
        return Question(f"{PREFIX}{table.name}", asks, columns, sql, hides=True)


def _told(name: str, plain: bool) -> str:
    """A column as it is. Unless it is told `plain`, no engine asks a reader's condition of it before it hides rows:
    conditions are not moved below what is not deterministic. Else the error of a cast would tell of what is hidden."""
    return f"x.{name}" if plain else f"CASE WHEN random() >= 0 THEN x.{name} END AS {name}"


def _unless(side: Side, *columns: str) -> Mapping[str, str]:
    """Columns that are null where a side may not be seen."""
    return {name: f"CASE WHEN {side.seen} AND random() >= 0 THEN x.{name} END AS {name}" for name in columns}


def _never(*columns: str) -> Mapping[str, str]:
    """Columns that are null for everybody, by a text that all engines read."""
    return {name: f"CASE WHEN 1 = 0 THEN x.{name} END AS {name}" for name in columns}


_EITHER = Side(kind="x.entity_type")
_INPUT = Side("input_entity", "input_namespace", prefix="input_")
_OUTPUT = Side("output_entity", "output_namespace", prefix="output_")
_SIDE = ("entity", "namespace", "name", "snapshot_id", "dataset")
_LINEAGE = Shown(
    tables.LINEAGE,
    (_INPUT, _OUTPUT),
    {
        **_unless(_INPUT, *(f"input_{name}" for name in _SIDE)),
        **_unless(_OUTPUT, *(f"output_{name}" for name in _SIDE)),
        **_unless(_OUTPUT, "commit_key", "task_id", "job_namespace", "job_name"),
        "edge_id": f"CASE WHEN {_INPUT.seen} AND {_OUTPUT.seen} AND random() >= 0 THEN x.edge_id END AS edge_id",
    },
)
"""Who sees one end of an edge alone is told nothing of the other: jobs are called after what they write."""
_EVENTS = Shown(
    tables.CATALOG_EVENTS,
    (Side(kind="CASE WHEN x.kind LIKE '%-view' OR dropped.entity IS NOT NULL THEN 'view' ELSE 'table' END"),),
    about="x.kind LIKE '%-table' OR x.kind LIKE '%-view' OR x.kind IN ('undrop', 'follow', 'drop-followed')",
    joined="""\
LEFT JOIN (
  SELECT DISTINCT entity
  FROM {system}catalog_events
  WHERE kind = 'drop-view'
) dropped ON dropped.entity = x.entity""",
)
"""Only what was done to tables and views. An undrop does not say of which it was."""
SHOWN = (
    *(Shown(table, (_EITHER,)) for table in (tables.COMMITS, tables.COLUMNS)),
    *(Shown(table) for table in (tables.TABLES, tables.REFS, tables.SNAPSHOTS, tables.FILES_HEALTH, tables.REPORTS)),
    Shown(tables.VIEWS, (Side(kind="'view'"),)),
    Shown(tables.TASKS, instead=_never("summary", "checkpoint")),
    Shown(tables.MAINTENANCE, instead=_never("explanation")),
    _LINEAGE,
    _EVENTS,
)
"""What is said in words of a task or a procedure may name another table, that was in the way."""


def _of_visible(question: Question) -> Question:
    asks = f"{question.asks} Of what current_user may load."
    sql = question.sql.replace("{system}", "{system}" + PREFIX)
    return Question(PREFIX + question.name, asks, question.columns, sql, hides=True)


ALL = (*(shown.question for shown in SHOWN), *map(_of_visible, questions.ALL))
"""Made in a realm only."""
