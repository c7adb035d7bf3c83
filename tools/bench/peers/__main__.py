"""Compares this catalog with Iceberg's own REST server: `make bench-peers` prints the tables of docs/performance.md.

Every line is measured in passes, ours and theirs by turns, so that whatever else the machine does meets both; the
median pass counts. Clients are in a process of their own and cost next to nothing, as the first table shows.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median_low
from typing import TypeAlias

from tools.bench.peers import traffic
from tools.bench.peers.generator import Score
from tools.bench.peers.places import DELAY_MS, Pair, on_local_files, on_s3
from tools.bench.peers.servers import Server

CLIENTS = (1, 8, 16, 32)
TABLES = ("local", "s3")

Requests: TypeAlias = Callable[[str, int], list[str]]
"""What so many clients send to a server whose paths begin so."""


def loads(base: str, clients: int) -> list[str]:
    return [traffic.load(base, f"t{number}") for number in range(clients)]


def commits(base: str, clients: int) -> list[str]:
    return [traffic.commit(base, f"t{number}") for number in range(clients)]


def commits_to_one(base: str, clients: int) -> list[str]:
    return [traffic.commit(base, traffic.SHARED)] * clients


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the comparison: one kind of request by a number of clients, and the scores of both servers in each
    pass."""

    name: str
    requests: Requests
    clients: int
    ours: list[Score] = field(default_factory=list)
    theirs: list[Score] = field(default_factory=list)

    def told(self) -> str:
        """A row of the table."""
        mine = middle(self.ours)
        peers = middle(self.theirs)
        ratio = mine.rate / peers.rate if peers.rate else float("inf")
        of_cpu = mine.rate_of_cpu / peers.rate_of_cpu if peers.rate_of_cpu else float("inf")
        return (
            f"| {self.name} | {self.clients} | {mine.rate:,.0f} | {peers.rate:,.0f} | **{ratio:.1f}** "
            f"| {mine.rate_of_cpu:,.0f} | {peers.rate_of_cpu:,.0f} | **{of_cpu:.1f}** "
            f"| {times(mine)} | {times(peers)} | {refused(mine)} | {refused(peers)} |"
        )


def middle(scores: Sequence[Score]) -> Score:
    """The median pass."""
    rate = median_low(score.rate for score in scores)
    return next(score for score in scores if score.rate == rate)


def times(score: Score) -> str:
    return f"{score.p50:.1f} / {score.p99:.1f}"


def refused(score: Score) -> str:
    """Answers that were no success, by status."""
    return ", ".join(f"{count}x {status}" for status, count in score.statuses.items() if status > "204") or "-"


_RATES = "ours /s | theirs /s | ratio | ours /CPU s | theirs /CPU s | ratio"
HEADER = f"""| request | clients | {_RATES} | ours p50 / p99 ms | theirs | ours refused | theirs |
| --- |{" --: |" * 11}"""


def lines() -> list[Line]:
    """What is measured at a place."""
    made = [Line("load", loads, clients) for clients in CLIENTS]
    made += [Line("commit, each client its own table", commits, clients) for clients in CLIENTS]
    made += [Line("commit, all the same table", commits_to_one, clients) for clients in CLIENTS[1::2]]
    return made


@dataclass(frozen=True, slots=True)
class Effort:
    """How long and how often each line of the comparison is measured."""

    passes: int
    warm: float
    seconds: float
    settle: float

    def play(self, server: Server, line: Line) -> Score:
        """One pass at one server."""
        return server.play(line.requests(server.base, line.clients), self.warm, self.seconds)


def compare(title: str, place: AbstractContextManager[Pair], measured: Sequence[Line], effort: Effort) -> None:
    """Measures at one place, and prints its table."""
    with place as pair:
        servers = [pair.arco, pair.reference]
        for server in servers:
            server.catalog.prepare()
            for line in measured[
                1 : 1 + 2 * len(CLIENTS) : len(CLIENTS)
            ]:  # loads and commits of several clients: a JVM takes its time to get going
                server.play(line.requests(server.base, line.clients), effort.warm, effort.settle)
        sizes = [server.catalog.size_of_a_load() for server in servers]
        for number in range(effort.passes):
            for line in measured:
                scores = (line.ours, line.theirs)
                for server, kept in sorted(zip(servers, scores, strict=True), key=lambda _: 0, reverse=number % 2 == 1):
                    kept.append(effort.play(server, line))
        memory = [server.resident_mb() for server in servers]
    print(f"\n### {title}\n\n{HEADER}")
    for line in measured:
        print(line.told())
    print(f"\nMetadata of the table: {sizes[0]:,} bytes in ours, {sizes[1]:,} in theirs.", end=" ")
    print(f"Memory afterwards: ours {memory[0]:.0f} MB, theirs {memory[1]:.0f} MB, {memory[0] / memory[1]:.2f} of it.")
    sys.stdout.flush()


def main() -> int:
    """Prints everything."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.peers", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one short pass: a look, not a figure")
    parser.add_argument("--only", "--store", dest="only", choices=TABLES, help="one of the tables")
    parser.add_argument("--workers", default="auto", help="of arco serve (default: as it is shipped)")
    parser.add_argument("--folder", help="where the local files are (default: the folder for temporary files)")
    arguments = parser.parse_args()
    effort = Effort(1, 0.3, 1.0, 2.0) if arguments.quick else Effort(3, 0.5, 2.0, 5.0)
    options = ("--workers", arguments.workers)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="arco-peers-", dir=arguments.folder) as folder:
        for name, run in parts(Path(folder), options, effort):
            if arguments.only in (None, name):
                run()
    print(f"\n{effort.passes} passes of {effort.seconds:g} s a line; {time.perf_counter() - began:.0f} s in all.")
    return 0


def parts(folder: Path, options: Sequence[str], effort: Effort) -> Iterator[tuple[str, Callable[[], None]]]:
    """The tables, each over a folder of its own."""
    scratch = {name: folder / name for name in TABLES}
    for made in scratch.values():
        made.mkdir()
    local = on_local_files(scratch["local"], options)
    far = on_s3(scratch["s3"], options)
    yield "local", partial(compare, "Local files", local, lines(), effort)
    yield "s3", partial(compare, f"S3, every call {DELAY_MS} ms longer", far, lines(), effort)


if __name__ == "__main__":
    sys.exit(main())
