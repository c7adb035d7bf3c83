"""`arco receipts`: a table's commits, read from the store alone. No server is asked, and nothing is written."""

from collections import Counter
from collections.abc import Sequence

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import by, columns, moment, plain
from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.cli.session import carry_out, reading
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.receipts import receipts
from arco_catalog.state.characters import escaped

HEADINGS = ("TIME (UTC)", "SNAPSHOT", "CHANGES", "BY", "STATE", "METADATA FILE")


def run(url: str, warehouse: str, table: str, *, as_json: bool) -> int:
    """Prints a table's commits, newest first. Raises `Failure`."""
    namespace, name = parse_identifier(table)

    async def read() -> list[JsonObject]:
        async with reading(url, warehouse, "receipts") as session:
            return await receipts(session, namespace, name)

    found = carry_out(read)
    print(json_text([*found]) if as_json else escaped(as_table(found)))
    return 0


def as_table(found: Sequence[JsonObject]) -> str:
    """One line a commit, under headings, in columns."""
    if not found:
        return "No commits were made through this catalog."
    return columns(HEADINGS, [*map(_columns, found)])


def _columns(receipt: JsonObject) -> tuple[str, ...]:
    return (
        moment(receipt.get("metadata_ms")),
        plain(receipt.get("snapshot_id")),
        _changes(receipt),
        by(receipt),
        plain(receipt.get("state")),
        plain(receipt.get("metadata_location")),
    )


def _changes(receipt: JsonObject) -> str:
    updates = receipt.get("updates")
    kinds = Counter(map(str, updates if isinstance(updates, list) else []))
    told = [kind if times == 1 else f"{times} {kind}" for kind, times in kinds.items()]
    return ", ".join(["create", *told] if receipt.get("base") is None else told) or "-"
