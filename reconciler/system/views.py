"""The views of `system`: made where they are missing, and given another version where a question is answered by another
text now. One whose present version somebody else made is theirs, and left as it is.
"""

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
"""The summary of a version that is ours. Earlier versions of the pipeline left it empty; engines write their names."""

RUN_AS_OWNER = "trino.run-as-owner"
"""The property by which Trino's Iceberg connector runs a view as another user than who asks."""


def write_views(
    catalog: KeyedRestCatalog,
    in_trino: str | None,
    wanted_views: Sequence[Question] = questions.ALL,
    owner: str | None = None,
) -> None:
    """Brings the views up to date. Trino looks for tables of a view in the catalog that the view names, and in no
    other: `in_trino` is what it calls this one. If nobody said, new views name it as other clients do, and those that
    are there may name another. `owner` is Trino's user as whom views run that hide rows; if nobody said, new ones run
    as whoever asks, and those that are there as they did."""
    there = {name for *_, name in catalog.list_views(NAMESPACE)}
    for question in wanted_views:
        wanted = _version(question, in_trino or catalog.properties["warehouse"])
        identifier = (NAMESPACE, question.name)
        properties = {"comment": question.asks}
        if owner is not None and question.hides:
            properties[RUN_AS_OWNER] = owner
        if question.name not in there:
            with suppress(ViewAlreadyExistsError):  # another run has just made it
                catalog.create_view(identifier, question.schema, wanted, properties=properties)
            continue
        view = catalog.load_view(identifier)
        runs_as = RUN_AS_OWNER in properties and view.properties.get(RUN_AS_OWNER) != properties[RUN_AS_OWNER]
        if _is_ours(view) and (_differs(view, question, wanted, judges_trino=in_trino is not None) or runs_as):
            catalog.replace_view(view, question.schema, wanted, properties)


def _version(question: Question, in_trino: str) -> ViewVersion:
    quoted = in_trino.replace('"', '""')
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
    summary = view.current_version().summary
    return not summary or summary.items() >= OURS.items()


def _differs(view: View, question: Question, wanted: ViewVersion, *, judges_trino: bool) -> bool:
    present, texts = _texts(view.current_version()), _texts(wanted)
    judged = texts if judges_trino else {dialect: text for dialect, text in texts.items() if dialect != "trino"}
    return not judged.items() <= present.items() or _columns(view.schema()) != _columns(question.schema)


def _columns(schema: Schema) -> Sequence[tuple[str, str]]:
    """Names and types, without the ids of what is in lists and maps."""
    return [(field.name, str(field.field_type)) for field in schema.fields]


def _texts(version: ViewVersion) -> Mapping[str, str]:
    return {each.root.dialect: each.root.sql for each in version.representations}
