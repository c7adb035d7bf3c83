"""`arco lineage`: displays the graph of lineage around a table, by the operation of the HTTP API, directly at the
store."""

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_text, format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.cli.output import table
from arco_catalog.cli.session import carry_out, open_session
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.lineage_graph import read_lineage
from arco_catalog.planning.names import format_identifier
from arco_catalog.state.characters import escaped
from arco_catalog.state.fields import mapping, objects, texts

HEADINGS = ("TIME (UTC)", "FROM", "TO", "VERSION", "JOB", "BY", "CONFIDENCE")


def run(options: CatalogOptions, name: str, direction: str, distance: int, *, as_json: bool) -> int:
    """Displays the edges of lineage around a table, up to `distance` edges away. Returns 0. Raises `CliError`."""
    identifier = parse_identifier(name)
    upstream, downstream = direction != "downstream", direction != "upstream"

    async def read() -> JsonObject:
        async with open_session(options, "lineage", find_catalog) as session:
            return await read_lineage(session, *identifier, upstream=upstream, downstream=downstream, distance=distance)

    graph = carry_out(read)
    print(json_text(graph) if as_json else as_text(graph))
    return 0


def as_text(graph: JsonObject) -> str:
    """Formats one line for each edge, under headings, or one sentence without edges; then the notes of the graph."""
    names = {str(node["id"]): _name(node) for node in objects(graph, "nodes")}
    edges = [_columns(edge, names) for edge in objects(graph, "edges")]
    lines = table(HEADINGS, edges) if edges else "No lineage was found."
    return "\n".join([lines, "", *map(escaped, texts(graph, "notes"))])


def _name(node: JsonObject) -> str:
    if node["type"] == "dataset":
        dataset = mapping(node, "dataset")
        return f"{format_text(dataset.get('namespace'))} {format_text(dataset.get('name'))}"
    return format_identifier((*texts(node, "namespace"), str(node["name"])))


def _columns(edge: JsonObject, names: dict[str, str]) -> tuple[str, ...]:
    source = edge.get("from")
    return (
        format_time(edge.get("at-ms")),
        "-" if source is None else names[str(source)],
        names[str(edge["to"])],
        format_text(edge.get("version")),
        format_text(mapping(edge, "job").get("name")),
        format_text(edge.get("principal")),
        format_text(edge.get("confidence")),
    )
