"""Names of operations: as the specification calls them (`operationId`), so that a metric means the same everywhere."""

from collections.abc import Mapping

UNKNOWN = "unknown"
"""No route took the request."""

_NAMESPACES = "/v1/{prefix}/namespaces"
_NAMESPACE = f"{_NAMESPACES}/{{namespace}}"
_TABLE = f"{_NAMESPACE}/tables/{{table}}"
_VIEW = f"{_NAMESPACE}/views/{{view}}"

OPERATIONS: Mapping[str, str] = {
    "GET /health": "health",
    "HEAD /health": "health",
    "GET /v1/config": "getConfig",
    "POST /v1/oauth/tokens": "getToken",
    f"GET {_NAMESPACES}": "listNamespaces",
    f"POST {_NAMESPACES}": "createNamespace",
    f"GET {_NAMESPACE}": "loadNamespaceMetadata",
    f"HEAD {_NAMESPACE}": "namespaceExists",
    f"DELETE {_NAMESPACE}": "dropNamespace",
    f"POST {_NAMESPACE}/properties": "updateProperties",
    f"GET {_NAMESPACE}/tables": "listTables",
    f"POST {_NAMESPACE}/tables": "createTable",
    f"POST {_NAMESPACE}/register": "registerTable",
    f"GET {_TABLE}": "loadTable",
    f"HEAD {_TABLE}": "tableExists",
    f"POST {_TABLE}": "updateTable",
    f"DELETE {_TABLE}": "dropTable",
    f"POST {_TABLE}/metrics": "reportMetrics",
    f"POST {_TABLE}/unregister": "unregisterTable",
    f"GET {_TABLE}/credentials": "loadCredentials",
    f"POST {_TABLE}/sign": "signRequest",
    "POST /v1/{prefix}/tables/rename": "renameTable",
    "POST /v1/{prefix}/transactions/commit": "commitTransaction",
    f"GET {_NAMESPACE}/views": "listViews",
    f"POST {_NAMESPACE}/views": "createView",
    f"POST {_NAMESPACE}/register-view": "registerView",
    f"GET {_VIEW}": "loadView",
    f"HEAD {_VIEW}": "viewExists",
    f"POST {_VIEW}": "replaceView",
    f"DELETE {_VIEW}": "dropView",
    "POST /v1/{prefix}/views/rename": "renameView",
    f"GET {_NAMESPACE}/functions": "listFunctions",
    f"GET {_NAMESPACE}/functions/{{function}}": "loadFunction",
}
"""By endpoint, as routes are named in `/v1/config`."""


def operation(endpoint: str) -> str:
    """The operation of an endpoint."""
    return OPERATIONS.get(endpoint, UNKNOWN)
