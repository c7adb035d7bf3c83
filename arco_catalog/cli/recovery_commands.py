"""Declares `backup`, `restore` and `adopt`, for recovery."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import CatalogOptions, Command, add_catalog, add_json
from arco_catalog.cli.options import instant

BACKUP_EXAMPLES = """\
Writes everything that a catalog has stored, but no files of tables, to one
archive; in a realm, the realm and all its catalogs. May run beside live
servers: what each table is in the archive, it was between the beginning and the
end of the backup, and what one transaction changed is there together or not at
all. `arco restore --from` reads it. Keep it as safe as the store.

examples:
  arco backup --to lake.arco.tar.gz --store file:/var/lib/arco
  arco backup --to lake.arco.tar.gz --json --store s3://bucket/catalog
"""
RESTORE_EXAMPLES = """\
Finds HEAD of the registry and the pointers of tables again, where they are gone
or damaged, and writes those that it is certain of. Where it is not, it shows
the candidates, changes nothing of that, and ends with 1: --head and --pointer
choose among them. What is replaced is kept aside, in the state's recovery/.
Stop all writers first. The steps of each case are in docs/recovery.md.

--from puts a backup into a store that has no such catalog. --to brings all that
is stored back to what it was at a time, on a bucket of S3 that keeps versions.

examples:
  arco restore --dry-run --store s3://bucket/catalog
  arco restore --head 01KAN0Y7Q2M3C4D5E6F7G8H9JK --store s3://bucket/catalog
  arco restore --pointer 01KAN0Y7Q2=s3://bucket/t/metadata/2.metadata.json \\
      --store s3://bucket/catalog
  arco restore --from lake.arco.tar.gz --store file:/var/lib/other
  arco restore --to 2026-11-22T10:30:00Z --dry-run --store s3://bucket/catalog
"""
ADOPT_EXAMPLES = """\
`arco restore --from` makes a copy of a catalog at another place: the tables of
both name the same files. It deletes no files: a drop with
purge is a plain drop, and jobs that delete are refused. This command shows
which catalogs are copies, of a realm all; with --original-is-deleted it records
that the original no longer exists, and from then on the catalog deletes as any
other. It can't be undone.

examples:
  arco adopt --store file:/var/lib/other
  arco adopt --original-is-deleted --store file:/var/lib/other
"""


def _add_backup(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco backup` to the parser: --to, which is required, the options that select a catalog,
    and --json."""
    parser.add_argument("--to", required=True, metavar="FILE", help="the archive to write, which must not exist")
    add_catalog(parser, environment)
    add_json(parser, "what the archive holds, as a JSON object")


def _backup(parsed: argparse.Namespace) -> int:
    """Runs `arco backup`, and returns the exit code."""
    from arco_catalog.cli import backup

    return backup.run_backup(CatalogOptions.of(parsed), parsed.to, as_json=parsed.json)


def _add_restore(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco restore` to the parser: the options that select a catalog, --dry-run, --from, --head,
    --pointer, --replace, --realm-registry, --to and --json. Which of them exclude others is not tested here."""
    add_catalog(parser, environment)
    parser.add_argument("--dry-run", action="store_true", help="print what would be done; write nothing")
    parser.add_argument("--from", dest="archive", metavar="FILE", help="put the backup in this archive into the store")
    parser.add_argument("--head", metavar="COMMIT", help="restore this commit as HEAD")
    parser.add_argument(
        "--pointer",
        action="append",
        default=[],
        metavar="ENTITY=FILE",
        help="restore an entity's pointer to this metadata file; may be given several times",
    )
    parser.add_argument("--replace", action="store_true", help="let --head and --pointer replace what can be read, too")
    parser.add_argument(
        "--realm-registry", action="store_true", help="restore HEAD of the realm's own registry, not a catalog's"
    )
    parser.add_argument(
        "--to",
        type=instant,
        metavar="TIME",
        help="bring everything back to what it was then, out of the versions that a bucket of S3 keeps",
    )
    add_json(parser, "everything, as a JSON object")


def _restore(parsed: argparse.Namespace) -> int:
    """Runs `arco restore` from an archive (--from), to a time (--to), or from what is left in the store. Returns the
    exit code. Exits with 2 for options that do not go together, and for a malformed --pointer."""
    options = CatalogOptions.of(parsed)
    if parsed.archive is not None:
        if parsed.head or parsed.pointer or parsed.replace or parsed.realm_registry or parsed.to is not None:
            parsed.parser.error("leave out --head, --pointer, --replace, --realm-registry and --to with --from")
        from arco_catalog.cli import backup

        return backup.run_restore(options, parsed.archive, dry=parsed.dry_run, as_json=parsed.json)
    if parsed.to is not None:
        if parsed.head or parsed.pointer or parsed.replace:
            parsed.parser.error("leave out --head, --pointer and --replace with --to")
        from arco_catalog.cli import restore

        return restore.run_rewind(
            options, parsed.to, of_realm=parsed.realm_registry, dry=parsed.dry_run, as_json=parsed.json
        )
    pointers: dict[str, str] = {}
    for pair in parsed.pointer:
        entity, found, location = pair.partition("=")
        if not found or not location:
            parsed.parser.error(f"--pointer: expected ENTITY=FILE, got {pair!r}")
        pointers[entity] = location
    from arco_catalog.cli import restore

    return restore.run(
        options,
        parsed.head,
        pointers,
        replace=parsed.replace,
        of_realm=parsed.realm_registry,
        dry=parsed.dry_run,
        as_json=parsed.json,
    )


def _add_adopt(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco adopt` to the parser: the options that select a catalog, --original-is-deleted and
    --json."""
    add_catalog(parser, environment)
    parser.add_argument(
        "--original-is-deleted",
        action="store_true",
        help="confirm that the catalog which was backed up no longer exists, and adopt the copy",
    )
    add_json(parser, "the copies, as a JSON object")


def _adopt(parsed: argparse.Namespace) -> int:
    """Runs `arco adopt`, and returns the exit code."""
    from arco_catalog.cli import adopt

    return adopt.run(CatalogOptions.of(parsed), confirmed=parsed.original_is_deleted, as_json=parsed.json)


COMMANDS = (
    Command("backup", "write all that a catalog has stored to one archive", BACKUP_EXAMPLES, _add_backup, _backup),
    Command("restore", "bring back what was lost, or a backup", RESTORE_EXAMPLES, _add_restore, _restore),
    Command("adopt", "let the copy of a catalog delete files", ADOPT_EXAMPLES, _add_adopt, _adopt),
)
