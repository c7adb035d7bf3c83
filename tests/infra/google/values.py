"""What the module for Google Cloud decides, without a provider: names, rights, the container, queries, settings.

Its files of resources need Google's provider. The others hold variables and locals alone, which Terraform can compute
by itself; tests hold them to what must be true, and `RESOURCES` are few and plain.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from arco_catalog.iceberg.json import JsonValue
from tests.infra.terraform import INFRA, Variables, Workspace, module_block

GOOGLE = INFRA / "google"
VALUES = (
    *("setting_variables", "setting_environment", "variables", "names", "container", "grants", "settings", "queries"),
)
URL = "https://lake-api-123456789012.europe-west3.run.app"
_SHOWN = {
    "bindings": "local.bindings",
    "roles": "local.roles",
    "members": "local.members",
    "environment": "local.container_environment",
    "service_environment": "local.service_environment",
    "vend_permissions": "local.vend_permissions",
    "token_key_permissions": "local.token_key_permissions",
    "event_topics": "local.event_topics",
    "storage": "local.storage",
    "serve": "local.serve",
    "jobs": "local.jobs",
    "task_metric": "local.task_metric",
    "port": "local.port",
    "seconds": "[local.job_seconds, local.job_timeout_seconds]",
    "walk_completed": "local.walk_completed",
    "collection_completed": "local.collection_completed",
    "collection_listed": "local.collection_listed",
    "request_metric": "local.request_metric",
    "alerts": "local.alerts",
    "graphs": "local.graphs",
    "settings": "local.to_paste",
    "bucket": "local.bucket",
}

SPARK = "serviceAccount:lake-spark@my-project.iam.gserviceaccount.com"
ADA = "user:ada@example.com"
CHANGES = "projects/another-project/topics/changes"
ACCEPTED: dict[str, Variables] = {
    "fresh": {"engine_members": [SPARK, SPARK]},
    "folder": {
        "bucket": "there-already",
        "prefix": "lakes/one",
        "warehouse": "analytics",
        "allowed_locations": ["gs://elsewhere/tables"],
        "engine_members": [SPARK],
        "operator_members": [ADA],
        "image": f"europe-west3-docker.pkg.dev/my-project/arco/arco-catalog@sha256:{'0' * 64}",
        "cpu": 2,
        "memory": 2048,
        "min_instances": 1,
        "instance_billing": True,
        "environment": {"ARCO_MAX_BODY": "16MB", "ARCO_HOST": "127.0.0.1"},
        "idempotency_enabled": False,
        "idempotency_lifetime": "PT1H30M",
        "idempotency_cleanup_enabled": False,
        "request_metrics": False,
        "enable_apis": False,
        "events": True,
        "event_receivers": [CHANGES],
    },
    "anyone": {
        "authorization": "none",
        "allow_unauthenticated": True,
        "ingress": "internal",
        "soft_delete_days": 0,
        "kms_key": "projects/p/locations/l/keyRings/r/cryptoKeys/k",
        "notification_channels": ["projects/my-project/notificationChannels/1"],
    },
    "realm": {
        "auth": ["internal", "oidc"],
        "authorization": "none",
        "token_key_secret": "projects/my-project/secrets/lake-token-key",
        "oidc_issuers": ["https://accounts.google.com"],
        "oidc_audiences": ["lake"],
        "bucket": "there-already",
        "prefix": "lakes/one",
        "warehouse": "analytics",
        "engine_members": [SPARK],
        "operator_members": [ADA],
    },
}

REFUSED_ALONE: dict[str, tuple[Variables, str]] = {
    "no_project": ({"project": "My Project"}, "must be a project's ID"),
    "no_name_for_an_account": ({"name": "a-name-that-is-too-long"}, "3 to 19 lower-case letters"),
    "newest_image": ({"image": "registry/arco:latest"}, "a tag other than latest"),
    "any_image": ({"image": "registry:5000/arco"}, "a tag other than latest"),
    "prefix_with_slashes": ({"prefix": "/lakes/"}, "folder names joined by slashes"),
    "prefix_that_climbs": ({"prefix": "a/../b"}, "must not hold . or .."),
    "warehouse_with_a_wildcard": ({"warehouse": "a*"}, "letters, digits, hyphens and underscores"),
    "warehouse_that_expires": ({"warehouse": "_probe"}, "expires after a day"),
    "location_of_a_whole_bucket": ({"allowed_locations": ["gs://b"]}, "of the form gs://bucket/folder"),
    "location_that_ends_a_condition": ({"allowed_locations": ['gs://b/"a']}, "of the form gs://bucket/folder"),
    "too_many_locations": ({"allowed_locations": [f"gs://b/{number}" for number in range(17)]}, "sixteen at most"),
    "unknown_dialect": ({"idempotency_dialect": "ours"}, "iceberg or polaris"),
    "keys_for_two_days": ({"idempotency_lifetime": "P2D"}, "P1D at most"),
    "versions_not_kept": ({"noncurrent_days": 0}, "at least 1"),
    "soft_deletion_for_a_day": ({"soft_delete_days": 1}, "0, or 7 to 90"),
    "unknown_authorization": ({"authorization": "jwt"}, "iam or none"),
    "engines_that_are_everybody": ({"engine_members": ["allUsers"]}, "is none"),
    "operators_without_a_kind": ({"operator_members": ["ada@example.com"]}, "members of IAM with their kind"),
    "unknown_ingress": ({"ingress": "vpn"}, "all or internal"),
    "three_cores": ({"cpu": 3}, "1, 2, 4 or 8"),
    "more_requests_than_connections": ({"concurrency": 1000}, "1 to 500"),
    "port_of_its_own": ({"environment": {"PORT": "1"}}, "Cloud Run sets them"),
    "whom_cloud_run_verified": ({"auth": ["gateway"]}, "gateway is no choice"),
    "key_by_its_version": (
        {"auth": ["internal"], "authorization": "none", "token_key_secret": "projects/p/secrets/s/versions/1"},
        "of the form projects/P/secrets/S",
    ),
    "warehouse_of_other_catalogs": ({"warehouse": "catalogs"}, "other catalogs lie in that folder"),
    "key_in_the_environment": ({"environment": {"ARCO_TOKEN_KEY": "k"}}, "would lie in Terraform's state"),
    "receiver_by_its_subscription": (
        {"events": True, "event_receivers": ["projects/another-project/subscriptions/changes"]},
        "event_receivers must be topics of Pub/Sub",
    ),
    "unknown_level": ({"log_level": "verbose"}, "debug, info, warning or error"),
}
"""A variable that can't be right whatever the others are, and what is said of it."""

REFUSED_TOGETHER: dict[str, tuple[Variables, str]] = {
    "engines_in_the_state": ({"allowed_locations": ["gs://my-project-lake/main"]}, "must not hold the catalog's state"),
    "tables_in_a_reserved_folder": ({"allowed_locations": ["gs://b/_realm/t"]}, "no table may be there"),
    "open_to_all": ({"authorization": "none"}, "set allow_unauthenticated = true"),
    "no_key_to_sign_with": (
        {"auth": ["internal"], "authorization": "none"},
        "auth with internal needs token_key_secret",
    ),
    "issuers_of_nobody": (
        {"auth": ["oidc"], "authorization": "none", "oidc_issuers": [], "oidc_audiences": ["a"]},
        "auth with oidc needs oidc_issuers",
    ),
    "tokens_that_cloud_run_refuses": (
        {"auth": ["oidc"], "oidc_issuers": ["https://a"], "oidc_audiences": ["a"], "authorization": "iam"},
        "Cloud Run would refuse the tokens",
    ),
    "vending_without_grants": ({"vending": True}, "needs a realm: without grants"),
    "receivers_without_events": ({"event_receivers": [CHANGES]}, "event_receivers needs events = true"),
    "too_little_memory": ({"cpu": 4, "memory": 1024}, "512 to 4096 MB for each core"),
    "more_kept_than_allowed": ({"min_instances": 30}, "0 to max_instances"),
}
"""Variables that contradict each other, and what is said of them."""


def named(variables: Variables) -> Variables:
    """A whole set of variables."""
    usual: dict[str, JsonValue] = {
        "project": "my-project",
        "region": "europe-west3",
        "name": "lake",
        "image": "europe-west3-docker.pkg.dev/my-project/arco/arco-catalog:0.1.0",
    }
    return {**usual, **variables}


def workspace(deployments: Mapping[str, Variables], scratch: Path) -> Workspace:
    """The values of many deployments in one configuration, as outputs."""
    module = scratch / "google"
    module.mkdir()
    for name in VALUES:
        shutil.copy(GOOGLE / f"{name}.tf", module)
    shown = "".join(f'output "{name}" {{\n  value = {value}\n}}\n' for name, value in _SHOWN.items())
    (module / "shown.tf").write_text(f'locals {{\n  url = "{URL}"\n}}\n{shown}')
    blocks = [
        module_block(name, named(given), "./google") + f'output "{name}" {{\n  value = module.{name}\n}}\n'
        for name, given in deployments.items()
    ]
    (scratch / "main.tf").write_text("\n".join(blocks))
    made = Workspace(scratch)
    made.run("init", "-backend=false")
    return made


def evaluate(deployments: Mapping[str, Variables], scratch: Path) -> Mapping[str, Mapping[str, Any]]:
    """The values of each deployment. Raises `TerraformFailed` if one is refused."""
    made = workspace(deployments, scratch)
    made.run("plan", "-out=made.tfplan")
    document = json.loads(made.run("show", "-json", "made.tfplan"))
    return {name: output["value"] for name, output in document["planned_values"]["outputs"].items()}
