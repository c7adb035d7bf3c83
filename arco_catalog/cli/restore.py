"""`arco restore`: finds the lost HEAD of a registry and lost pointers of tables again, and lists candidates where an
operator has to choose; or restores the state of a time in the past."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_text, format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.finders import find_catalog_even_empty, find_catalog_with_state, find_registry_without_head
from arco_catalog.cli.history import format_names
from arco_catalog.cli.output import table
from arco_catalog.cli.session import DAY_MS, carry_out, open_session
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.fields import mapping, objects, texts
from arco_catalog.upkeep.recovery.restore import Choices, restore
from arco_catalog.upkeep.recovery.rewind import rewind
from storage_backends.open import open_versions

NEXT = "Now run: arco reconcile, arco fsck"
COMMITS = ("COMMIT", "TIME (UTC)", "WHAT", "NAME", "KNOWN BY")
FILES = ("METADATA FILE", "TIME (UTC)", "KNOWN BY")


def run(
    options: CatalogOptions,
    head: str | None,
    pointers: Mapping[str, str],
    *,
    replace: bool,
    of_realm: bool,
    dry: bool,
    as_json: bool,
) -> int:
    """Restores a lost HEAD and lost pointers of a catalog, or with `of_realm` HEAD of the realm's registry. It restores
    what records prove, and the candidates `head` and `pointers` that the operator has chosen, which with `replace`
    replace what can be read, too. With `dry` writes nothing. Prints what was found and done. Returns 0 if nothing is
    lost any more, or with `dry` would be; 1 if the operator has to choose a candidate or there is none, or if an object
    or file that is needed is missing or can't be used. Raises `CliError`."""
    choices = Choices(head, pointers, replace)

    async def work() -> JsonObject:
        async with _opened(options, of_realm=of_realm, dry=dry) as session:
            return await restore(session, choices, dry=dry)

    report = carry_out(work)
    print(json_text(report) if as_json else as_text(report))
    return 0 if report["ok"] is True else 1


def run_rewind(options: CatalogOptions, at_ms: int, *, of_realm: bool, dry: bool, as_json: bool) -> int:
    """Restores the state that a catalog, or with `of_realm` everything below `_realm/`, had at a time, from the
    versions that the bucket keeps, and prints a line for every object that changes, or as JSON only the sums. With
    `dry` writes nothing. Returns 0. Raises `CliError`, also for a time in the future."""

    async def work() -> JsonObject:
        versions = open_versions(options.store, options.environment)
        try:
            async with _opened(options, of_realm=of_realm, dry=dry) as session:
                if at_ms >= session.now_ms():
                    raise CliError(
                        f"can't restore the state of {format_time(at_ms)} (UTC): this time is in the future; give --to "
                        "a past time"
                    )
                return await rewind(session, versions, at_ms, dry=dry, report=report_change)
        finally:
            await versions.close()

    def report_change(change: str) -> None:
        if not as_json:
            print(change)

    report = carry_out(work)
    if as_json:
        print(json_text(report))
    else:
        verb = "would be brought back" if dry else "brought back"
        print(
            f"{report['restored']:,} objects {verb} to what they were at {format_time(at_ms)} (UTC), "
            f"{report['hidden']:,} that were made since {'would be hidden' if dry else 'hidden'}"
        )
        if not dry:
            where = ", for every catalog of the realm, with --warehouse" if of_realm else ""
            print(f"Now run{where}: arco restore, arco reconcile, arco fsck")
    return 0


@asynccontextmanager
async def _opened(options: CatalogOptions, *, of_realm: bool, dry: bool) -> AsyncIterator[Session]:
    """Yields a session with the registry to restore: of the realm, of which a commit object must be left, or of a
    catalog, which must have some state unless the run is `dry`. Raises `NotThere` otherwise, and for a catalog that the
    realm does not have."""
    find = find_registry_without_head if of_realm else find_catalog_even_empty if dry else find_catalog_with_state
    async with open_session(options, "restore", find, DAY_MS, writes=not dry) as session:
        yield session


def as_text(report: JsonObject) -> str:
    """Formats the report on HEAD, then on each pointer, then the next commands if all is well and anything was
    written."""
    dry = report["dry_run"] is True
    head, pointers = mapping(report, "head"), objects(report, "pointers")
    parts = [_head(head, dry=dry), *(_pointer(each, dry=dry) for each in pointers)]
    if not pointers and head.get("chosen") is not None and head.get("error") is None:
        parts.append("No pointer is missing or damaged.")
    if not dry and report["ok"] is True and any(each.get("restored") is True for each in (head, *pointers)):
        parts.append(NEXT)
    return "\n\n".join(parts)


def _head(head: JsonObject, *, dry: bool) -> str:
    """Formats the findings about HEAD: that it is there, which commit was restored or would be, what is missing of
    that, or the candidates and how to take one of them."""
    if head.get("found") == "live" and not head.get("candidates"):
        return f"HEAD is there: commit {format_text(head.get('chosen'))}."
    what = f"HEAD is {format_text(head.get('found'))}."
    if head.get("error") is not None:
        return (
            f"{what} It was commit {format_text(head.get('chosen'))}, whose objects are not all there.\n{_lost(head)}"
        )
    if head.get("chosen") is not None:
        return f"{what} {_done(head, dry=dry)} commit {format_text(head.get('chosen'))}.{_kept(head)}"
    candidates = objects(head, "candidates")
    if not candidates:
        return f"{what} No commit object is left: restore the objects from a backup."
    choice = (
        f"{what} It was one of these, and no record proves which:\n{_commits(candidates)}\n"
        "Choose by what clients know to have been done: arco restore --head COMMIT"
    )
    return f"{choice}\n{_lost(head)}" if texts(head, "lost") else choice


def _lost(head: JsonObject) -> str:
    """Describes the objects that are missing, and the commits that the operator may choose instead."""
    lost, alternatives = texts(head, "lost"), objects(head, "alternatives")
    parts = [
        f"Missing or damaged: {', '.join(map(format_text, lost))}. Restore this from an older version of it, or from a "
        "backup, then run: arco restore"
    ]
    if alternatives:
        parts += [
            "If that is not possible, the last commit without a gap is one of these. All changes since are then lost: "
            "register the tables that were made since from their metadata files:",
            _commits(alternatives),
            "Choose it: arco restore --head COMMIT",
        ]
    return "\n".join(parts)


def _commits(candidates: Sequence[JsonObject]) -> str:
    """Formats a table of commits that HEAD may have been, or of older ones that may become HEAD in place of them."""
    return table(COMMITS, [line for each in candidates for line in _commit_lines(each)])


def _commit_lines(candidate: JsonObject) -> Sequence[tuple[str, ...]]:
    """Returns the rows of a commit, one for each of the operations, of which only the first has the commit's id and
    time; a row with dashes for a commit without operations."""
    known = format_text(candidate.get("evidence"))
    first = (format_text(candidate.get("commit")), format_time(candidate.get("at_ms")))
    operations = objects(candidate, "operations")
    if not operations:
        return [(*first, "-", "-", known)]
    return [
        (*(first if place == 0 else ("", "")), format_text(each.get("kind")), format_names(each), known)
        for place, each in enumerate(operations)
    ]


def _pointer(pointer: JsonObject, *, dry: bool) -> str:
    """Formats the findings about a pointer: which metadata file it was restored to or would be, why that can't be used,
    or the candidates and how to take one of them."""
    what = (
        f"The pointer of {format_text(pointer.get('name'))} ({format_text(pointer.get('entity'))}) is "
        f"{format_text(pointer.get('found'))}."
    )
    if pointer.get("error") is not None:
        return f"{what} {format_text(pointer.get('chosen'))} can't be used: {format_text(pointer.get('error'))}"
    if pointer.get("chosen") is not None:
        return f"{what} {_done(pointer, dry=dry)} {format_text(pointer.get('chosen'))}.{_kept(pointer)}"
    candidates = objects(pointer, "candidates")
    if not candidates:
        return (
            f"{what} No receipt has its metadata file: find the file in the table's metadata folder, and give it by "
            "--pointer"
        )
    lines = [
        (
            format_text(each.get("metadata_location")),
            format_time(each.get("metadata_ms")),
            format_text(each.get("evidence")),
        )
        for each in candidates
    ]
    return (
        f"{what} It named one of these, and no record proves which:\n{table(FILES, lines)}\n"
        f"Choose: arco restore --pointer {format_text(pointer.get('entity'))}=METADATA_FILE"
    )


def _done(report: JsonObject, *, dry: bool) -> str:
    """Returns the words before what was restored, or would be, or is there already."""
    return "It would be restored:" if dry else "Restored:" if report.get("restored") is True else "It is"


def _kept(report: JsonObject) -> str:
    """Returns the sentence about where the replaced object is stored; empty if none was replaced."""
    kept = report.get("kept")
    return "" if kept is None else f" What was there is kept in {format_text(kept)}."
