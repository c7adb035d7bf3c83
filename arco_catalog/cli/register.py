"""`arco register`: registers an existing metadata file as a table or view."""

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.cli.session import another, carry_out, open_session
from arco_catalog.iceberg.errors import AlreadyExists, InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.namespaces import create_namespace
from arco_catalog.operations.recorded_locations import record_locations
from arco_catalog.operations.register import register_table, register_view
from arco_catalog.planning.answers import TableState
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.characters import escaped
from arco_catalog.state.index import Namespace


def run(
    options: CatalogOptions, name: str, metadata: str, *, parents: bool, view: bool, overwrite: bool, as_json: bool
) -> int:
    """Registers a metadata file as a table, or with `view` as a view, and displays the name. With `parents` makes
    missing namespaces first; with `overwrite` replaces the table that has the name. Adds the allowed locations of the
    command to the settings of a catalog without a realm, so that servers may use the file. Returns 0. Raises
    `CliError`."""
    namespace, table = parse_identifier(name)
    kind = "view" if view else "table"

    async def work() -> JsonObject:
        async with open_session(options, "register", find_catalog, writes=True) as session:
            if parents:
                await make_namespaces(session, namespace)
            answer = await (
                register_view(session, namespace, table, metadata)
                if view
                else register_table(session, namespace, table, metadata, overwrite)
            )
            await record_locations(another(session))
        if not isinstance(answer, TableState):
            raise InternalError(
                f"the answer to `arco register` of the {kind} {name} does not contain it, which is a bug: `arco show` "
                "displays whether it was registered"
            )
        named: JsonObject = {"name": name, "type": kind, "entity": answer.entity}
        return {**named, "metadata_location": answer.metadata_location}

    registered = carry_out(work)
    print(json_text(registered) if as_json else escaped(f"Registered {kind} {name} from {metadata}"))
    return 0


async def make_namespaces(session: Session, namespace: Namespace) -> None:
    """Makes a namespace, and first the namespaces that contain it. Existing ones are unchanged. Raises the other errors
    of `create_namespace`."""
    for depth in range(1, len(namespace) + 1):
        try:
            await create_namespace(another(session), namespace[:depth], {})
        except AlreadyExists:
            continue
