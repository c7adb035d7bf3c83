"""Deployments that the module must plan, and those that it must refuse."""

import zipfile
from pathlib import Path

from arco_catalog.iceberg.json import JsonValue
from tests.infra.terraform import Variables

KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
LAYER = "arn:aws:lambda:us-east-1:123456789012:layer:otel:1"
TOPIC = "arn:aws:sns:us-east-1:123456789012:alarms"
JWT: JsonValue = {"issuer": "https://id.example.com/lake", "audience": ["lake"], "scopes": ["catalog"]}
BY_TOKEN: Variables = {"authorization": "jwt"}

ACCEPTED: dict[str, Variables] = {
    "fresh": {},
    "rest": {
        "endpoint": "rest-api",
        "provisioned_concurrency": 2,
        "alarm_topic_arns": [TOPIC],
        "metrics_namespace": "Lakes",
    },
    "url": {"endpoint": "function-url", "snap_start": True, "prefix": "lakes/one", "metrics_namespace": ""},
    "existing": {
        "bucket": "there-already",
        "warehouse": "analytics",
        "authorization": "jwt",
        "jwt": JWT,
        "kms_key_arn": KEY,
        "allowed_locations": ["s3://elsewhere/tables"],
        "tracing": True,
        "otlp_endpoint": "http://127.0.0.1:4318",
        "layers": [LAYER],
        "emr": {"code": "s3://code/arco"},
        "log_retention_days": 90,
        "memory": {"api": 1769},
        "reserved_concurrency": {"reconcile": 1},
        "idempotency_dialect": "polaris",
        "source_principals": ["arn:aws:sts::123456789012:assumed-role/servo", "arn:aws:iam::123456789012:user/*"],
    },
    "any-scope": {
        "authorization": "jwt",
        "jwt": {"issuer": "https://id.example.com/lake", "audience": ["lake"]},
        "allow_any_scope": True,
    },
    "anyone": {"authorization": "none", "allow_unauthenticated": True, "kms_key_arn": KEY, "access_logs": False},
}

REFUSED_ALONE: dict[str, tuple[Variables, str]] = {
    "no_name_for_a_bucket": ({"name": "Lake"}, "3 to 28 lower-case letters"),
    "unknown_endpoint": ({"endpoint": "alb"}, "http-api, rest-api or function-url"),
    "unknown_authorization": ({"authorization": "basic"}, "iam, jwt or none"),
    "unknown_dialect": ({"idempotency_dialect": "ours"}, "iceberg or polaris"),
    "warehouse_with_a_wildcard": ({"warehouse": "a*"}, "letters, digits, hyphens and underscores"),
    "prefix_with_slashes": ({"prefix": "/lakes/"}, "folder names joined by slashes"),
    "location_with_a_wildcard": ({"allowed_locations": ["s3://b/*"]}, "of the form s3://bucket/folder"),
    "location_of_a_whole_bucket": ({"allowed_locations": ["s3://b"]}, "of the form s3://bucket/folder"),
    "tokens_for_anybody": (
        {"jwt": {"issuer": "https://id.example.com", "audience": []}, **BY_TOKEN},
        "at least one audience",
    ),
    "issuer_without_tls": (
        {"jwt": {"issuer": "http://id.example.com", "audience": ["a"]}, **BY_TOKEN},
        "begins with https://",
    ),
    "warehouse_that_expires": ({"warehouse": "_probe"}, "expires after a day"),
    "prefix_that_climbs": ({"prefix": "a/../b"}, "must not hold . or .."),
    "principal_with_a_comma": ({"source_principals": ["a,b"]}, "without commas"),
    "unknown_level": ({"log_level": "verbose"}, "DEBUG, INFO, WARNING or ERROR"),
    "namespace_of_amazon": ({"metrics_namespace": "AWS/Arco"}, "must not begin with AWS/"),
    "versions_not_kept": ({"noncurrent_days": 0}, "at least 1"),
    "emr_without_a_folder": ({"emr": {"code": "s3://code"}}, "emr.code must be"),
}
"""A variable that can't be right whatever the others are, and what is said of it."""

REFUSED_TOGETHER: dict[str, tuple[Variables, str]] = {
    "open_to_all": ({"authorization": "none"}, "set allow_unauthenticated = true"),
    "open_function_url": (
        {"authorization": "none", "allow_unauthenticated": True, "endpoint": "function-url"},
        "a permission (lambda:InvokedViaFunctionUrl) that this provider cannot express",
    ),
    "tokens_without_an_issuer": ({"authorization": "jwt"}, "needs jwt = { issuer, audience, scopes }"),
    "tokens_of_any_scope": (
        {"authorization": "jwt", "jwt": {"issuer": "https://id.example.com", "audience": ["lake"]}},
        "any token of the audience could do anything",
    ),
    "issuer_that_nobody_asks": ({"authorization": "iam", "jwt": JWT}, "nobody would look at a token"),
    "tokens_at_a_rest_api": (
        {"authorization": "jwt", "jwt": JWT, "endpoint": "rest-api"},
        'needs endpoint = "http-api"',
    ),
    "two_ways_to_be_warm": ({"snap_start": True, "provisioned_concurrency": 1}, "exclude each other"),
    "traces_without_a_layer": ({"otlp_endpoint": "http://127.0.0.1:4318"}, "needs a layer"),
    "engines_in_the_state": (
        {"bucket": "there-already", "allowed_locations": ["s3://there-already/main"]},
        "must not hold the catalog's state",
    ),
    "nothing_to_deploy": ({"package": "nowhere.zip"}, "`make package` builds it"),
}
"""Variables that contradict each other, and what is said of it."""


def named(variables: Variables, package: Path) -> Variables:
    """A whole set of variables."""
    return {"name": "lake", "package": str(package), **variables}


def any_package(folder: Path) -> Path:
    """A zip that can be planned with, and no more."""
    file = folder / "package.zip"
    with zipfile.ZipFile(file, "w"):
        pass
    return file
