"""The kits, and what of each cannot pass whatever the server does. Everything is run; nothing is excluded."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from arco_catalog.http.lambda_adapter import Endpoint


class Store(StrEnum):
    """Where the catalog keeps its state and its tables by default."""

    LOCAL = "local"
    S3 = "s3"
    GCS = "gcs"
    AZURE = "azure"


class Server(StrEnum):
    """What the kit talks to."""

    SERVE = "serve"
    """`arco serve`."""
    LAMBDA = "lambda"
    """The zip that is deployed, run by `tools.gateway` behind the kit's `endpoint`; on S3 only."""


@dataclass(frozen=True)
class Kit:
    """A release of the kit: how many tests it has, which of them it aborts or skips by itself, and behind what the
    function is that it talks to. One that names tables with a slash wants an endpoint that keeps it apart."""

    version: str
    tests: int
    not_run: frozenset[str]
    endpoint: Endpoint


_EMPTY_OR_NESTED_NAMESPACES = frozenset(  # both are hard-coded as unsupported
    {
        "tables.createAndDropEmptyNamespace",
        "tables.listNamespacesWithEmptyNamespace",
        "tables.listTablesInEmptyNamespace",
        "tables.namespacePropertiesOnEmptyNamespace",
        "tables.testListNestedNamespaces",
        "views.listViewsInEmptyNamespace",
    }
)
KITS = (
    Kit(
        "1.11.0",
        157,
        _EMPTY_OR_NESTED_NAMESPACES
        | {
            "tables.createTableInUniqueLocation",  # disabled: it configures the kit's own server
            "tables.testDropNamespaceWithNestedNamespace",
            "tables.testNamespaceWithSlash",
            "tables.testTableNameWithSlash",
        },
        Endpoint.HTTP_API,
    ),
    Kit("1.10.1", 149, _EMPTY_OR_NESTED_NAMESPACES, Endpoint.REST_API),
)

_MOVES_A_FILE = {"tables.testLoadTableWithMissingMetadataFile": "java.nio.file.NoSuchFileException"}
"""It moves a metadata file away as a path of this machine: `s3:/bucket/...`."""
CANNOT_PASS: Mapping[Store, Mapping[str, str]] = {
    Store.LOCAL: {},
    Store.S3: _MOVES_A_FILE,
    Store.GCS: _MOVES_A_FILE,
    Store.AZURE: _MOVES_A_FILE,
}
"""Tests that fail for a reason of their own, and the error that shows it: any other error is the server's."""
