"""The views of `system`: made where they are missing, and given another version where a question is answered by another
text now. One whose present version somebody else made is theirs, and left as it is.
"""

from collections.abc import Mapping
from contextlib import suppress

from pyiceberg.exceptions import ViewAlreadyExistsError
from pyiceberg.view import View
from pyiceberg.view.metadata import ViewVersion

from arco_catalog.state.watermarks import NAMESPACE
from reconciler.system import questions
from reconciler.system.questions import Question
from reconciler.system.rest import KeyedRestCatalog

OURS = {"written-by": "arco-pipeline"}
"""The summary of a version that is ours. Earlier versions of the pipeline left it empty; engines write their names."""


def write_views(catalog: KeyedRestCatalog, in_trino: str | None) -> None:
    """Brings the views up to date. Trino looks for tables of a view in the catalog that the view names, and in no
    other: `in_trino` is what it calls this one. If nobody said, new views name it as other clients do, and those that
    are there may name another."""
    there = {name for *_, name in catalog.list_views(NAMESPACE)}
    for question in questions.ALL:
        wanted = _version(question, in_trino or catalog.properties["warehouse"])
        identifier = (NAMESPACE, question.name)
        if question.name not in there:
            with suppress(ViewAlreadyExistsError):  # another run has just made it
                catalog.create_view(identifier, question.schema, wanted, properties={"comment": question.asks})
            continue
        view = catalog.load_view(identifier)
        if _is_ours(view) and _differs(view, question, wanted, judges_trino=in_trino is not None):
            catalog.replace_view(view, question.schema, wanted, {"comment": question.asks})


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
    columns = [(field.name, field.field_type) for field in view.schema().fields]
    return not judged.items() <= present.items() or columns != [*question.columns]


def _texts(version: ViewVersion) -> Mapping[str, str]:
    return {each.root.dialect: each.root.sql for each in version.representations}
