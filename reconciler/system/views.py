"""Writes the views of `system`: creates those that do not exist, and adds a version to those of which the SQL, the
columns or the owner have changed. A view with a current version that another program made is not changed."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

from pyiceberg.exceptions import ViewAlreadyExistsError
from pyiceberg.schema import Schema
from pyiceberg.view import View
from pyiceberg.view.metadata import ViewVersion

from arco_catalog.state.watermarks import NAMESPACE
from reconciler.system import questions
from reconciler.system.questions import Question
from reconciler.system.rest import KeyedRestCatalog

OURS = {"written-by": "arco-pipeline"}
"""The summary of a version that the pipeline made. Older releases left the summary empty; engines write their
names there."""

RUN_AS_OWNER = "trino.run-as-owner"
"""The property by which Trino's Iceberg connector runs a view as the owner, and not as the querying user."""

_NAMED_IN_TRINO = re.compile(rf'"((?:[^"]|"")+)"\.{NAMESPACE}\.')
"""A table of `system` in the SQL for Trino; the group is the catalog's name, with quotes doubled."""


def write_views(
    catalog: KeyedRestCatalog,
    trino_catalog: str | None,
    views: Sequence[Question] = questions.ALL,
    trino_owner: str | None = None,
) -> None:
    """Creates or updates a view for each question. A view with a current version that another program made is not
    changed.

    Trino resolves the tables of a view in the catalog that the SQL names: `trino_catalog` is this catalog's name in
    Trino. If it is None, new views have the catalog's name for other clients, and existing ones keep theirs.
    `trino_owner` is the Trino user as which views that hide rows run. If it is None, new views run as the querying
    user, and existing ones keep their owner.
    """
    existing = {name for *_, name in catalog.list_views(NAMESPACE)}
    for question in views:
        identifier = (NAMESPACE, question.name)
        properties = {"comment": question.description}
        if trino_owner is not None and question.hides_rows:
            properties[RUN_AS_OWNER] = trino_owner
        named = trino_catalog or catalog.properties["warehouse"]
        if question.name not in existing:
            version = _version(question, named)
            with suppress(ViewAlreadyExistsError):  # another run has just made it
                catalog.create_view(identifier, question.schema, version, properties=properties)
            continue
        view = catalog.load_view(identifier)
        version = _version(question, trino_catalog or _trino_catalog(view) or named)
        new_owner = RUN_AS_OWNER in properties and view.properties.get(RUN_AS_OWNER) != properties[RUN_AS_OWNER]
        if _is_ours(view) and (_differs(view, question, version) or new_owner):
            catalog.replace_view(view, question.schema, version, properties)


def _version(question: Question, trino_catalog: str) -> ViewVersion:
    """Returns the view version of a question, with the SQL for Spark, and for Trino with the catalog's name there."""
    quoted = trino_catalog.replace('"', '""')
    before = {"spark": "", "trino": f'"{quoted}".{NAMESPACE}.'}
    return ViewVersion.model_validate(
        {
            "schema-id": 0,
            "summary": OURS,
            "representations": [
                {"type": "sql", "sql": question.text(system), "dialect": dialect} for dialect, system in before.items()
            ],
            "default-namespace": (NAMESPACE,),
        }
    )


def _is_ours(view: View) -> bool:
    """Whether the pipeline made the current version of a view, and no other program: the version's summary has
    `OURS` in it, perhaps with other fields, or is empty, as older releases left it."""
    summary = view.current_version().summary
    return not summary or summary.items() >= OURS.items()


def _differs(view: View, question: Question, version: ViewVersion) -> bool:
    """Whether a view lacks a text of the version, or has other columns than the question."""
    present, texts = _texts(view.current_version()), _texts(version)
    return not texts.items() <= present.items() or _columns(view.schema()) != _columns(question.schema)


def _trino_catalog(view: View) -> str | None:
    """Returns the catalog that a view's SQL for Trino names; None if it names none."""
    found = _NAMED_IN_TRINO.search(_texts(view.current_version()).get("trino", ""))
    return None if found is None else found[1].replace('""', '"')


def _columns(schema: Schema) -> Sequence[tuple[str, str]]:
    """Returns the names and types of columns; types are without the ids of elements, keys and values."""
    return [(field.name, str(field.field_type)) for field in schema.fields]


def _texts(version: ViewVersion) -> Mapping[str, str]:
    """Returns the SQL of a view version by dialect."""
    return {each.root.dialect: each.root.sql for each in version.representations}
