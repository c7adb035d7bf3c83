"""The routes of Apache Polaris's own catalog API (`polaris-catalog-apis`)."""

from collections.abc import Sequence

from arco_catalog.http.polaris import requires as on
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
        on.notify,
        MUTATES,
    ),
    Route("GET", GENERIC_TABLES, "polaris.generic_tables.list_", needs(Privilege.TABLE_LIST, namespace)),
    Route("POST", GENERIC_TABLES, "polaris.generic_tables.create", needs(Privilege.TABLE_CREATE, namespace), MUTATES),
    Route("GET", GENERIC_TABLE, "polaris.generic_tables.load", on.load_generic_table),
    Route(
        "DELETE", GENERIC_TABLE, "polaris.generic_tables.drop", needs(Privilege.TABLE_DROP, on.generic_table), MUTATES
    ),
    Route("GET", SEMANTIC_MODELS, "polaris.semantic_models.list_", needs(Privilege.TABLE_LIST, namespace)),
    Route("POST", SEMANTIC_MODELS, "polaris.semantic_models.create", needs(Privilege.TABLE_CREATE, namespace), MUTATES),
    Route(
        "GET", SEMANTIC_MODEL, "polaris.semantic_models.load", needs(Privilege.TABLE_READ_PROPERTIES, on.semantic_model)
    ),
    Route(
        "PUT",
        SEMANTIC_MODEL,
        "polaris.semantic_models.replace",
        needs(Privilege.TABLE_WRITE_PROPERTIES, on.semantic_model),
        MUTATES,
    ),
    Route(
        "DELETE",
        SEMANTIC_MODEL,
        "polaris.semantic_models.drop",
        needs(Privilege.TABLE_DROP, on.semantic_model),
        MUTATES,
    ),
    Route("GET", POLICIES, "polaris.policies.list_", needs(Privilege.POLICY_LIST, namespace)),
    Route("POST", POLICIES, "polaris.policies.create", needs(Privilege.POLICY_CREATE, namespace), MUTATES),
    Route("GET", POLICY, "polaris.policies.load", needs(Privilege.POLICY_READ, on.policy)),
    Route("PUT", POLICY, "polaris.policies.update", needs(Privilege.POLICY_WRITE, on.policy), MUTATES),
    Route("DELETE", POLICY, "polaris.policies.drop", needs(Privilege.POLICY_DROP, on.policy), MUTATES),
    Route("PUT", MAPPINGS, "polaris.policies.attach", on.attach, MUTATES),
    Route("POST", MAPPINGS, "polaris.policies.detach", on.detach, MUTATES),
    Route("GET", f"{CATALOG}/applicable-policies", "polaris.policies.applicable", on.read_applicable),
)
