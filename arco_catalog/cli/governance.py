"""`arco governance`: shows and changes the owners, qualities and tags of namespaces, tables and views, by the
operations of the HTTP API, directly at the store."""

from collections.abc import Sequence
from dataclasses import dataclass

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.identifiers import parse_identifier, parse_namespace
from arco_catalog.cli.output import facts
from arco_catalog.cli.session import carry_out, for_table_or_view, open_session
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.governance import (
    govern_namespace,
    govern_relation,
    namespace_governance,
    relation_governance,
)
from arco_catalog.planning.answers import Answer, Document
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.characters import escaped


@dataclass(frozen=True, slots=True)
class GovernanceArguments:
    """The arguments of `arco governance`: the name of a table or view, or of a `namespace`; `changes` are KEY=VALUE
    pairs to set, `removed` are keys to remove."""

    name: str
    namespace: bool
    changes: Sequence[str] = ()
    removed: Sequence[str] = ()

    @property
    def patch(self) -> JsonObject:
        """The changes as a JSON merge patch, in which null removes a key. Raises `CliError` for a change that is not
        KEY=VALUE, and for a key that is set twice, or both set and removed."""
        patch: JsonObject = dict.fromkeys(self.removed)
        for change in self.changes:
            key, equals, value = change.partition("=")
            if not equals or key in patch:
                raise CliError(
                    f"nothing was changed: expected KEY=VALUE, each key once and not also in --remove, got {change!r}"
                )
            patch[key] = value
        return patch


def run(options: CatalogOptions, arguments: GovernanceArguments, *, writes: bool, as_json: bool) -> int:
    """Displays the governance of a table, view or namespace; a command that `writes` first applies the changes. Returns
    0. Raises `CliError`, also if there is no such object."""
    patch = arguments.patch

    async def work() -> JsonObject:
        if not writes:
            async with open_session(options, "governance show", find_catalog) as session:
                return await _shown(session, arguments)
        async with open_session(options, "governance set", find_catalog, writes=True) as session:
            return await _changed(session, arguments, patch)

    shown = carry_out(work)
    print(json_text(shown) if as_json else _as_text(shown, arguments.name))
    return 0


def _as_text(shown: JsonObject, name: str) -> str:
    """Formats the governance of an object, sorted by key; without governance a sentence about that."""
    if not shown:
        return escaped(f"{name} has no governance.")
    return facts([(key, format_text(value)) for key, value in sorted(shown.items())])


async def _shown(session: Session, arguments: GovernanceArguments) -> JsonObject:
    """Reads the governance of what `arguments.name` names: of a namespace with `arguments.namespace`, where it raises
    `NoSuchNamespace`; otherwise of the table, or else the view, where it raises `CliError` if there is neither."""
    if arguments.namespace:
        return await namespace_governance(session, parse_namespace(arguments.name))
    identifier = parse_identifier(arguments.name)
    return await for_table_or_view(session, lambda each, kind: relation_governance(each, *identifier, kind))


async def _changed(session: Session, arguments: GovernanceArguments, patch: JsonObject) -> JsonObject:
    """Applies the patch to the namespace, or to the table or else the view with the name, and returns the governance
    after it. Raises `CliError` if neither a table nor a view has the name, and `NoSuchNamespace` if there is no such
    namespace."""
    if arguments.namespace:
        return _body(await govern_namespace(session, parse_namespace(arguments.name), patch))
    identifier = parse_identifier(arguments.name)
    return _body(await for_table_or_view(session, lambda each, kind: govern_relation(each, *identifier, kind, patch)))


def _body(answer: Answer) -> JsonObject:
    """Returns the document in an answer; an empty one if the answer has none."""
    assert isinstance(answer, Document)
    return answer.body or {}
