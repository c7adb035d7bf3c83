"""The routes of Apache Polaris's own catalog API (`polaris-catalog-apis`)."""

from collections.abc import Sequence

from arco_catalog.http.polaris import requires as on_polaris
from arco_catalog.http.requires import namespace, needs
from arco_catalog.http.route import Effect, Route
from arco_catalog.planning.privileges import Privilege

MUTATES = Effect.MUTATES

CATALOG = "/polaris/v1/{prefix}"
NAMESPACE = f"{CATALOG}/namespaces/{{namespace}}"
GENERIC_TABLES = f"{NAMESPACE}/generic-tables"
GENERIC_TABLE = f"{GENERIC_TABLES}/{{generic-table}}"
SEMANTIC_MODELS = f"{NAMESPACE}/semantic-models"
SEMANTIC_MODEL = f"{SEMANTIC_MODELS}/{{semantic-model-name}}"
POLICIES = f"{NAMESPACE}/policies"
POLICY = f"{POLICIES}/{{policy-name}}"
MAPPINGS = f"{POLICY}/mappings"

POLARIS: Sequence[Route] = (
    Route(
        "POST",
        "/v1/{prefix}/namespaces/{namespace}/tables/{table}/notifications",
        "polaris.notifications.send",
        MUTATES,
        requires=on_polaris.notify,
    ),
    Route("GET", GENERIC_TABLES, "polaris.generic_tables.list_", requires=needs(Privilege.TABLE_LIST, namespace)),
    Route(
        "POST",
        GENERIC_TABLES,
        "polaris.generic_tables.create",
        MUTATES,
        requires=needs(Privilege.TABLE_CREATE, namespace),
    ),
    Route("GET", GENERIC_TABLE, "polaris.generic_tables.load", requires=on_polaris.load_generic_table),
    Route(
        "DELETE",
        GENERIC_TABLE,
        "polaris.generic_tables.drop",
        MUTATES,
        requires=needs(Privilege.TABLE_DROP, on_polaris.generic_table),
    ),
    Route("GET", SEMANTIC_MODELS, "polaris.semantic_models.list_", requires=needs(Privilege.TABLE_LIST, namespace)),
    Route(
        "POST",
        SEMANTIC_MODELS,
        "polaris.semantic_models.create",
        MUTATES,
        requires=needs(Privilege.TABLE_CREATE, namespace),
    ),
    Route(
        "GET",
        SEMANTIC_MODEL,
        "polaris.semantic_models.load",
        requires=needs(Privilege.TABLE_READ_PROPERTIES, on_polaris.semantic_model),
    ),
    Route(
        "PUT",
        SEMANTIC_MODEL,
        "polaris.semantic_models.replace",
        MUTATES,
        requires=needs(Privilege.TABLE_WRITE_PROPERTIES, on_polaris.semantic_model),
    ),
    Route(
        "DELETE",
        SEMANTIC_MODEL,
        "polaris.semantic_models.drop",
        MUTATES,
        requires=needs(Privilege.TABLE_DROP, on_polaris.semantic_model),
    ),
    Route("GET", POLICIES, "polaris.policies.list_", requires=needs(Privilege.POLICY_LIST, namespace)),
    Route("POST", POLICIES, "polaris.policies.create", MUTATES, requires=needs(Privilege.POLICY_CREATE, namespace)),
    Route("GET", POLICY, "polaris.policies.load", requires=needs(Privilege.POLICY_READ, on_polaris.policy)),
    Route("PUT", POLICY, "polaris.policies.update", MUTATES, requires=needs(Privilege.POLICY_WRITE, on_polaris.policy)),
    Route("DELETE", POLICY, "polaris.policies.drop", MUTATES, requires=needs(Privilege.POLICY_DROP, on_polaris.policy)),
    Route("PUT", MAPPINGS, "polaris.policies.attach", MUTATES, requires=on_polaris.attach),
    Route("POST", MAPPINGS, "polaris.policies.detach", MUTATES, requires=on_polaris.detach),
    Route(
        "GET",
        f"{CATALOG}/applicable-policies",
        "polaris.policies.applicable",
        requires=on_polaris.read_applicable,
    ),
)
