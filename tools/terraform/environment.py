"""Makes the Terraform of the environment of the catalog's programs, from the variables of settings."""

from collections.abc import Iterable, Iterator, Mapping

from arco_catalog.config.variable import Variable
from arco_catalog.config.variables import (
    ALLOW_LOCATION_OVERLAP,
    ALLOWED_LOCATIONS,
    AUTH,
    EVENTS,
    IDEMPOTENCY_CLEANUP_ENABLED,
    IDEMPOTENCY_DIALECT,
    IDEMPOTENCY_ENABLED,
    IDEMPOTENCY_LIFETIME,
    LOG_LEVEL,
    OIDC_ALGORITHMS,
    OIDC_AUDIENCES,
    OIDC_ISSUERS,
    OIDC_PRINCIPAL_CLAIM,
    OIDC_ROLES_CLAIM,
    PURGE_MODE,
    PURGE_TRUST_LOCATIONS,
    PURGE_UNDROP_WINDOW,
    TASK_PROPERTIES,
    TOKEN_AUDIENCE,
    TOKEN_KEY_SECRET,
    TOKEN_LIFETIME,
    WAREHOUSE,
)
from tools.terraform.clouds import AZURE, Cloud
from tools.terraform.hcl import aligned, indented
from tools.terraform.settings import environment_of, terraform_name

CATALOG = (
    WAREHOUSE,
    ALLOWED_LOCATIONS,
    ALLOW_LOCATION_OVERLAP,
    IDEMPOTENCY_DIALECT,
    IDEMPOTENCY_ENABLED,
    IDEMPOTENCY_LIFETIME,
    IDEMPOTENCY_CLEANUP_ENABLED,
    LOG_LEVEL,
)
PURGE = {PURGE_MODE: "mode", PURGE_UNDROP_WINDOW: "undrop_window", PURGE_TRUST_LOCATIONS: "trust_locations"}
TOKENS = (TOKEN_AUDIENCE, TOKEN_LIFETIME)
ISSUERS = (OIDC_ISSUERS, OIDC_AUDIENCES, OIDC_ALGORITHMS, OIDC_PRINCIPAL_CLAIM)


def locals_of(cloud: Cloud) -> str:
    """The block of locals of a cloud's module: `catalog_settings`, `task_settings` and `realm_settings`."""
    catalog = [setting for setting in CATALOG if not (cloud is AZURE and setting is ALLOWED_LOCATIONS)]
    tasks = {setting.name: environment_of(setting, f"var.purge.{field}") for setting, field in PURGE.items()}
    tasks[EVENTS.name] = environment_of(EVENTS, f"var.{terraform_name(EVENTS)}")
    tasks[TASK_PROPERTIES.name] = 'join(",", [for name, value in var.task_properties : "${name}=${value}"])'
    lines = [
        *_object("catalog_settings = {", _environment(catalog), "}"),
        "",
        *_object("task_settings = {", tasks, "}"),
        "",
        *_realm(cloud),
    ]
    return "\n".join(["locals {", *indented(lines), "}\n"])


def _realm(cloud: Cloud) -> Iterator[str]:
    yield "realm_settings = local.has_realm ? merge("
    yield f"  {{ {AUTH.name} = {environment_of(AUTH, 'var.auth')} }},"
    if cloud.verifies_callers:
        yield '  contains(var.auth, "gateway") ? local.gateway_settings : {},'
    tokens = {TOKEN_KEY_SECRET.name: cloud.token_key, **_environment(TOKENS)}
    yield from indented(_object('contains(var.auth, "internal") ? {', tokens, "} : {},"))
    yield '  contains(var.auth, "oidc") ? merge('
    yield from indented(indented(_object("{", _environment(ISSUERS), "},")))
    name = terraform_name(OIDC_ROLES_CLAIM)
    yield f"    var.{name} == null ? {{}} : {{ {OIDC_ROLES_CLAIM.name} = var.{name} }},"
    yield "  ) : {},"
    yield ") : {}"


def _environment(settings: Iterable[Variable[object]]) -> dict[str, str]:
    return {setting.name: environment_of(setting, f"var.{terraform_name(setting)}") for setting in settings}


def _object(opening: str, entries: Mapping[str, str], closing: str) -> Iterator[str]:
    yield opening
    yield from indented(aligned(entries))
    yield closing
