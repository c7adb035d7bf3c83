"""`arco undrop`: brings back the table or view that was dropped last under a name."""

from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.cli.session import carry_out, writing
from arco_catalog.operations.undrop import undrop


def run(url: str, warehouse: str, table: str) -> int:
    """Undoes a drop, and says so. Raises `Failure`."""
    namespace, name = parse_identifier(table)

    async def work() -> None:
        async with writing(url, warehouse, "undrop") as session:
            await undrop(session, namespace, name)

    carry_out(work)
    print(f"{table} is back, as it was.")
    return 0
