"""Views of the tables of `system` and of the usual questions that have only rows about tables and views that the
querying user may load (docs/pipeline.md#who-sees-which-rows).

The querying user is `current_user`, the name of a principal, and the table `readers` has what a principal may load. A
row is visible by its entity, or by the present namespace of the table or view: that of the row, unless a rename has
moved it since. A grant on a namespace does not cover a table or view that had left a former namespace of this name
before that was dropped. All joins are by equality, except that of a table's distinct namespaces with the grants of one
principal. Only the columns by which files are pruned are selected in such a way that engines push conditions down to
the table.
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
    """A table or view that a row of a system table is about: the names of the columns with the entity and the
    namespace, and an SQL expression for the kind. The aliases of the joins begin with `prefix`."""

    entity: str = "entity"
    namespace: str = "namespace"
    kind: str = "'table'"
    prefix: str = ""

    def joins(self, table: str) -> str:
        """Returns the SQL joins that the condition `is_visible` needs, for the rows of `table`."""
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
    def is_visible(self) -> str:
        """The SQL condition that the querying user may load the table or view. An entity without events counts as one
        that was created after the namespace."""
        p = self.prefix
        since = f"coalesce({p}history.came, {p}history.dropped, {p}inside.since + 1) > {p}inside.since"
        return f"({p}granted.entity IS NOT NULL OR ({p}inside.namespace IS NOT NULL AND {since}))"


@dataclass(frozen=True, slots=True)
class VisibleTable:
    """The view of a system table that has only visible rows. A row is visible if one of the `sides` is; `expressions`
    has the SQL of columns that are not selected as they are; `about` is an SQL condition for the rows that are about a
    table or view (None: all rows); `joins` has the SQL joins that the sides and expressions need."""

    table: SystemTable
    sides: Sequence[Side] = (Side(),)
    expressions: Mapping[str, str] = field(default_factory=dict)
    about: str | None = None
    joins: str = ""

    @property
    def question(self) -> Question:
        """The view as a question: the SQL selects the visible rows of the table."""
        table = self.table
        columns = [(each.name, each.field_type) for each in schema_of(table).fields]
        pruned = {table.day, "current" if table.has_current else None}
        selected = ",\n".join(f"  {self.expressions.get(name) or _select(name, name in pruned)}" for name, _ in columns)
        joins = "\n".join(filter(None, [self.joins, *(side.joins(table.name) for side in self.sides)]))
        is_visible = " OR ".join(side.is_visible for side in self.sides)
        about = "" if self.about is None else f"({self.about})\n  AND "
        sql = f"SELECT\n{selected}\nFROM {{system}}{table.name} x\n{joins}\nWHERE {about}({is_visible})"
        description = f"Rows of {table.name} about what current_user may load. {table.doc}"
        return Question(f"{PREFIX}{table.name}", description, columns, sql, hides_rows=True)


def _select(name: str, plain: bool) -> str:
    """Returns the SQL that selects a column's value. Unless it is `plain`, engines evaluate a user's condition on the
    column only after rows are hidden, since they push no condition below an expression that is not deterministic.
    Otherwise the error of a cast in the condition could reveal a hidden value."""
    return f"x.{name}" if plain else f"CASE WHEN random() >= 0 THEN x.{name} END AS {name}"


def _unless(side: Side, *columns: str) -> Mapping[str, str]:
    """Returns the SQL of columns that are null in rows in which the table or view of this side is not visible to the
    querying user, by column name."""
    return {name: f"CASE WHEN {side.is_visible} AND random() >= 0 THEN x.{name} END AS {name}" for name in columns}


def _never(*columns: str) -> Mapping[str, str]:
    """Returns the SQL that hides columns: it selects null for them in every row, in the dialects of all engines. The
    keys are the names of the columns."""
    return {name: f"CASE WHEN 1 = 0 THEN x.{name} END AS {name}" for name in columns}


_EITHER = Side(kind="x.entity_type")
_INPUT = Side("input_entity", "input_namespace", prefix="input_")
_OUTPUT = Side("output_entity", "output_namespace", prefix="output_")
_SIDE = ("entity", "namespace", "name", "snapshot_id", "dataset")
_LINEAGE = VisibleTable(
    tables.LINEAGE,
    (_INPUT, _OUTPUT),
    {
        **_unless(_INPUT, *(f"input_{name}" for name in _SIDE)),
        **_unless(_OUTPUT, *(f"output_{name}" for name in _SIDE)),
        **_unless(_OUTPUT, "commit_key", "task_id", "job_namespace", "job_name"),
        "edge_id": (
            f"CASE WHEN {_INPUT.is_visible} AND {_OUTPUT.is_visible} AND random() >= 0 THEN x.edge_id END AS edge_id"
        ),
    },
)
"""In an edge of which one end is visible, the columns of the other are null, and those of the job unless the output is
visible: a job is often named after the output."""
_EVENTS = VisibleTable(
    tables.CATALOG_EVENTS,
    (Side(kind="CASE WHEN x.kind LIKE '%-view' OR dropped.entity IS NOT NULL THEN 'view' ELSE 'table' END"),),
    about="x.kind LIKE '%-table' OR x.kind LIKE '%-view' OR x.kind IN ('undrop', 'follow', 'drop-followed')",
    joins="""\
LEFT JOIN (
  SELECT DISTINCT entity
  FROM {system}catalog_events
  WHERE kind = 'drop-view'
) dropped ON dropped.entity = x.entity""",
)
"""The operations on tables and views only. The event of an undrop has no kind of the entity, so the kind is found by
the event of the drop."""
_BY_ENTITY = (tables.TABLES, tables.REFS, tables.SNAPSHOTS, tables.FILES_HEALTH, tables.REPORTS)
VISIBLE_TABLES = (
    *(VisibleTable(table, (_EITHER,)) for table in (tables.COMMITS, tables.COLUMNS)),
    *(VisibleTable(table) for table in _BY_ENTITY),
    VisibleTable(tables.VIEWS, (Side(kind="'view'"),)),
    VisibleTable(tables.TASKS, expressions=_never("summary", "checkpoint")),
    VisibleTable(tables.MAINTENANCE, expressions=_never("explanation")),
    _LINEAGE,
    _EVENTS,
)
"""The columns of tasks and procedures that have free text are never selected: it may name another table."""


def _over_visible(question: Question) -> Question:
    """Returns a usual question about the views of this module, which show only visible rows, in place of the tables."""
    description = f"{question.description} Of what current_user may load."
    sql = question.sql.replace("{system}", "{system}" + PREFIX)
    return Question(PREFIX + question.name, description, question.columns, sql, hides_rows=True)


ALL = (*(table.question for table in VISIBLE_TABLES), *map(_over_visible, questions.ALL))
"""The views that exist in a realm only."""
