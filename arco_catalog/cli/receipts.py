"""`arco receipts`: lists a table's commits, read from the store. It needs no server and writes nothing."""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_author, format_text, format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.cli.output import table
from arco_catalog.cli.session import carry_out, open_session
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.receipts import NamedEntity, entities_named, receipts_of
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.characters import escaped
from arco_catalog.state.receipt import base_of
from arco_catalog.state.runtime import is_ulid

HEADINGS = ("TIME (UTC)", "SNAPSHOT", "CHANGES", "BY", "STATE", "METADATA FILE")
WIDE_ONLY = ("METADATA FILE",)


@dataclass(frozen=True, slots=True)
class Commits:
    """What is told of a table or view: its commits, newest first."""

    named: NamedEntity
    commits: Sequence[JsonObject]


def run(options: CatalogOptions, name: str, limit: int | None, *, as_json: bool, wide: bool) -> int:
    """Prints the commits of a table, newest first: of what the name means now; else of all that were dropped under it;
    or of the entity whose id is given. What else had the name is said on stderr. Raises `CliError`."""

    async def read() -> tuple[list[Commits], str | None]:
        async with open_session(options, "receipts", find_catalog) as session:
            return await _read(session, name, limit)

    told, note = carry_out(read)
    print(json_text([commit for each in told for commit in each.commits]) if as_json else as_text(told, wide=wide))
    if note is not None:
        print(escaped(f"arco: {note}"), file=sys.stderr)
    return 0


async def _read(session: Session, name: str, limit: int | None) -> tuple[list[Commits], str | None]:
    if is_ulid(name):
        return [Commits(NamedEntity(name, None), (await receipts_of(session, name))[:limit])], None
    found = await entities_named(session, *parse_identifier(name))
    wanted = found[:1] if found[0].live else found
    told = [Commits(each, (await receipts_of(session, each.entity))[:limit]) for each in wanted]
    return told, about(name, found)


def about(name: str, found: Sequence[NamedEntity]) -> str | None:
    """What is to be known of what was dropped under a name."""
    dropped = "; ".join(f"entity {each.entity} at {format_time(each.dropped_ms)}" for each in found if not each.live)
    if not dropped:
        return None
    if found[0].live:
        return f"{name} is also the name of what was dropped: {dropped} (`arco receipts ENTITY` lists its commits)"
    return f"{name} was dropped: {dropped}"


def as_text(told: Sequence[Commits], *, wide: bool) -> str:
    """The commits in columns; where there are several tables, each below a line that says which it is."""
    if len(told) == 1:
        return as_table(told[0].commits, wide=wide)
    return "\n\n".join(
        f"Entity {each.named.entity}, dropped at {format_time(each.named.dropped_ms)}:\n"
        f"{as_table(each.commits, wide=wide)}"
        for each in told
    )


def as_table(found: Sequence[JsonObject], *, wide: bool = False) -> str:
    """One line a commit, under headings, in columns."""
    if not found:
        return "No commits were made through this catalog."
    return table(HEADINGS, [*map(_columns, found)], wide=wide, wide_only=WIDE_ONLY)


def _columns(receipt: JsonObject) -> tuple[str, ...]:
    return (
        format_time(receipt.get("metadata_ms")),
        format_text(receipt.get("snapshot_id")),
        _changes(receipt),
        format_author(receipt),
        format_text(receipt.get("state")),
        format_text(receipt.get("metadata_location")),
    )


def _changes(receipt: JsonObject) -> str:
    updates = receipt.get("updates")
    kinds = Counter(map(str, updates if isinstance(updates, list) else []))
    told = [kind if times == 1 else f"{times} {kind}" for kind, times in kinds.items()]
    return ", ".join(["create", *told] if base_of(receipt) is None else told) or "-"
