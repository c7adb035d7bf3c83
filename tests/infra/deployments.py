"""Deployments that the module must plan, and those that it must refuse."""

import zipfile
from pathlib import Path

from arco_catalog.iceberg.json import JsonValue
from tests.infra.terraform import Variables

KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
LAYER = "arn:aws:lambda:us-east-1:123456789012:layer:otel:1"
TOPIC = "arn:aws:sns:us-east-1:123456789012:alarms"
CHANGES_QUEUE = "arn:aws:sqs:us-east-1:123456789012:changes.fifo"
CHANGES_TOPIC = "arn:aws:sns:eu-west-1:210987654321:changes"
READER = "arn:aws:iam::123456789012:role/team/bi"
WRITER = "arn:aws:iam::123456789012:role/loader"
OPERATOR = "arn:aws:iam::123456789012:role/operator"
COLLECTOR = "arn:aws:iam::123456789012:role/collector"
OWN_SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:keys/lake-AbCdEf"
PARAMETER = "arn:aws:ssm:us-east-1:123456789012:parameter/lake/keys"
ISSUER = "https://id.example.com/lake"
JWT: JsonValue = {"issuer": "https://id.example.com/lake", "audience": ["lake"], "scopes": ["catalog"]}
BY_TOKEN: Variables = {"authorization": "jwt"}

ACCEPTED: dict[str, Variables] = {
    "fresh": {},
    "rest": {
        "endpoint": "rest-api",
        "provisioned_concurrency": 2,
        "alarm_topic_arns": [TOPIC],
        "metrics_namespace": "Lakes",
        "events": True,
        "event_receivers": [CHANGES_QUEUE, CHANGES_TOPIC],
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
        "purge": {"undrop_window": "PT0S", "trust_locations": True},
        "task_properties": {"delegation.retry.TABLE_PURGE.max-attempts": "20"},
        "idempotency_dialect": "polaris",
        "idempotency_enabled": False,
        "idempotency_lifetime": "PT1H30M",
        "idempotency_cleanup_enabled": False,
        "source_principals": ["arn:aws:sts::123456789012:assumed-role/servo", "arn:aws:iam::123456789012:user/*"],
    },
    "any-scope": {
        "authorization": "jwt",
        "jwt": {"issuer": "https://id.example.com/lake", "audience": ["lake"]},
        "allow_any_scope": True,
    },
    "anyone": {"authorization": "none", "allow_unauthenticated": True, "kms_key_arn": KEY, "access_logs": False},
    "signed": {
        "auth": ["gateway"],
        "kms_key_arn": KEY,
        "reader_role_arns": [READER],
        "writer_role_arns": [WRITER],
        "operator_role_arns": [OPERATOR],
        "collector_role_arns": [COLLECTOR],
        "emr": {
            "code": "s3://code/arco",
            "schedules": {
                "compact": "rate(1 hour)",
                "maintain": "cron(0 3 * * ? *)",
                "collect": "rate(7 days)",
                "fsck": "rate(30 days)",
            },
            "arguments": {"maintain": ["--max-bytes", "100G"]},
        },
    },
    "signed-url": {"auth": ["gateway"], "endpoint": "function-url", "function_url_id": "abcdefgh", "realm": ["a"]},
    "tokens": {
        "auth": ["gateway"],
        "authorization": "jwt",
        "jwt": {"issuer": ISSUER, "audience": ["lake"]},
        "gateway_principal_claim": "client_id",
        "gateway_roles_claim": "roles",
        "bucket": "there-already",
        "prefix": "lakes/one",
        "allowed_locations": ["s3://elsewhere/tables"],
    },
    "clients": {
        "auth": ["internal", "oidc"],
        "authorization": "none",
        "generate_token_key": True,
        "token_lifetime": 600,
        "oidc_issuers": [ISSUER, f"two={ISSUER}/two"],
        "oidc_audiences": ["lake"],
        "oidc_roles_claim": "roles",
        "realm": ["one", "two"],
        "prefix": "lakes",
        "operator_role_arns": [OPERATOR],
    },
    "pages": {"auth": ["internal"], "authorization": "none", "generate_token_key": True, "console": True},
    "clients-at-a-rest-api": {
        "auth": ["internal"],
        "authorization": "none",
        "endpoint": "rest-api",
        "token_key_secret": PARAMETER,
        "token_key_kms_key_arn": KEY,
    },
    "own-files": {
        "auth": ["internal"],
        "authorization": "none",
        "token_key_secret": OWN_SECRET,
        "vending": False,
        "emr": {
            "code": "s3://code/arco",
            "image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/arco:1",
            "python": "/usr/bin/python3.11",
            "schedules": {"compact": "rate(1 hour)"},
            "credential": "s3://keys/lake/pipeline",
        },
    },
}

VENDING = [name for name, given in ACCEPTED.items() if given.get("auth") and given.get("vending") is not False]
"""Deployments whose engines get credentials of the catalog, and have no other right on the files."""

WITH_JOBS = ("signed", "own-files")
"""Deployments that run jobs of the pipeline by the clock."""

REFUSED_ALONE: dict[str, tuple[Variables, str]] = {
    "no_name_for_a_bucket": ({"name": "Lake"}, "3 to 28 lower-case letters"),
    "unknown_endpoint": ({"endpoint": "alb"}, "http-api, rest-api or function-url"),
    "unknown_authorization": ({"authorization": "basic"}, "iam, jwt or none"),
    "unknown_dialect": ({"idempotency_dialect": "ours"}, "iceberg or polaris"),
    "keys_for_two_days": ({"idempotency_lifetime": "P2D"}, "P1D at most"),
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
    "unknown_level": ({"log_level": "verbose"}, "debug, info, warning or error"),
    "namespace_of_amazon": ({"metrics_namespace": "AWS/Arco"}, "must not begin with AWS/"),
    "versions_not_kept": ({"noncurrent_days": 0}, "at least 1"),
    "nobody_is_let_in": ({"auth": ["none"]}, "must list gateway, internal or oidc"),
    "let_in_twice": ({"auth": ["gateway", "gateway"]}, "each once"),
    "tables_in_a_reserved_folder": ({"allowed_locations": ["s3://b/_realm/t"]}, "no table may be there"),
    "key_by_its_name": (
        {"token_key_secret": "lake-keys", "auth": ["internal"], "authorization": "none"},
        "must be the whole ARN",
    ),
    "realm_that_climbs": ({"realm": [".."], "auth": ["gateway"]}, "begin with a letter or a digit"),
    "tokens_for_a_week": ({"token_lifetime": 604800}, "10 to 86400 seconds"),
    "issuer_in_the_clear": (
        {"auth": ["oidc"], "authorization": "none", "oidc_issuers": ["http://a"], "oidc_audiences": ["a"]},
        "URLs that begin with https://",
    ),
    "shared_keys_as_algorithms": ({"oidc_algorithms": ["HS256"]}, "oidc_algorithms must be"),
    "audience_with_a_comma": ({"oidc_audiences": ["a,b"]}, "without commas and spaces"),
    "url_for_an_id": ({"function_url_id": "https://a.lambda-url.b.on.aws"}, "the id alone"),
    "key_in_the_environment": ({"environment": {"ARCO_TOKEN_KEY": "k"}}, "would lie in Terraform's state"),
    "realm_past_the_module": ({"environment": {"ARCO_AUTH": "gateway"}}, "the rights that go with them"),
    "purge_of_another_kind": ({"purge": {"mode": "later"}}, "purge.mode must be async, sync or off"),
    "window_that_is_no_duration": ({"purge": {"undrop_window": "a day"}}, "must be a duration such as PT24H"),
    "property_of_something_else": ({"task_properties": {"max-attempts": "3"}}, "without commas"),
    "receiver_by_its_url": (
        {"events": True, "event_receivers": ["https://sqs.us-east-1.amazonaws.com/123456789012/changes"]},
        "event_receivers must be ARNs of queues of SQS and topics of SNS",
    ),
    "receiver_with_a_wildcard": (
        {"events": True, "event_receivers": ["arn:aws:sqs:us-east-1:123456789012:*"]},
        "event_receivers must be ARNs",
    ),
    "emr_without_a_folder": ({"emr": {"code": "s3://code"}}, "emr.code must be"),
    "job_of_another_name": ({"emr": {"code": "s3://code/a", "schedules": {"purge": "rate(1 day)"}}}, "know the jobs"),
    "options_of_another_job": ({"emr": {"code": "s3://code/a", "arguments": {"purge": ["--all"]}}}, "know the jobs"),
    "schedule_that_is_no_expression": (
        {"emr": {"code": "s3://code/a", "schedules": {"compact": "hourly"}}},
        "emr.schedules must be expressions",
    ),
    "maintenance_with_an_old_iceberg": (
        {"emr": {"code": "s3://code/a", "release_label": "emr-7.11.0", "schedules": {"maintain": "rate(1 day)"}}},
        "needs Iceberg 1.10",
    ),
    "secret_in_a_schedule": (
        {"emr": {"code": "s3://code/a", "arguments": {"compact": ["--property=credential=a:b"]}}},
        "the credential is a file",
    ),
    "credential_that_is_no_file": (
        {"emr": {"code": "s3://code/a", "credential": "client:secret"}},
        "emr.credential must be of the form",
    ),
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
    "pages_behind_signatures": ({"console": True}, "a browser signs no requests"),
    "pages_at_a_rest_api": (
        {
            "console": True,
            "endpoint": "rest-api",
            "auth": ["internal"],
            "authorization": "none",
            "generate_token_key": True,
        },
        "the other endpoints have no open routes",
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
    "vending_without_grants": ({"vending": True}, "needs a realm: without grants"),
    "realm_that_lets_nobody_in": ({"realm": ["a"]}, "set auth too"),
    "no_key_to_sign_with": (
        {"auth": ["internal"], "authorization": "none", "generate_token_key": False},
        "set just one of token_key_secret and generate_token_key",
    ),
    "two_keys_to_sign_with": (
        {"auth": ["internal"], "authorization": "none", "generate_token_key": True, "token_key_secret": OWN_SECRET},
        "set just one of token_key_secret and generate_token_key",
    ),
    "key_that_signs_nothing": (
        {"generate_token_key": True},
        "auth without internal signs none",
    ),
    "word_of_nobody": (
        {"auth": ["gateway"], "authorization": "none"},
        'authorization = "none" verifies nobody',
    ),
    "own_tokens_behind_signatures": (
        {"auth": ["internal"], "generate_token_key": True, "authorization": "iam"},
        "the endpoint would refuse them before that",
    ),
    "tokens_of_issuers_behind_an_authorizer": (
        {
            **BY_TOKEN,
            "jwt": JWT,
            "auth": ["gateway", "oidc"],
            "oidc_issuers": [ISSUER],
            "oidc_audiences": ["lake"],
        },
        "the endpoint would refuse them before that",
    ),
    "issuers_of_nobody": (
        {"auth": ["oidc"], "authorization": "none", "oidc_audiences": ["lake"], "oidc_issuers": []},
        "needs oidc_issuers",
    ),
    "any_audience": (
        {"auth": ["oidc"], "authorization": "none", "oidc_issuers": [ISSUER], "oidc_audiences": []},
        "needs oidc_audiences",
    ),
    "reader_of_another_account": (
        {"reader_role_arns": ["arn:aws:iam::999999999999:role/bi"]},
        "reader_role_arns must be ARNs of roles of this account",
    ),
    "everybody_writes": (
        {"writer_role_arns": ["arn:aws:iam::123456789012:role/*"]},
        "writer_role_arns must be ARNs of roles of this account",
    ),
    "tables_in_the_realm_s_state": (
        {"bucket": "there-already", "auth": ["gateway"], "warehouse": "catalogs"},
        "nor may the folder of new catalogs",
    ),
    "jobs_without_a_token": (
        {"emr": {"code": "s3://code/a", "schedules": {"compact": "rate(1 hour)"}}, **BY_TOKEN, "jwt": JWT},
        "a job gets no token of another issuer",
    ),
    "jobs_without_a_credential": (
        {
            "emr": {"code": "s3://code/a", "schedules": {"compact": "rate(1 hour)"}},
            "auth": ["internal"],
            "authorization": "none",
            "generate_token_key": True,
        },
        "emr.credential is what a job logs in with",
    ),
    "credential_beside_signatures": (
        {
            "emr": {
                "code": "s3://code/a",
                "schedules": {"compact": "rate(1 hour)"},
                "credential": "s3://keys/pipeline",
            },
            "auth": ["gateway"],
        },
        "emr.credential is what a job logs in with",
    ),
    "jobs_of_several_realms": (
        {
            "emr": {"code": "s3://code/a", "schedules": {"compact": "rate(1 hour)"}},
            "auth": ["gateway"],
            "realm": ["a", "b"],
        },
        "emr.schedules is for one realm",
    ),
    "receivers_without_events": ({"event_receivers": [CHANGES_QUEUE]}, "event_receivers needs events = true"),
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
