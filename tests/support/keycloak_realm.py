"""A realm of Keycloak's as docs/identity-providers/keycloak.md describes it, with clients and users of the tests."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from tests.support.keycloak import Keycloak

AUDIENCE = "arco-catalog"
SECRET = "a-secret-of-this-test"
PASSWORD = "a-password-of-this-test"
BUILT_IN_ROLES = frozenset({"offline_access", "uma_authorization", "default-roles-lake"})
"""Roles that Keycloak gives to every user and client of the realm `lake`."""
OTHER_ROLES = ("Data Engineers", "Administratör/in")
"""Roles of the realm that are no roles of the catalog, and whose names no such role may have."""


def make_realm(keycloak: Keycloak, name: str) -> None:
    """Makes a realm whose user `ada` has the role `reader` by the group `analysts`, and `bob` no role.

    The realm is made first: one that is imported with client scopes lacks those that Keycloak gives to others.
    """
    roles = [{"name": role} for role in ("reader", "writer", *OTHER_ROLES)]
    groups = [{"name": "analysts", "realmRoles": ["reader"]}]
    keycloak.manage("POST", "", {"realm": name, "enabled": True, "roles": {"realm": roles}, "groups": groups})
    keycloak.manage("POST", f"/{name}/client-scopes", _scope())
    for client in _clients():
        keycloak.manage("POST", f"/{name}/clients", client)
    keycloak.manage("POST", f"/{name}/users", _user("ada", groups=["/analysts"]))
    keycloak.manage("POST", f"/{name}/users", _user("bob"))
    _give_roles(keycloak, name, "ada", OTHER_ROLES)
    _give_roles(keycloak, name, "service-account-spark", ["writer"])


def _give_roles(keycloak: Keycloak, realm: str, user: str, roles: Sequence[str]) -> None:
    known = {role["name"]: role for role in keycloak.manage("GET", f"/{realm}/roles")}
    path = f"/{realm}/users/{keycloak.user(realm, user)}/role-mappings/realm"
    keycloak.manage("POST", path, [known[role] for role in roles])


def _clients() -> Sequence[Mapping[str, object]]:
    return [
        _person_client(),
        _service("spark"),
        _service("elsewhere", scopes=("basic", "roles"), audience="another-service"),
        _service("audienceless", scopes=("basic",)),
        _service("nameless", scopes=("roles", "arco-catalog")),
        _service("lightweight", attributes={"client.use.lightweight.access.token.enabled": "true"}),
        _service("long-lived", attributes={"access.token.lifespan": "172800"}),
    ]


def _scope() -> dict[str, Any]:
    """The client scope that puts the catalog's audience, and the groups of a user, into access tokens."""
    return {
        "name": "arco-catalog",
        "protocol": "openid-connect",
        "protocolMappers": [
            _audience(AUDIENCE),
            {
                "name": "groups",
                "protocol": "openid-connect",
                "protocolMapper": "oidc-group-membership-mapper",
                "config": {"claim.name": "groups", "full.path": "false", "access.token.claim": "true"},
            },
        ],
    }


def _audience(audience: str) -> dict[str, Any]:
    return {
        "name": f"audience {audience}",
        "protocol": "openid-connect",
        "protocolMapper": "oidc-audience-mapper",
        "config": {"included.custom.audience": audience, "access.token.claim": "true"},
    }


def _person_client() -> dict[str, Any]:
    return {
        "clientId": "arco",
        "publicClient": True,
        "standardFlowEnabled": True,
        "redirectUris": ["http://127.0.0.1/*"],
        "attributes": {"oauth2.device.authorization.grant.enabled": "true", "pkce.code.challenge.method": "S256"},
        "defaultClientScopes": ["basic", "roles", "arco-catalog"],
        "optionalClientScopes": ["offline_access"],
    }


def console_client(page: str) -> Mapping[str, Any]:
    """The client that the console at an address is, as the documentation has it."""
    return {
        "clientId": "arco-console",
        "publicClient": True,
        "standardFlowEnabled": True,
        "redirectUris": [page],
        "webOrigins": ["{0.scheme}://{0.netloc}".format(urlsplit(page))],
        "attributes": {"post.logout.redirect.uris": "+", "pkce.code.challenge.method": "S256"},
        "defaultClientScopes": ["basic", "roles", "arco-catalog"],
    }


def _service(
    name: str,
    scopes: tuple[str, ...] = ("basic", "roles", "arco-catalog"),
    audience: str | None = None,
    attributes: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    return {
        "clientId": name,
        "secret": SECRET,
        "serviceAccountsEnabled": True,
        "standardFlowEnabled": False,
        "directAccessGrantsEnabled": True,
        "defaultClientScopes": [*scopes],
        "attributes": attributes or {},
        "protocolMappers": [] if audience is None else [_audience(audience)],
    }


def _user(name: str, **more: object) -> Mapping[str, object]:
    profile = {"firstName": name, "lastName": name, "email": f"{name}@example.org", "emailVerified": True}
    credentials = [{"type": "password", "value": PASSWORD, "temporary": False}]
    return {"username": name, "enabled": True, "credentials": credentials, **profile, **more}
