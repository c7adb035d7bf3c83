"""The releases of the REST Compatibility Kit, and the tests that cannot pass with any server. All tests are run; none
is excluded."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from arco_catalog.http.lambda_adapter import Endpoint


class Store(StrEnum):
    """The type of store on which the kit tests the catalog: it has the catalog's state and its tables."""

    LOCAL = "local"
    S3 = "s3"
    GCS = "gcs"
    AZURE = "azure"


class Server(StrEnum):
    """The server that the kit tests: `arco serve`, or the Lambda function."""

    SERVE = "serve"
    """`arco serve`."""
    LAMBDA = "lambda"
    """The deployed zip, run by `tools.gateway` behind the kit's `endpoint`; on S3 only."""


@dataclass(frozen=True)
class Kit:
    """A release of the REST Compatibility Kit: the number of its tests, the tests that it aborts or skips by itself,
    and the endpoint of the function that it tests. A release that names tables with a slash needs an endpoint that does
    not decode paths."""

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
"""The test moves a metadata file as a path of the local file system: `s3:/bucket/...`."""
CANNOT_PASS: Mapping[Store, Mapping[str, str]] = {
    Store.LOCAL: {},
    Store.S3: _MOVES_A_FILE,
    Store.GCS: _MOVES_A_FILE,
    Store.AZURE: _MOVES_A_FILE,
}
"""Tests that fail with every server, with the class of the error. Any other error is a fault of the server."""
