"""Starts both compared servers where they keep their tables: in folders of this machine, or in an S3 some milliseconds
away."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.bench.peers.servers import Server, arco, ours, reference
from tools.support.s3_servers import S3Server

DELAY_MS = 20
BUCKET = "bench"
S3_FILES = {
    "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
    "s3.path-style-access": "true",
    "client.region": "us-east-1",
}


@dataclass(frozen=True, slots=True)
class Pair:
    """Both compared servers, this catalog and Iceberg's own, side by side."""

    arco: Server
    reference: Server


@contextmanager
def on_local_files(scratch: Path, options: Sequence[str]) -> Iterator[Pair]:
    """Each over folders of its own."""
    with (
        arco(f"file:{scratch}/arco", scratch, {}, options) as first,
        reference(f"file://{scratch}/reference", scratch, {}, {}) as second,
    ):
        yield Pair(first, second)


@contextmanager
def on_s3(scratch: Path, options: Sequence[str]) -> Iterator[Pair]:
    """Both over one S3. The reference server's SQLite is a file of this machine, with no delay."""
    with ExitStack() as stack:
        server = stack.enter_context(far_s3(scratch, DELAY_MS))
        known = {"s3.endpoint": server.endpoint, **S3_FILES}
        yield Pair(
            stack.enter_context(arco(f"s3://{BUCKET}/arco", scratch, server.environment, options)),
            stack.enter_context(reference(f"s3://{BUCKET}/reference", scratch, server.environment, known)),
        )


@contextmanager
def far_s3(scratch: Path, delay_ms: int) -> Iterator[S3Server]:
    """An S3 with an empty bucket."""
    with ours("tools.bench.peers.slow_s3", scratch, str(delay_ms)) as server:
        s3 = S3Server(server.uri)
        s3.make_bucket(BUCKET)
        yield s3
