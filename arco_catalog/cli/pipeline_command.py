"""Declares the arguments of `arco pipeline`, and starts a job of the data pipeline with them."""

import argparse
from collections.abc import Mapping, Sequence

from arco_catalog.cli.command import CatalogOptions, Command, add_catalog
from arco_catalog.cli.options import positive

EXAMPLES = """\
Runs a job of the data pipeline on this machine, with Spark: `reconcile` writes
receipts that crashed writers owe, `compact` brings the tables of the namespace
`system` up to date, which list all commits, tables and snapshots,
`maintain` carries out the policies by which tables are compacted, their
snapshots expired and their orphan files removed. `collect` does what `arco gc`
does, and `fsck` what `arco fsck --data` does: every live file of every table
is checked. Any job may be interrupted, run again, and run beside servers.

examples:
  arco pipeline run compact --uri http://127.0.0.1:8181
  arco pipeline run maintain --uri http://127.0.0.1:8181 --dry-run
  arco pipeline run maintain --uri http://127.0.0.1:8181 --max-bytes 100G
  arco pipeline run reconcile --store s3://bucket/catalog
  arco pipeline run collect --store s3://bucket/catalog --delete
  arco pipeline run fsck --store s3://bucket/catalog --after sales.orders
"""
SERVED = ("compact", "maintain")
"""Jobs that write through the catalog's server."""
JOBS = ("reconcile", *SERVED, "collect", "fsck")
OPTIONS: Mapping[str, Sequence[str]] = {
    "maintain": ("dry_run", "max_bytes", "minutes", "jars", "no_vended_credentials"),
    "collect": ("delete", "seconds"),
    "fsck": ("table", "after"),
}
"""For each job, the options that only it has."""


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares the arguments and options of `arco pipeline`."""
    parser.add_argument("action", choices=("run",), help="what to do: run a job")
    parser.add_argument("job", choices=JOBS, help=f"which job: {', '.join(JOBS[:-1])} or {JOBS[-1]}")
    parser.add_argument("--uri", metavar="URL", help="where the catalog's server answers, for compact and maintain")
    parser.add_argument(
        "--credential-file",
        metavar="FILE",
        help="holds CLIENT_ID:CLIENT_SECRET of the pipeline's principal, in place of the token of `arco login`",
    )
    parser.add_argument(
        "--master", metavar="MASTER", default="local[*]", help="where Spark runs [default local[*]: on this machine]"
    )
    parser.add_argument("--dry-run", action="store_true", help="of maintain: print what would be done, change nothing")
    parser.add_argument("--max-bytes", metavar="BYTES", help="of maintain: rewrite at most so many bytes, such as 100G")
    parser.add_argument("--minutes", metavar="N", type=float, help="of maintain: begin no work after N minutes")
    parser.add_argument("--jars", metavar="FILES", help="of maintain: Iceberg's jars for Spark [default: fetched]")
    parser.add_argument(
        "--no-vended-credentials",
        action="store_true",
        help="of maintain: Spark reaches files by the rights of the cluster, not by credentials of the catalog",
    )
    parser.add_argument("--delete", action="store_true", help="of collect: delete what is listed")
    parser.add_argument("--seconds", type=positive, metavar="N", help="of collect: stop after so many seconds")
    parser.add_argument(
        "--table",
        metavar="NAME",
        action="append",
        default=[],
        help="of fsck: check only the files of this table; may be given several times",
    )
    parser.add_argument(
        "--after", metavar="NAME", default="", help="of fsck: check only the files of tables with later names"
    )
    add_catalog(parser, environment)


def run(parsed: argparse.Namespace) -> int:
    """Runs a job, and returns the exit code. Exits with 2 if the job needs --uri and has none, or an option in
    `OPTIONS` belongs to another job, as --uri and --credential-file belong to those in `SERVED`."""
    from arco_catalog.cli import pipeline

    if parsed.job in SERVED and parsed.uri is None:
        parsed.parser.error(f"{parsed.job} needs --uri: it writes tables through the catalog's server")
    for job, names in OPTIONS.items():
        if parsed.job != job and any(getattr(parsed, name) for name in names):
            flags = [f"--{name.replace('_', '-')}" for name in names]
            parsed.parser.error(f"{', '.join(flags[:-1])} and {flags[-1]} are of {job}")
    if parsed.job not in SERVED and (parsed.uri or parsed.credential_file):
        parsed.parser.error(f"--uri and --credential-file are of {' and '.join(SERVED)}")
    limits = pipeline.Limits(
        parsed.dry_run,
        parsed.max_bytes,
        parsed.minutes,
        parsed.jars,
        vended_credentials=not parsed.no_vended_credentials,
    )
    more = ["--delete"] if parsed.delete else []
    more += [] if parsed.seconds is None else [f"--seconds={parsed.seconds}"]
    more += [*(f"--table={name}" for name in parsed.table), *([f"--after={parsed.after}"] if parsed.after else [])]
    connection = pipeline.Connection(parsed.uri, parsed.credential_file) if parsed.job in SERVED else None
    return pipeline.run(CatalogOptions.of(parsed), parsed.job, connection, limits, parsed.master, more)


COMMAND = Command("pipeline", "run jobs of the data pipeline with Spark", EXAMPLES, add_arguments, run)
