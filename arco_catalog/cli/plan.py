"""`arco plan`: displays what a scan of a table reads, and what rules out the rest, directly at the store."""

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.cli.session import carry_out, for_table, open_session
from arco_catalog.cli.where import parse_where
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.scans.explanation import explain
from arco_catalog.state.fields import integer, mapping


def run(options: CatalogOptions, name: str, where: str | None, *, as_json: bool) -> int:
    """Displays what a scan with a condition reads; without one, a scan of all rows. Returns 0. Raises `CliError`."""
    identifier, filter_ = parse_identifier(name), True if where is None else parse_where(where)

    async def read() -> JsonObject:
        async with open_session(options, "plan", find_catalog) as session:
            return await for_table(session, identifier, lambda each: explain(each, *identifier, filter_))

    explained = carry_out(read)
    print(json_text(explained) if as_json else as_text(explained))
    return 0


def as_text(explained: JsonObject) -> str:
    """Formats an explanation: a line for the snapshot, the manifests, the data files, the ways by which others are
    ruled out, the files that match whole, the rows, and the delete files."""
    data, deletes = mapping(explained, "data"), mapping(explained, "deletes")
    manifests, files = mapping(data, "manifests"), mapping(data, "files")
    ruled_out = {
        "manifest": "by the partitions of their manifests",
        "partition": "by their partition",
        "statistics": "by statistics",
    }
    reasons = [
        f"{count:,} {reason}" for name, reason in ruled_out.items() if (count := integer(files, f"ruled-out-by-{name}"))
    ]
    snapshot = explained.get("snapshot-id")
    return "\n".join(
        (
            f"snapshot      {'none' if snapshot is None else snapshot}",
            f"manifests     {integer(manifests, 'read'):,} read of {integer(manifests, 'all'):,}",
            f"files         {integer(files, 'read'):,} read of {integer(files, 'all'):,}",
            *(f"ruled out     {reason}" for reason in reasons),
            f"match whole   {integer(files, 'match-whole'):,} files, by their partition",
            f"rows          {integer(data, 'rows'):,} in {integer(data, 'size-in-bytes'):,} bytes, before the filter",
            f"delete files  {integer(mapping(deletes, 'files'), 'read'):,} read of "
            f"{integer(mapping(deletes, 'files'), 'all'):,}",
        )
    )
