"""`arco adopt`: records that the original of a copy no longer exists, so that jobs may delete files for the copy."""

import sys
from collections.abc import Sequence

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_inventory
from arco_catalog.cli.left_out import LeftOut, run_on_each
from arco_catalog.cli.output import table
from arco_catalog.cli.session import carry_out, open_session
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.adopt import adopt
from arco_catalog.protocol.catalog import Session

HEADINGS = ("CATALOG", "COPY OF", "STATE")


def run(options: CatalogOptions, *, confirmed: bool, as_json: bool) -> int:
    """Adopts every catalog that is a copy, among those of a realm or the one of a store; if not `confirmed` only reads
    which are copies. Prints the copies as text or JSON. Returns 1 if there is a copy and it was not adopted because
    `confirmed` is false, or if a catalog can't be read, else 0. Raises `CliError`."""

    step = adopt if confirmed else _original

    async def work() -> tuple[list[JsonObject], Sequence[LeftOut]]:
        async with open_session(options, "adopt", find_inventory, writes=confirmed) as inventory:
            read, left_out = await run_on_each(inventory.catalogs, "adopt", step)
            copies = [(owner.name, copy_of) for owner, copy_of in read if copy_of is not None]
            return [{"name": name, "copy_of": copy_of, "adopted": confirmed} for name, copy_of in copies], left_out

    found, left_out = carry_out(work)
    if as_json:
        copies: list[JsonValue] = [*found]
        print(json_text({"copies": copies, "left_out": [each.to_json() for each in left_out], "confirmed": confirmed}))
    else:
        _print(found, confirmed=confirmed)
        for each in left_out:
            print(each.describe(), file=sys.stderr)
    return 1 if left_out or (found and not confirmed) else 0


async def _original(session: Session) -> str | None:
    """Returns the place of the original of a copy; None for a catalog that is no copy, or was adopted before."""
    return (await session.state.head()).copy_of


def _print(found: Sequence[JsonObject], *, confirmed: bool) -> None:
    """Writes the copies of catalogs, and if the adoption was not `confirmed`, how to adopt them; or that there is no
    copy to adopt."""
    if found:
        state = "adopted" if confirmed else "a copy"
        print(table(HEADINGS, [(format_text(each["name"]), format_text(each["copy_of"]), state) for each in found]))
        if not confirmed:
            print(
                "\nThis was a report. If no catalog is left at the place of the original, and none will be there "
                "again, run: arco adopt --original-is-deleted"
            )
    else:
        print("No catalog that was read is a copy that is still to be adopted.")
