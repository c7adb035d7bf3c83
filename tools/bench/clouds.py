"""A server of each cloud's kind on this machine, for what is measured over all of them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.bench.peers.places import far_s3
from tools.support.azurite import azurite
from tools.support.gcs_servers import gcs_protocol_fake

BUCKET = "bench"


@dataclass(frozen=True, slots=True)
class Place:
    """A store with an empty bucket: its URL, and the variables that lead there."""

    url: str
    environment: Mapping[str, str]


@contextmanager
def on_s3() -> Iterator[Place]:
    """Our S3 of `bench-peers`."""
    with TemporaryDirectory(prefix="arco-bench-") as scratch, far_s3(Path(scratch), 0) as server:
        yield Place(f"s3://{BUCKET}/store", server.environment)


@contextmanager
def on_gcs() -> Iterator[Place]:
    """Our fake of GCS."""
    with gcs_protocol_fake() as server:
        server.make_bucket(BUCKET)
        yield Place(f"gs://{BUCKET}/store", server.environment)


@contextmanager
def on_azure() -> Iterator[Place]:
    """Azurite."""
    with azurite() as server:
        server.make_container(BUCKET)
        yield Place(f"az://{BUCKET}/store", server.environment)


@contextmanager
def on_files() -> Iterator[Place]:
    """A folder of this machine."""
    with TemporaryDirectory(prefix="arco-bench-") as folder:
        yield Place(f"file:{folder}", {})


CLOUDS: Mapping[str, Callable[[], AbstractContextManager[Place]]] = {
    "S3 (our emulator)": on_s3,
    "Google Cloud Storage (our fake)": on_gcs,
    "Azure Blob Storage (Azurite)": on_azure,
}
PLACES: Mapping[str, Callable[[], AbstractContextManager[Place]]] = {"local files": on_files, **CLOUDS}
