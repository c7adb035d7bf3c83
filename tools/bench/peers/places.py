"""Where both servers keep their tables: in folders of this machine, or in a cloud's store some milliseconds away."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tools.bench.peers.servers import JARS, Server, arco, ours, reference
from tools.support.azurite import AzuriteServer, azurite
from tools.support.gcs_servers import GcsServer, gcs_protocol_fake
from tools.support.s3_servers import S3Server

DELAY_MS = 20
BUCKET = "bench"
S3_FILES = {
    "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
    "s3.path-style-access": "true",
    "client.region": "us-east-1",
}


GCS_JARS = (
    JARS.parent / "iceberg-gcp-bundle-1.11.0.jar",
    JARS.parent / "iceberg-spark-runtime-4.1_2.13-1.11.0.jar",
)
"""Of the reference server's release: Google's client, and the `GCSFileIO` that takes it."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Both servers, side by side; ours alone where the other can't reach the store, for the reason in `alone`."""

    arco: Server
    reference: Server | None
    alone: str = ""


@contextmanager
def on_local_files(scratch: Path, options: Sequence[str]) -> Iterator[Pair]:
    """Each over folders of its own."""
    with (
        arco(f"file:{scratch}/arco", scratch, {}, options) as first,
        reference(f"file://{scratch}/reference", scratch, {}, {}) as second,
    ):
        yield Pair(first, second)


@contextmanager
def on_s3(scratch: Path, options: Sequence[str], *kind: str) -> Iterator[Pair]:
    """Both over one S3. The reference server's SQLite is a file of this machine, with no delay."""
    with ExitStack() as stack:
        server = stack.enter_context(far_s3(scratch, DELAY_MS, *kind))
        known = {"s3.endpoint": server.endpoint, **S3_FILES}
        yield Pair(
            stack.enter_context(arco(f"s3://{BUCKET}/arco", scratch, server.environment, options)),
            stack.enter_context(reference(f"s3://{BUCKET}/reference", scratch, server.environment, known)),
        )


@contextmanager
def far_s3(scratch: Path, delay_ms: int, *kind: str) -> Iterator[S3Server]:
    """An S3 with an empty bucket."""
    with ours("tools.bench.peers.slow_s3", scratch, str(delay_ms), *kind) as server:
        s3 = S3Server(server.uri)
        s3.make_bucket(BUCKET)
        yield s3


@contextmanager
def on_gcs(scratch: Path, options: Sequence[str]) -> Iterator[Pair]:
    """Both over our fake of GCS, some milliseconds away; ours alone without the jars that the other takes."""
    with ExitStack() as stack:
        near = stack.enter_context(gcs_protocol_fake())
        near.make_bucket(BUCKET)
        far = GcsServer(stack.enter_context(relayed(near.endpoint, scratch)))
        mine = stack.enter_context(arco(f"gs://{BUCKET}/arco", scratch, far.environment, options))
        missing = [jar.name for jar in GCS_JARS if not jar.exists()]
        if missing:
            yield Pair(mine, None, f"{' and '.join(missing)} not in .jars")
            return
        known = {
            "io-impl": "org.apache.iceberg.gcp.gcs.GCSFileIO",
            "gcs.service.host": far.endpoint,
            "gcs.no-auth": "true",
            "gcs.project-id": "tests",
        }
        theirs = reference(f"gs://{BUCKET}/reference", scratch, far.environment, known, GCS_JARS)
        yield Pair(mine, stack.enter_context(theirs))


@contextmanager
def on_azure(scratch: Path, options: Sequence[str]) -> Iterator[Pair]:
    """Ours over Azurite, some milliseconds away: it has no endpoint for data lakes, which `ADLSFileIO` asks."""
    with ExitStack() as stack:
        near = stack.enter_context(azurite())
        near.make_container(BUCKET)
        account = urlsplit(near.endpoint).path
        far = AzuriteServer(stack.enter_context(relayed(near.endpoint, scratch)) + account)
        mine = stack.enter_context(arco(f"az://{BUCKET}/arco", scratch, far.environment, options))
        yield Pair(mine, None, "Azurite has no endpoint for data lakes, which its ADLSFileIO asks")


@contextmanager
def relayed(url: str, scratch: Path, delay_ms: int = DELAY_MS) -> Iterator[str]:
    """Another address of a server, from which it is some milliseconds away."""
    parts = urlsplit(url)
    module = "tools.bench.peers.relay"
    with ours(module, scratch, str(delay_ms), parts.hostname or "", str(parts.port)) as relay:
        yield relay.uri
