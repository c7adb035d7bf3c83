"""The names of operations in logs, metrics and traces, by endpoint. An operation of a specification (Iceberg's or
Polaris's) has the `operationId` from there, so that a metric means the same in all deployments."""

from collections.abc import Mapping

UNKNOWN = "unknown"
"""The name of the operation if no route handles the request."""

_NAMESPACES = "/v1/{prefix}/namespaces"
_NAMESPACE = f"{_NAMESPACES}/{{namespace}}"
_TABLE = f"{_NAMESPACE}/tables/{{table}}"
_VIEW = f"{_NAMESPACE}/views/{{view}}"
_POLARIS = "/polaris/v1/{prefix}"
_GENERIC_TABLES = f"{_POLARIS}/namespaces/{{namespace}}/generic-tables"
_SEMANTIC_MODELS = f"{_POLARIS}/namespaces/{{namespace}}/semantic-models"
_SEMANTIC_MODEL = f"{_SEMANTIC_MODELS}/{{semantic-model-name}}"
_POLICIES = f"{_POLARIS}/namespaces/{{namespace}}/policies"
_POLICY = f"{_POLICIES}/{{policy-name}}"
_MANAGEMENT = "/api/management/v1"
_CATALOGS = f"{_MANAGEMENT}/catalogs"
_CATALOG = f"{_CATALOGS}/{{catalog}}"
_CATALOG_ROLES = f"{_CATALOG}/catalog-roles"
_CATALOG_ROLE = f"{_CATALOG_ROLES}/{{catalog-role}}"
_GOVERNED = f"{_CATALOG}/namespaces/{{namespace}}"
_PRINCIPALS = f"{_MANAGEMENT}/principals"
_PRINCIPAL = f"{_PRINCIPALS}/{{principal}}"
_PRINCIPAL_ROLES = f"{_MANAGEMENT}/principal-roles"
_PRINCIPAL_ROLE = f"{_PRINCIPAL_ROLES}/{{principal-role}}"
_TASKS_OF_SERVICE = "/delegation-service/api/v1/tasks"
_USED_ROLES = f"{_PRINCIPAL_ROLE}/catalog-roles/{{catalog}}"

OPERATIONS: Mapping[str, str] = {
    "GET /health": "health",
    "HEAD /health": "health",
    "GET /openapi.json": "getOpenApi",
    "GET /": "openConsole",
    "GET /ui": "openConsole",
    "GET /ui/config.json": "getConsoleConfig",
    "GET /ui/{file}": "getConsoleFile",
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
    f"POST {_TABLE}/notifications": "sendNotification",
    f"POST {_TABLE}/unregister": "unregisterTable",
    f"POST {_TABLE}/undrop": "undropTable",
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
    f"GET {_NAMESPACE}/governance": "getNamespaceGovernance",
    f"POST {_NAMESPACE}/governance": "updateNamespaceGovernance",
    f"GET {_TABLE}/governance": "getTableGovernance",
    f"POST {_TABLE}/governance": "updateTableGovernance",
    f"GET {_VIEW}/governance": "getViewGovernance",
    f"POST {_VIEW}/governance": "updateViewGovernance",
    f"GET {_TABLE}/timeline": "getTableTimeline",
    f"GET {_TABLE}/timeline/{{version}}": "getTableVersion",
    f"GET {_TABLE}/compare": "compareTableVersions",
    f"GET {_VIEW}/compare": "compareViewVersions",
    f"GET {_VIEW}/timeline": "getViewTimeline",
    f"GET {_VIEW}/timeline/{{version}}": "getViewVersion",
    "GET /v1/{prefix}/search": "search",
    "GET /v1/{prefix}/history": "listHistory",
    f"GET {_GENERIC_TABLES}": "listGenericTables",
    f"POST {_GENERIC_TABLES}": "createGenericTable",
    f"GET {_GENERIC_TABLES}/{{generic-table}}": "loadGenericTable",
    f"DELETE {_GENERIC_TABLES}/{{generic-table}}": "dropGenericTable",
    f"GET {_SEMANTIC_MODELS}": "listSemanticModels",
    f"POST {_SEMANTIC_MODELS}": "createSemanticModel",
    f"GET {_SEMANTIC_MODEL}": "loadSemanticModel",
    f"PUT {_SEMANTIC_MODEL}": "updateSemanticModel",
    f"DELETE {_SEMANTIC_MODEL}": "dropSemanticModel",
    f"GET {_POLICIES}": "listPolicies",
    f"POST {_POLICIES}": "createPolicy",
    f"GET {_POLICY}": "loadPolicy",
    f"PUT {_POLICY}": "updatePolicy",
    f"DELETE {_POLICY}": "dropPolicy",
    f"PUT {_POLICY}/mappings": "attachPolicy",
    f"POST {_POLICY}/mappings": "detachPolicy",
    f"GET {_POLARIS}/applicable-policies": "getApplicablePolicies",
    "POST /api/v1/{prefix}/lineage": "postEvent",
    f"GET {_CATALOGS}": "listCatalogs",
    f"POST {_CATALOGS}": "createCatalog",
    f"GET {_CATALOG}": "getCatalog",
    f"PUT {_CATALOG}": "updateCatalog",
    f"DELETE {_CATALOG}": "deleteCatalog",
    f"GET {_PRINCIPALS}": "listPrincipals",
    f"POST {_PRINCIPALS}": "createPrincipal",
    f"GET {_PRINCIPAL}": "getPrincipal",
    f"PUT {_PRINCIPAL}": "updatePrincipal",
    f"DELETE {_PRINCIPAL}": "deletePrincipal",
    f"POST {_PRINCIPAL}/rotate": "rotateCredentials",
    f"POST {_PRINCIPAL}/reset": "resetCredentials",
    f"GET {_PRINCIPAL}/principal-roles": "listPrincipalRolesAssigned",
    f"PUT {_PRINCIPAL}/principal-roles": "assignPrincipalRole",
    f"DELETE {_PRINCIPAL}/principal-roles/{{principal-role}}": "revokePrincipalRole",
    f"GET {_PRINCIPAL_ROLES}": "listPrincipalRoles",
    f"POST {_PRINCIPAL_ROLES}": "createPrincipalRole",
    f"GET {_PRINCIPAL_ROLE}": "getPrincipalRole",
    f"PUT {_PRINCIPAL_ROLE}": "updatePrincipalRole",
    f"DELETE {_PRINCIPAL_ROLE}": "deletePrincipalRole",
    f"GET {_PRINCIPAL_ROLE}/principals": "listAssigneePrincipalsForPrincipalRole",
    f"GET {_USED_ROLES}": "listCatalogRolesForPrincipalRole",
    f"PUT {_USED_ROLES}": "assignCatalogRoleToPrincipalRole",
    f"DELETE {_USED_ROLES}/{{catalog-role}}": "revokeCatalogRoleFromPrincipalRole",
    f"GET {_CATALOG_ROLES}": "listCatalogRoles",
    f"POST {_CATALOG_ROLES}": "createCatalogRole",
    f"GET {_CATALOG_ROLE}": "getCatalogRole",
    f"PUT {_CATALOG_ROLE}": "updateCatalogRole",
    f"DELETE {_CATALOG_ROLE}": "deleteCatalogRole",
    f"GET {_CATALOG_ROLE}/principal-roles": "listAssigneePrincipalRolesForCatalogRole",
    f"GET {_CATALOG_ROLE}/grants": "listGrantsForCatalogRole",
    f"PUT {_CATALOG_ROLE}/grants": "addGrantToCatalogRole",
    f"POST {_CATALOG_ROLE}/grants": "revokeGrantFromCatalogRole",
    f"GET {_GOVERNED}/governance": "getCatalogNamespaceGovernance",
    f"POST {_GOVERNED}/governance": "updateCatalogNamespaceGovernance",
    f"GET {_GOVERNED}/tables/{{table}}/governance": "getCatalogTableGovernance",
    f"POST {_GOVERNED}/tables/{{table}}/governance": "updateCatalogTableGovernance",
    f"GET {_GOVERNED}/views/{{view}}/governance": "getCatalogViewGovernance",
    f"POST {_GOVERNED}/views/{{view}}/governance": "updateCatalogViewGovernance",
    f"POST {_CATALOG}/check": "checkPrivileges",
    f"POST {_TASKS_OF_SERVICE}/execute/synchronous": "executeSynchronousTask",
    f"POST {_TASKS_OF_SERVICE}": "submitTask",
    f"GET {_TASKS_OF_SERVICE}": "listTasks",
    f"GET {_TASKS_OF_SERVICE}/{{task}}": "getTask",
}
"""The names of operations by endpoint, in the form of the endpoints in `/v1/config`."""


def operation(endpoint: str) -> str:
    """Returns the name of the operation of an endpoint (method and path template), `UNKNOWN` if there is none."""
    return OPERATIONS.get(endpoint, UNKNOWN)
