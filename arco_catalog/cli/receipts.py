"""`arco receipts`: lists the commits of a table or view by their receipts, read from the store. It needs no server and
writes nothing."""

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
    """The newest receipts of the commits of one table or view, newest first, back to a commit without one or up to a
    limit, with the entity that they are of."""

    named: NamedEntity
    commits: Sequence[JsonObject]


def run(options: CatalogOptions, name: str, limit: int | None, *, as_json: bool, wide: bool) -> int:
    """Displays the newest commits of a table or view, newest first, at most `limit` (None: any number), and only back
    to the first commit without a receipt. `name` is the name of a table or view, or an entity id. If nothing has the
    name now, displays the commits of all dropped tables and views that had it, `limit` of each. A note on stderr lists
    what was dropped under the name. Returns 0. Raises `CliError`."""

    async def read() -> tuple[list[Commits], str | None]:
        async with open_session(options, "receipts", find_catalog) as session:
            return await _read(session, name, limit)

    found, note = carry_out(read)
    print(json_text([commit for each in found for commit in each.commits]) if as_json else as_text(found, wide=wide))
    if note is not None:
        print(escaped(f"arco: {note}"), file=sys.stderr)
    return 0


async def _read(session: Session, name: str, limit: int | None) -> tuple[list[Commits], str | None]:
    """Returns the commits of the entities to which a name belongs, and a note about the dropped ones that had it, if
    any; `name` may be an entity id instead, which gets no note. Commits of dropped ones are returned only if no other
    has the name. Raises `NoSuchTable` if no entity to list has receipts, as a generic table has none."""
    if is_ulid(name):
        return [Commits(NamedEntity(name, None), await receipts_of(session, name, limit))], None
    found = await entities_named(session, *parse_identifier(name))
    listed = [each for each in found if each.has_pointer] or found[:1]
    listed = listed[:1] if listed[0].live else listed
    commits = [Commits(each, await receipts_of(session, each.entity, limit)) for each in listed]
    return commits, describe_dropped(name, found)


def describe_dropped(name: str, found: Sequence[NamedEntity]) -> str | None:
    """Returns a note that lists the dropped entities which had the name, with the times of their drops; None if there
    are none. The first of `found` is the live one, if there is one."""
    dropped = "; ".join(f"entity {each.entity} at {format_time(each.dropped_ms)}" for each in found if not each.live)
    if not dropped:
        return None
    if found[0].live:
        return f"{name} is also the name of what was dropped: {dropped} (`arco receipts ENTITY` lists its commits)"
    return f"{name} was dropped: {dropped}"


def as_text(found: Sequence[Commits], *, wide: bool) -> str:
    """Formats commits as a table; several entities each get a table under a line with entity id and time of drop.
    `wide` prints all columns."""
    if len(found) == 1:
        return as_table(found[0].commits, wide=wide)
    return "\n\n".join(
        f"Entity {each.named.entity}, dropped at {format_time(each.named.dropped_ms)}:\n"
        f"{as_table(each.commits, wide=wide)}"
        for each in found
    )


def as_table(found: Sequence[JsonObject], *, wide: bool = False) -> str:
    """Formats one line for each commit, under headings, or one sentence if there is none. All columns are printed,
    except that without `wide` a terminal which is too narrow gets no metadata file."""
    if not found:
        return "No commits were made through this catalog."
    return table(HEADINGS, [*map(_columns, found)], wide=wide, wide_only=WIDE_ONLY)


def _columns(receipt: JsonObject) -> tuple[str, ...]:
    """Returns a receipt's row in the table."""
    return (
        format_time(receipt.get("metadata_ms")),
        format_text(receipt.get("snapshot_id")),
        _changes(receipt),
        format_author(receipt),
        format_text(receipt.get("state")),
        format_text(receipt.get("metadata_location")),
    )


def _changes(receipt: JsonObject) -> str:
    """Returns the types of updates in a commit, with the number of those that occur more than once, after `create` for
    a commit that creates; a hyphen for none."""
    updates = receipt.get("updates")
    counts = Counter(map(str, updates if isinstance(updates, list) else []))
    counted = [kind if times == 1 else f"{times} {kind}" for kind, times in counts.items()]
    return ", ".join(["create", *counted] if base_of(receipt) is None else counted) or "-"
