"""Finds the server for a store's URL: one that the environment names, or an emulator that it starts."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from storage_backends.url import StoreUrl
from tools.support.azurite import azurite
from tools.support.environment import exported
from tools.support.gcs_servers import fake_gcs_server
from tools.support.s3_servers import SERVERS

S3_SERVERS = tuple(SERVERS)
NAMED_BY = {
    "s3": ("AWS_ENDPOINT_URL_S3",),
    "gs": ("STORAGE_EMULATOR_HOST",),
    "abfss": ("AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ENDPOINT"),
    "az": ("AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ENDPOINT"),
}
"""The variables that say where a store of each scheme is."""


@contextmanager
def store_server(store: str, s3_server: str = "moto") -> Iterator[None]:
    """Starts nothing for local files, nor where a variable says where the store is. Else an emulator has its bucket or
    container, and the environment of this process, and of whatever it starts, leads there."""
    url = StoreUrl.parse(store)
    if url.scheme not in NAMED_BY or any(os.environ.get(name) for name in NAMED_BY[url.scheme]):
        yield
        return
    with _emulator(url, s3_server) as environment, exported(environment):
        yield


@contextmanager
def _emulator(url: StoreUrl, s3_server: str) -> Iterator[Mapping[str, str]]:
    """What leads to an emulator that has the bucket or container of a URL."""
    bucket = url.host.partition("@")[0]
    match url.scheme:
        case "s3":
            with SERVERS[s3_server]() as s3:
                s3.make_bucket(bucket)
                yield s3.environment
        case "gs":
            with fake_gcs_server() as gcs:
                gcs.make_bucket(bucket)
                yield gcs.environment
        case _:
            with azurite() as azure:
                azure.make_container(bucket)
                yield azure.environment
