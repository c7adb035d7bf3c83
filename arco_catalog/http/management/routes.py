"""The routes of the management API (`polaris-management-service.yml`), and our own next to it.
The rights to principals and principal roles, and to list and create catalogs, are verified in the realm's registry; the
rights to one catalog, its catalog roles, grants and governance in the catalog's registry."""

from collections.abc import Sequence

from arco_catalog.http.discovery_routes import holders_of
from arco_catalog.http.governance_routes import governance_of
from arco_catalog.http.management import bodies
from arco_catalog.http.requires import Requires, needs, nothing
from arco_catalog.http.route import Effect, Route
from arco_catalog.planning.privileges import Privilege

BASE = "/api/management/v1"
PRINCIPALS = f"{BASE}/principals"
PRINCIPAL = f"{PRINCIPALS}/{{principal}}"
PRINCIPAL_ROLES = f"{BASE}/principal-roles"
PRINCIPAL_ROLE = f"{PRINCIPAL_ROLES}/{{principal-role}}"
CATALOGS = f"{BASE}/catalogs"
CATALOG = f"{CATALOGS}/{{catalog}}"
CATALOG_ROLES = f"{CATALOG}/catalog-roles"
CATALOG_ROLE = f"{CATALOG_ROLES}/{{catalog-role}}"
USED_ROLES = f"{PRINCIPAL_ROLE}/catalog-roles/{{catalog}}"


def _reads(template: str, handling: str, privilege: Privilege) -> Route:
    """Returns the route of a request that reads the realm or a catalog of it, for which the caller needs `privilege`
    there."""
    return _route("GET", template, handling, needs(privilege), Effect.READS)


def _changes(
    method: str, template: str, handling: str, privilege: Privilege, *, body: bodies.Wrapper | None = None
) -> Route:
    """Returns the route of a request that changes the realm or a catalog of it, for which the caller needs `privilege`
    there. `body` is the form of the body if clients may also send the value alone, else None."""
    return _route(method, template, handling, needs(privilege), Effect.MUTATES, body)


def _route(
    method: str,
    template: str,
    handling: str,
    requires: Requires,
    effect: Effect,
    body: bodies.Wrapper | None = None,
) -> Route:
    """Returns a route of the management API. The routes that end in `/rotate` and `/reset` may have a body, others with
    a POST or PUT must. `body` is as for `_changes`."""
    optional = template.endswith(("/rotate", "/reset"))
    return Route(
        method,
        template,
        f"management.{handling}",
        requires,
        effect,
        advertised=False,
        takes_json=not optional,
        optional_json=optional,
        bare_field=None if body is None else body.name,
    )


TOKENS = Route(
    "POST", "/v1/oauth/tokens", "oauth.get_token", advertised=False, takes_json=False, takes_form=True, public=True
)
"""The route that issues tokens on a server with realms, in place of the one that returns an error to every client."""

SPECIFIED: Sequence[Route] = (
    _reads(CATALOGS, "catalogs.list_", Privilege.CATALOG_LIST),
    _changes("POST", CATALOGS, "catalogs.create", Privilege.CATALOG_CREATE, body=bodies.CATALOG),
    _reads(CATALOG, "catalogs.get", Privilege.CATALOG_READ_PROPERTIES),
    _changes("PUT", CATALOG, "catalogs.update", Privilege.CATALOG_WRITE_PROPERTIES),
    _changes("DELETE", CATALOG, "catalogs.drop", Privilege.CATALOG_DROP),
    _reads(PRINCIPALS, "principals.list_", Privilege.PRINCIPAL_LIST),
    _changes("POST", PRINCIPALS, "principals.create", Privilege.PRINCIPAL_CREATE, body=bodies.PRINCIPAL),
    _reads(PRINCIPAL, "principals.get", Privilege.PRINCIPAL_READ_PROPERTIES),
    _changes("PUT", PRINCIPAL, "principals.update", Privilege.PRINCIPAL_WRITE_PROPERTIES),
    _changes("DELETE", PRINCIPAL, "principals.drop", Privilege.PRINCIPAL_DROP),
    _changes("POST", f"{PRINCIPAL}/rotate", "principals.rotate", Privilege.PRINCIPAL_ROTATE_CREDENTIALS),
    _changes("POST", f"{PRINCIPAL}/reset", "principals.reset", Privilege.PRINCIPAL_RESET_CREDENTIALS),
    _reads(f"{PRINCIPAL}/principal-roles", "principals.roles", Privilege.PRINCIPAL_LIST_GRANTS),
    _changes(
        "PUT",
        f"{PRINCIPAL}/principal-roles",
        "principals.assign",
        Privilege.PRINCIPAL_ROLE_MANAGE_GRANTS,
        body=bodies.PRINCIPAL_ROLE,
    ),
    _changes(
        "DELETE",
        f"{PRINCIPAL}/principal-roles/{{principal-role}}",
        "principals.revoke",
        Privilege.PRINCIPAL_ROLE_MANAGE_GRANTS,
    ),
    _reads(PRINCIPAL_ROLES, "principal_roles.list_", Privilege.PRINCIPAL_ROLE_LIST),
    _changes(
        "POST", PRINCIPAL_ROLES, "principal_roles.create", Privilege.PRINCIPAL_ROLE_CREATE, body=bodies.PRINCIPAL_ROLE
    ),
    _reads(PRINCIPAL_ROLE, "principal_roles.get", Privilege.PRINCIPAL_ROLE_READ_PROPERTIES),
    _changes("PUT", PRINCIPAL_ROLE, "principal_roles.update", Privilege.PRINCIPAL_ROLE_WRITE_PROPERTIES),
    _changes("DELETE", PRINCIPAL_ROLE, "principal_roles.drop", Privilege.PRINCIPAL_ROLE_DROP),
    _reads(f"{PRINCIPAL_ROLE}/principals", "principal_roles.principals", Privilege.PRINCIPAL_ROLE_LIST_GRANTS),
    _reads(USED_ROLES, "principal_roles.catalog_roles", Privilege.PRINCIPAL_ROLE_LIST_GRANTS),
    _changes(
        "PUT", USED_ROLES, "principal_roles.assign", Privilege.CATALOG_ROLE_MANAGE_GRANTS, body=bodies.CATALOG_ROLE
    ),
    _changes(
        "DELETE", f"{USED_ROLES}/{{catalog-role}}", "principal_roles.revoke", Privilege.CATALOG_ROLE_MANAGE_GRANTS
    ),
    _reads(CATALOG_ROLES, "catalog_roles.list_", Privilege.CATALOG_ROLE_LIST),
    _changes("POST", CATALOG_ROLES, "catalog_roles.create", Privilege.CATALOG_ROLE_CREATE, body=bodies.CATALOG_ROLE),
    _reads(CATALOG_ROLE, "catalog_roles.get", Privilege.CATALOG_ROLE_READ_PROPERTIES),
    _changes("PUT", CATALOG_ROLE, "catalog_roles.update", Privilege.CATALOG_ROLE_WRITE_PROPERTIES),
    _changes("DELETE", CATALOG_ROLE, "catalog_roles.drop", Privilege.CATALOG_ROLE_DROP),
    _reads(f"{CATALOG_ROLE}/principal-roles", "catalog_roles.principal_roles_of", Privilege.CATALOG_ROLE_LIST_GRANTS),
    _reads(f"{CATALOG_ROLE}/grants", "catalog_roles.grants", Privilege.CATALOG_ROLE_LIST_GRANTS),
    _route(
        "PUT",
        f"{CATALOG_ROLE}/grants",
        "catalog_roles.grant",
        needs(Privilege.CATALOG_MANAGE_ACCESS, bodies.granted_on),
        Effect.MUTATES,
        bodies.GRANT,
    ),
    _changes(
        "POST", f"{CATALOG_ROLE}/grants", "catalog_roles.revoke", Privilege.CATALOG_MANAGE_ACCESS, body=bodies.GRANT
    ),
)
"""All 33 operations of the specification."""

MANAGEMENT: Sequence[Route] = (
    *SPECIFIED,
    *governance_of(f"{CATALOG}/namespaces/{{namespace}}", advertised=False),
    *holders_of(f"{CATALOG}/namespaces/{{namespace}}"),
    _route("GET", f"{BASE}/caller", "principals.caller", nothing, Effect.READS),
    _route("POST", f"{CATALOG}/check", "privilege_check.check", bodies.checked_for_others, Effect.READS),
)
"""The specified routes, and our own, which no specification has."""
