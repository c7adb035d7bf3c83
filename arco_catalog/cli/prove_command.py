"""Declares the arguments of `arco prove`, and starts the command with them."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import Command, add_json

EXAMPLES = """\
Tests any Iceberg REST catalog: clients create, commit, rename and drop tables
of their own at once, through a network that loses, delays and repeats, and
what they were answered is compared with what an atomic catalog could have
answered. It makes namespaces `prove_...` and removes them afterwards; it
touches nothing else. The tables have no data.

The exit code is 1 if something was found. Then a small program that
reproduces it is written to the file of --output; --replay runs it.

examples:
  arco prove http://127.0.0.1:8181
  arco prove http://127.0.0.1:8181 http://127.0.0.1:8182 --seconds 60
  arco prove https://catalog.example.com --warehouse lake --token-file token
  arco prove http://127.0.0.1:8181 --restart ./restart-server
  arco prove http://127.0.0.1:8181 --replay replay.json
"""


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares the arguments and options of `arco prove`."""
    parser.add_argument("servers", nargs="+", metavar="URL", help="a server of the catalog; several serve one catalog")
    parser.add_argument("--warehouse", metavar="NAME", help="the warehouse to name to the catalog")
    parser.add_argument(
        "--token-file", metavar="FILE", help="a file with the token to send, in place of that of `arco login`"
    )
    parser.add_argument(
        "--clients", type=_clients, default=8, metavar="N", help="clients at once, at most 48 [default 8]"
    )
    parser.add_argument(
        "--seconds", type=float, default=600, metavar="S", help="begin no program after S seconds [default 600]"
    )
    parser.add_argument(
        "--operations",
        type=_positive,
        default=50_000,
        metavar="N",
        help="begin no program after N operations [default 50000]",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="draw the programs of this seed [default 0]")
    parser.add_argument(
        "--restart", metavar="COMMAND", help="a program that kills the servers, starts them, and ends when they answer"
    )
    parser.add_argument(
        "--linearizable", action="store_true", help="the catalog claims that reads show all that was done before them"
    )
    parser.add_argument(
        "--output", default="replay.json", metavar="FILE", help="the file of a replay [default replay.json]"
    )
    parser.add_argument(
        "--shrink-seconds",
        type=float,
        default=120,
        metavar="S",
        help="how long to search for a smaller replay [default 120]",
    )
    parser.add_argument("--replay", metavar="FILE", help="run the program in this file, 20 times")
    add_json(parser, "the counts and findings as a JSON object")


def _positive(text: str) -> int:
    """Parses a whole number of at least 1. Raises `argparse.ArgumentTypeError` for a smaller one, and `ValueError` for
    any other text; argparse makes wrong usage of both."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, got {text}")
    return number


def _clients(text: str) -> int:
    """Reads a number of clients, of which there may be `MAX_CLIENTS`. Raises as `_positive` does."""
    from arco_catalog.prove.program import MAX_CLIENTS

    if (number := _positive(text)) > MAX_CLIENTS:
        raise argparse.ArgumentTypeError(f"expected at most {MAX_CLIENTS} clients, got {text}")
    return number


def run(parsed: argparse.Namespace) -> int:
    """Runs `arco prove`, and returns the exit code."""
    from arco_catalog.cli import prove

    options = prove.ProveOptions(
        parsed.servers,
        parsed.warehouse,
        parsed.token_file,
        parsed.clients,
        parsed.seconds,
        parsed.operations,
        parsed.seed,
        parsed.restart,
        parsed.linearizable,
        parsed.output,
        parsed.shrink_seconds,
        parsed.replay,
        parsed.json,
        parsed.environment,
    )
    return prove.run(options)


COMMAND = Command(
    "prove",
    "test any Iceberg REST catalog for lost, half and doubled changes",
    EXAMPLES,
    add_arguments,
    run,
    needs_store=False,
)
