"""`arco backup` and `arco restore --from`: write the state of a catalog or realm to an archive, and restore it from
there."""

import sys
from pathlib import Path

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_text, format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_backup_source, find_backup_target
from arco_catalog.cli.left_out import LeftOut
from arco_catalog.cli.output import table
from arco_catalog.cli.restore import NEXT
from arco_catalog.cli.session import DAY_MS, carry_out, open_session
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import mapping, objects, sequence
from arco_catalog.upkeep.recovery.archive import Archive, ArchiveWriter
from arco_catalog.upkeep.recovery.backup import backup
from arco_catalog.upkeep.recovery.unpack import restore_backup

HEADINGS = ("REGISTRY", "HEAD", "COMMITS", "TIME (UTC)", "TABLES AND VIEWS")


def run_backup(options: CatalogOptions, to: str, *, as_json: bool) -> int:
    """Writes a backup of a catalog, or of a realm with all catalogs, to the new file `to`, and displays what the backup
    holds. Returns 1 if a pointer of a table or view is missing in the catalog, so that the backup has none either, or
    if a catalog of the realm can't be read, so that the backup has nothing of it, else 0. Raises `CliError`."""

    async def work() -> JsonObject:
        async with open_session(options, "backup", find_backup_source, DAY_MS) as (session, realm):
            archive = ArchiveWriter(Path(to))
            first: JsonObject = {
                "id": session.runtime.ulid(),
                "of": options.store,
                "made_ms": session.now_ms(),
                "realm": realm is not None,
                "prefix": session.state.paths.state.removesuffix(session.state.paths.folder),
            }
            archive.begin(first)
            try:
                return {**first, **await backup(session, realm, archive)}
            finally:
                archive.abandon()

    made = carry_out(work)
    left_out = [LeftOut.parse(each) for each in objects(made, "left_out")]
    missing = [str(entity) for each in objects(made, "registries") for entity in sequence(each, "pointers_missing")]
    if as_json:
        print(json_text(made))
    else:
        print(_registries(made))
        print(f"Wrote {made['objects']:,} objects, {made['bytes']:,} bytes, to {to}")
        for entity in missing:
            print(
                f"The pointer of {entity} is missing in the catalog, and so in this backup: restore it from metadata "
                "files by `arco restore` without --from, in a realm with --warehouse, then make another backup"
            )
        for each in left_out:
            print(each.describe(), file=sys.stderr)
    return 1 if missing or left_out else 0


def run_restore(options: CatalogOptions, archive: str, *, dry: bool, as_json: bool) -> int:
    """Writes the records of the backup in the file `archive` to a store, in which the catalog or realm must not exist;
    with `dry` only tests that it is of the right kind and that nothing is there, and writes nothing. Displays what was
    or would be written. Returns 0. Raises `CliError`."""

    async def work() -> JsonObject:
        read = await Archive.opened(Path(archive))
        find = find_backup_target(realm=read.realm)
        async with open_session(options, "restore", find, DAY_MS, writes=not dry, creates=True) as session:
            return await restore_backup(session, read, dry=dry)

    report = carry_out(work)
    if as_json:
        print(json_text(report))
        return 0
    held = mapping(report, "archive")
    print(_registries(held))
    verb = "It would be restored" if dry else "Restored"
    print(f"{verb}: {held['objects']:,} objects of the backup, as of {format_time(held.get('made_ms'))} (UTC)")
    copies = sorted(str(each["copy_of"]) for each in objects(report, "registries") if each.get("copy_of") is not None)
    for copy_of in copies:
        print(
            f"This is a copy of the catalog at {copy_of}, and deletes no files of tables until "
            "`arco adopt --original-is-deleted`"
        )
    taken_back = sum(
        each["purges_taken_back"]
        for each in objects(report, "registries")
        if isinstance(each["purges_taken_back"], int)
    )
    for name in (format_text(each.get("name")) for each in objects(held, "left_out")):
        print(
            f"The backup has nothing of the catalog {name}, which could not be read when the backup was made: the "
            "realm is without it"
        )
    if taken_back:
        purges = "the purge of 1 dropped table" if taken_back == 1 else f"the purges of {taken_back:,} dropped tables"
        print(
            f"The restore takes back {purges}, requested before the backup was made, which had deleted nothing by "
            "then. The files stay: the tasks of such purges in the restored catalogs end without deleting"
        )
    if not dry:
        print(NEXT)
    return 0


def _registries(report: JsonObject) -> str:
    """Formats a table of the registries in an archive: manifest, HEAD with sequence number and time, and number of
    pointers."""
    lines = [
        (
            format_text(each.get("manifest")),
            format_text(each.get("head")),
            format_text(each.get("sequence")),
            format_time(each.get("head_ms")),
            format_text(each.get("pointers")),
        )
        for each in objects(report, "registries")
    ]
    return table(HEADINGS, lines)
