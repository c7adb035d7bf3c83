"""What a plan makes."""

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest

from arco_catalog.config.variables import AUTHENTICATION, EVENTS, FUNCTIONS, IDEMPOTENCY_LIFETIME, TASK_PROPERTIES
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.telemetry.emf import COLLECTIONS, REQUESTS, TASKS
from tests.infra.deployments import ACCEPTED, ISSUER, KEY, PARAMETER, TOPIC, WITH_JOBS
from tests.infra.terraform import UNKNOWN, Plan
from tools.bench import cost

deployment = pytest.mark.parametrize("deployment", ACCEPTED)
API = 'aws_lambda_function.function["api"]'
FRESH = [name for name, given in ACCEPTED.items() if "bucket" not in given]


def only(plan: Plan, deployment: str, kind: str) -> dict[str, Any]:
    [resource] = plan.of_type(deployment, kind)
    return dict(resource.values)


# The bucket


@pytest.mark.parametrize("deployment", FRESH)
def test_a_bucket_that_is_made_is_private_versioned_and_kept(plan: Plan, deployment: str) -> None:
    access = only(plan, deployment, "aws_s3_bucket_public_access_block")
    versioning = only(plan, deployment, "aws_s3_bucket_versioning")
    switches = ("block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets")

    assert [access[switch] for switch in switches] == [True] * 4
    assert versioning["versioning_configuration"][0]["status"] == "Enabled"
    assert only(plan, deployment, "aws_s3_bucket")["force_destroy"] is False


@pytest.mark.parametrize(("deployment", "algorithm", "key"), [("fresh", "AES256", None), ("anyone", "aws:kms", KEY)])
def test_a_bucket_that_is_made_is_encrypted(plan: Plan, deployment: str, algorithm: str, key: str | None) -> None:
    [rule] = only(plan, deployment, "aws_s3_bucket_server_side_encryption_configuration")["rule"]
    [default] = rule["apply_server_side_encryption_by_default"]

    assert (default["sse_algorithm"], default["kms_master_key_id"] or None) == (algorithm, key)


@pytest.mark.parametrize("deployment", FRESH)
def test_nothing_that_is_current_expires_but_probes(plan: Plan, deployment: str) -> None:
    rules = only(plan, deployment, "aws_s3_bucket_lifecycle_configuration")["rule"]
    expiring = {rule["filter"][0]["prefix"] for rule in rules if (rule["expiration"] or [{}])[0].get("days")}
    prefix = ACCEPTED[deployment].get("prefix")

    assert expiring == {f"{prefix}/_probe/" if prefix else "_probe/"}
    assert all(rule["noncurrent_version_expiration"][0]["noncurrent_days"] >= 1 for rule in rules)


def test_an_existing_bucket_is_left_as_it_is(plan: Plan) -> None:
    assert [found.address for found in plan.deployment("existing") if found.type.startswith("aws_s3")] == []


# The functions


@deployment
def test_functions_are_told_what_the_variables_say(plan: Plan, deployment: str) -> None:
    given = ACCEPTED[deployment]
    functions = plan.of_type(deployment, "aws_lambda_function")
    store = "/".join(
        str(part) for part in (given.get("bucket", "lake-123456789012-us-east-1"), given.get("prefix")) if part
    )

    assert len(functions) == 4
    known = [function for function in functions if "variables" in function.values["environment"][0]]
    assert {function.address for function in functions if function not in known} <= {API}
    for function in known:
        said = function.values["environment"][0]["variables"]
        assert said.get("ARCO_REALM") == (",".join(cast(list[str], given["realm"])) if "realm" in given else None)
        assert said["ARCO_STORE"] == f"s3://{store}"
        assert said["ARCO_WAREHOUSE"] == given.get("warehouse", "main")
        assert said["ARCO_ENDPOINT"] == given.get("endpoint", "http-api")
        assert said["ARCO_METRICS_NAMESPACE"] == given.get("metrics_namespace", "ArcoCatalog/lake")
        assert said["ARCO_SOURCE_PRINCIPALS"] == ",".join(cast(list[str], given.get("source_principals", [])))
        assert said["ARCO_IDEMPOTENCY_DIALECT"] == given.get("idempotency_dialect", "iceberg")
        assert said["ARCO_IDEMPOTENCY_ENABLED"] == str(given.get("idempotency_enabled", True)).lower()
        assert said["ARCO_IDEMPOTENCY_LIFETIME"] == given.get("idempotency_lifetime", "PT30M")
        assert said["ARCO_IDEMPOTENCY_CLEANUP_ENABLED"] == str(given.get("idempotency_cleanup_enabled", True)).lower()
        assert IDEMPOTENCY_LIFETIME.read(said) > 0
        assert said["ARCO_WORK_QUEUE"] == "https://sqs.us-east-1.amazonaws.com/123456789012/lake-work"
        purge = cast(dict[str, object], given.get("purge", {}))
        assert said["ARCO_PURGE_MODE"] == purge.get("mode", "async")
        assert said["ARCO_PURGE_UNDROP_WINDOW"] == purge.get("undrop_window", "PT24H")
        assert said["ARCO_PURGE_TRUST_LOCATIONS"] == str(purge.get("trust_locations", False)).lower()
        assert TaskPolicies.of_pairs(TASK_PROPERTIES.read(said)) == TaskPolicies.parse(
            cast(dict[str, str], given.get("task_properties", {}))
        )
        assert EVENTS.read(said) == given.get("events", False)
        assert said.get("OTEL_EXPORTER_OTLP_ENDPOINT") == given.get("otlp_endpoint")


def test_functions_run_the_handlers_of_the_package_on_arm(plan: Plan) -> None:
    functions = plan.of_type("fresh", "aws_lambda_function")

    assert {function.values["handler"] for function in functions} == {
        "lambda.api.handler",
        "lambda.reconcile.handler",
        "lambda.work.handler",
    }
    assert {(*function.values["architectures"], function.values["runtime"]) for function in functions} == {
        ("arm64", "python3.13")
    }


def test_the_api_ends_before_its_gateway_gives_up(plan: Plan) -> None:
    [api] = [found for found in plan.of_type("fresh", "aws_lambda_function") if "api" in found.address]

    assert api.values["timeout"] * 1000 < only(plan, "fresh", "aws_apigatewayv2_integration")["timeout_milliseconds"]


def test_the_api_starts_from_a_snapshot_only_where_asked(plan: Plan) -> None:
    snapshots = {
        (name, function.values["function_name"])
        for name in ACCEPTED
        for function in plan.of_type(name, "aws_lambda_function")
        if function.values["snap_start"]
    }

    assert snapshots == {("url", "lake-api")}


def test_processes_are_kept_warm_only_where_asked(plan: Plan) -> None:
    kept = {name for name in ACCEPTED if plan.of_type(name, "aws_lambda_provisioned_concurrency_config")}

    assert kept == {"rest"}


@deployment
def test_every_log_group_has_a_retention(plan: Plan, deployment: str) -> None:
    groups = plan.of_type(deployment, "aws_cloudwatch_log_group")

    assert len(groups) >= 3
    assert {group.values["retention_in_days"] for group in groups} == {
        ACCEPTED[deployment].get("log_retention_days", 30)
    }


# The gateway


@pytest.mark.parametrize(
    ("deployment", "kind"),
    [
        ("fresh", "aws_apigatewayv2_api"),
        ("rest", "aws_api_gateway_rest_api"),
        ("url", "aws_lambda_function_url"),
    ],
)
def test_there_is_one_front_door_and_it_is_the_one_asked_for(plan: Plan, deployment: str, kind: str) -> None:
    doors = {"aws_apigatewayv2_api", "aws_api_gateway_rest_api", "aws_lambda_function_url"}

    assert [found.type for found in plan.deployment(deployment) if found.type in doors] == [kind]


@pytest.mark.parametrize(
    ("deployment", "kind", "authorization"),
    [
        ("fresh", "aws_apigatewayv2_route", "AWS_IAM"),
        ("existing", "aws_apigatewayv2_route", "JWT"),
        ("anyone", "aws_apigatewayv2_route", "NONE"),
        ("rest", "aws_api_gateway_method", "AWS_IAM"),
        ("url", "aws_lambda_function_url", "AWS_IAM"),
    ],
)
def test_nobody_comes_in_unasked_unless_that_was_said(
    plan: Plan, deployment: str, kind: str, authorization: str
) -> None:
    doors = plan.of_type(deployment, kind)

    assert doors
    for door in doors:
        assert (door.values.get("authorization_type") or door.values.get("authorization")) == authorization


def test_tokens_are_checked_for_issuer_and_audience(plan: Plan) -> None:
    [checked] = only(plan, "existing", "aws_apigatewayv2_authorizer")["jwt_configuration"]

    assert (checked["issuer"], checked["audience"]) == ("https://id.example.com/lake", ["lake"])


def test_the_gateways_throttle(plan: Plan) -> None:
    [of_http] = only(plan, "fresh", "aws_apigatewayv2_stage")["default_route_settings"]
    [of_rest] = only(plan, "rest", "aws_api_gateway_method_settings")["settings"]

    assert (of_http["throttling_rate_limit"], of_http["throttling_burst_limit"]) == (200, 400)
    assert (of_rest["throttling_rate_limit"], of_rest["throttling_burst_limit"]) == (200, 400)


def test_nothing_is_paid_for_metrics_that_no_alarm_and_no_graph_shows(plan: Plan) -> None:
    [of_http] = only(plan, "fresh", "aws_apigatewayv2_stage")["default_route_settings"]
    [of_rest] = only(plan, "rest", "aws_api_gateway_method_settings")["settings"]

    assert (of_http["detailed_metrics_enabled"], of_rest["metrics_enabled"]) == (False, False)


@pytest.mark.parametrize(
    ("deployment", "kind"), [("fresh", "aws_apigatewayv2_stage"), ("rest", "aws_api_gateway_stage")]
)
def test_access_logs_stay_json_where_the_gateway_has_an_error_to_tell(plan: Plan, deployment: str, kind: str) -> None:
    [logged] = only(plan, deployment, kind)["access_log_settings"]

    assert "$context.error.messageString" not in logged["format"]  # in quotes of its own


@pytest.mark.parametrize(
    ("deployment", "kind", "caller"),
    [
        ("fresh", "aws_apigatewayv2_stage", "$context.identity.userArn"),
        ("rest", "aws_api_gateway_stage", "$context.identity.userArn"),
        ("existing", "aws_apigatewayv2_stage", "$context.authorizer.claims.sub"),
    ],
)
def test_the_gateway_logs_who_called(plan: Plan, deployment: str, kind: str, caller: str) -> None:
    [logged] = only(plan, deployment, kind)["access_log_settings"]

    assert json.loads(logged["format"])["caller"] == caller


def test_a_token_needs_one_of_the_scopes_unless_it_was_said_that_any_will_do(plan: Plan) -> None:
    def scopes(deployment: str) -> list[object]:
        routes = plan.of_type(deployment, "aws_apigatewayv2_route")
        return [route.values["authorization_scopes"] for route in routes]

    assert scopes("existing") == [["catalog"]] * 4  # what begins with /v1, /polaris and /api, and the document
    assert not any(scopes("any-scope"))


def test_a_rest_api_logs_no_bodies(plan: Plan) -> None:
    [settings] = only(plan, "rest", "aws_api_gateway_method_settings")["settings"]

    assert settings["data_trace_enabled"] is False


# The realm

REALM_SETTINGS: dict[str, dict[str, str]] = {
    "fresh": {},
    "anyone": {},
    "signed": {"AUTH": "gateway", "GATEWAY_APIS": UNKNOWN, "GATEWAY_PRINCIPAL_CLAIM": "sub"},
    "signed-url": {"AUTH": "gateway", "GATEWAY_APIS": "abcdefgh", "GATEWAY_PRINCIPAL_CLAIM": "sub"},
    "tokens": {
        "AUTH": "gateway",
        "GATEWAY_APIS": UNKNOWN,
        "GATEWAY_PRINCIPAL_CLAIM": "client_id",
        "GATEWAY_ROLES_CLAIM": "roles",
    },
    "clients": {
        "AUTH": "internal,oidc",
        "TOKEN_KEY_SECRET": UNKNOWN,
        "TOKEN_AUDIENCE": "arco-catalog",
        "TOKEN_LIFETIME": "600",
        "OIDC_ISSUERS": f"{ISSUER},two={ISSUER}/two",
        "OIDC_AUDIENCES": "lake",
        "OIDC_ALGORITHMS": "RS256,ES256,EdDSA",
        "OIDC_PRINCIPAL_CLAIM": "sub",
        "OIDC_ROLES_CLAIM": "roles",
    },
    "clients-at-a-rest-api": {
        "AUTH": "internal",
        "TOKEN_KEY_SECRET": PARAMETER,
        "TOKEN_AUDIENCE": "arco-catalog",
        "TOKEN_LIFETIME": "3600",
    },
}


@pytest.mark.parametrize("deployment", REALM_SETTINGS)
def test_the_api_gets_the_settings_of_authentication_and_the_secret(plan: Plan, deployment: str) -> None:
    assert plan.realm_settings(deployment) == {
        f"ARCO_{name}": value for name, value in REALM_SETTINGS[deployment].items()
    }


@pytest.mark.parametrize("deployment", [name for name in REALM_SETTINGS if REALM_SETTINGS[name]])
def test_the_api_reads_each_setting_that_it_gets(plan: Plan, deployment: str) -> None:
    """Each is a variable of the functions, whose parser accepts the value."""
    read = {variable.name: variable for variable in (*FUNCTIONS, *AUTHENTICATION)}
    settings = {name: value for name, value in plan.realm_settings(deployment).items() if value != UNKNOWN}

    assert {*plan.realm_settings(deployment)} <= {*read}
    for name in settings:
        assert read[name].read(settings)


def test_gateways_pass_on_what_there_is_and_have_a_limit_where_clients_log_in(plan: Plan) -> None:
    def routes(deployment: str) -> dict[str, str]:
        found = plan.of_type(deployment, "aws_apigatewayv2_route")
        return {route.values["route_key"]: route.values["authorization_type"] for route in found}

    everything = ("ANY /v1/{proxy+}", "ANY /polaris/{proxy+}", "ANY /api/{proxy+}", "GET /openapi.json")
    assert routes("fresh") == dict.fromkeys(everything, "AWS_IAM")
    assert routes("signed") == dict.fromkeys(everything, "AWS_IAM")
    logging_in = ("POST /v1/oauth/tokens", "POST /api/catalog/v1/oauth/tokens")
    assert routes("clients") == dict.fromkeys((*everything, *logging_in), "NONE")
    pages = ("GET /ui", "GET /ui/{proxy+}")
    assert routes("pages") == dict.fromkeys((*everything, *logging_in, *pages), "NONE")
    limited = only(plan, "clients", "aws_apigatewayv2_stage")["route_settings"]
    assert {(each["route_key"], each["throttling_rate_limit"], each["throttling_burst_limit"]) for each in limited} == {
        (route, 10, 20) for route in logging_in
    }


def test_a_rest_api_passes_on_the_same(plan: Plan) -> None:
    def paths(deployment: str) -> set[str]:
        return {found.values["path_part"] for found in plan.of_type(deployment, "aws_api_gateway_resource")}

    assert paths("rest") == {"v1", "polaris", "api", "openapi.json", "{proxy+}"}
    assert paths("clients-at-a-rest-api") == {"v1", "polaris", "api", "openapi.json", "{proxy+}"}
    methods = plan.of_type("clients-at-a-rest-api", "aws_api_gateway_method")
    assert {(each.address, each.values["http_method"], each.values["authorization"]) for each in methods} == {
        (f'aws_api_gateway_method.api["{path}"]', "GET" if path == "openapi.json" else "ANY", "NONE")
        for path in ("v1", "polaris", "api", "openapi.json")
    }


# Work beside requests


def test_the_reconciler_runs_every_15_minutes_and_failures_are_kept(plan: Plan) -> None:
    schedule = schedules(plan)["lake-reconcile"]
    [retries] = schedule["target"][0]["retry_policy"]

    assert schedule["schedule_expression"] == "rate(15 minutes)"
    assert (retries["maximum_retry_attempts"], retries["maximum_event_age_in_seconds"]) == (2, 900)
    configs = plan.of_type("fresh", "aws_lambda_function_event_invoke_config")
    assert {config.values["function_name"] for config in configs} == {"lake-reconcile", "lake-collect"}
    assert {config.values["maximum_retry_attempts"] for config in configs} == {0}


def schedules(plan: Plan) -> dict[str, Mapping[str, Any]]:
    return {found.values["name"]: found.values for found in plan.of_type("fresh", "aws_scheduler_schedule")}


def test_tasks_are_looked_for_every_5_minutes_and_state_is_collected_every_day(plan: Plan) -> None:
    found = {
        name: (schedule["schedule_expression"], schedule["target"][0]["input"])
        for name, schedule in schedules(plan).items()
    }
    jobs = {name: None if not message else json.loads(message) for name, (_, message) in found.items()}

    assert {name: every for name, (every, _) in found.items()} == {
        "lake-reconcile": "rate(15 minutes)",
        "lake-collect": "rate(1 day)",
        "lake-tasks": "rate(5 minutes)",
    }
    assert jobs == {
        "lake-reconcile": None,
        "lake-collect": {"version": 1, "work": "collect"},
        "lake-tasks": {"version": 1, "work": "tasks"},
    }


def test_each_message_has_a_function_s_whole_time(plan: Plan) -> None:
    """A purge takes what there is of it: another message of its batch would find none left, and fail."""
    mapping = only(plan, "fresh", "aws_lambda_event_source_mapping")
    [work] = [found for found in plan.of_type("fresh", "aws_lambda_function") if '"work"' in found.address]
    [queue] = [found.values for found in plan.of_type("fresh", "aws_sqs_queue") if found.values["name"] == "lake-work"]

    assert (mapping["batch_size"], work.values["timeout"]) == (1, 900)
    assert queue["visibility_timeout_seconds"] == 6 * work.values["timeout"]


@deployment
def test_every_queue_is_encrypted(plan: Plan, deployment: str) -> None:
    queues = plan.of_type(deployment, "aws_sqs_queue")

    assert {queue.values["name"] for queue in queues} == {
        "lake-work",
        *(f"lake-{name}-dead" for name in ("work", "reconcile", "collect")),
        *(["lake-pipeline-dead"] if deployment in WITH_JOBS else []),
    }
    assert all(queue.values["sqs_managed_sse_enabled"] for queue in queues)


def test_one_message_that_fails_does_not_fail_its_batch(plan: Plan) -> None:
    mapping = only(plan, "fresh", "aws_lambda_event_source_mapping")

    assert mapping["function_response_types"] == ["ReportBatchItemFailures"]


def test_spark_is_there_only_where_asked(plan: Plan) -> None:
    with_spark = {name for name in ACCEPTED if plan.of_type(name, "aws_emrserverless_application")}

    assert with_spark == {name for name, given in ACCEPTED.items() if "emr" in given}


# Watching it


@deployment
def test_alarms_tell_of_errors_throttles_stale_receipts_and_dead_letters(plan: Plan, deployment: str) -> None:
    given = ACCEPTED[deployment]
    alarms = plan.of_type(deployment, "aws_cloudwatch_metric_alarm")
    functions = ("api", "reconcile", "work", "collect")
    own = ("reconcile-age", "collect-age", "tasks-age", "tasks-due", "tasks-failed", "leases-lost", "state-size")
    expected = {
        "lake-5xx",
        *(f"lake-{function}-{what}" for function in functions for what in ("errors", "throttles")),
        *(f"lake-{queue}-dead-letters" for queue in ("reconcile", "work", "collect")),
        *(["lake-pipeline-dead-letters"] if deployment in WITH_JOBS else []),
        *([] if given.get("metrics_namespace") == "" else [f"lake-{name}" for name in own]),
    }

    assert {alarm.values["alarm_name"] for alarm in alarms} == expected
    if deployment == "fresh":
        assert len(alarms) == cost.ALARMS  # what docs/cost.md is made of
    told = given.get("alarm_topic_arns", [])
    assert all(list(alarm.values["alarm_actions"] or []) == told for alarm in alarms)
    assert TOPIC in ACCEPTED["rest"]["alarm_topic_arns"]  # type: ignore[operator]


def test_a_reconciler_that_says_nothing_for_an_hour_raises_the_alarm(plan: Plan) -> None:
    [alarm] = [
        found.values
        for found in plan.deployment("fresh")
        if found.address == 'aws_cloudwatch_metric_alarm.catalog["reconcile-age"]'
    ]

    assert (alarm["namespace"], alarm["metric_name"], alarm["dimensions"]) == (
        "ArcoCatalog/lake",
        "ReconcileCompleted",
        {"Warehouse": "main"},
    )
    assert (alarm["statistic"], alarm["period"], alarm["comparison_operator"], alarm["threshold"]) == (
        "Sum",
        3600,
        "LessThanThreshold",
        1,
    )
    assert alarm["treat_missing_data"] == "breaching"


def test_the_alarm_on_5xx_does_not_count_stale_keys(plan: Plan) -> None:
    [alarm] = [
        found.values
        for found in plan.deployment("fresh")
        if found.address == "aws_cloudwatch_metric_alarm.server_errors"
    ]
    queries = {query["id"]: query for query in alarm["metric_query"]}
    sent = {(tuple(dimensions), metric) for dimensions, metrics in REQUESTS for metric in metrics}
    [stale] = queries["stale"]["metric"]
    [errors] = queries["errors"]["metric"]

    assert queries["failures"]["expression"] == "errors - FILL(stale, 0)"
    assert [each for each in queries if queries[each]["return_data"]] == ["failures"]
    assert (stale["namespace"], stale["dimensions"] or None) == ("ArcoCatalog/lake", None)
    assert ((), stale["metric_name"]) in sent
    assert (errors["namespace"], errors["metric_name"]) == ("AWS/ApiGateway", "5xx")
    assert {stale["period"], errors["period"], stale["stat"], errors["stat"]} == {300, "Sum"}


def test_without_metrics_the_alarm_on_5xx_counts_all_of_them(plan: Plan) -> None:
    quiet = next(name for name, given in ACCEPTED.items() if given.get("metrics_namespace") == "")
    [alarm] = [
        found.values for found in plan.deployment(quiet) if found.address == "aws_cloudwatch_metric_alarm.server_errors"
    ]

    assert [(query["id"], query["return_data"]) for query in alarm["metric_query"]] == [("errors", True)]


ALARMS = {
    "tasks-age": ("TasksDueAge", "Maximum", 900, "GreaterThanThreshold", 3600, "breaching"),
    "tasks-due": ("TasksDueAge", "Maximum", 900, "GreaterThanThreshold", 3600, "notBreaching"),
    "tasks-failed": ("TasksFailed", "Sum", 300, "GreaterThanOrEqualToThreshold", 1, "notBreaching"),
    "leases-lost": ("LeasesLost", "Sum", 3600, "GreaterThanOrEqualToThreshold", 1, "notBreaching"),
    "collect-age": ("CollectionCompleted", "Sum", 86400, "LessThanThreshold", 1, "breaching"),
    "state-size": ("StateObjects", "Maximum", 86400, "GreaterThanThreshold", 5_000_000, "notBreaching"),
}


@pytest.mark.parametrize("name", ALARMS)
def test_alarms_are_made_of_metrics_that_workers_send(plan: Plan, name: str) -> None:
    [alarm] = [
        found.values
        for found in plan.deployment("fresh")
        if found.address == f'aws_cloudwatch_metric_alarm.catalog["{name}"]'
    ]
    asked = ("metric_name", "statistic", "period", "comparison_operator", "threshold", "treat_missing_data")
    sent = {
        (dimensions, metric)
        for directives in (TASKS, COLLECTIONS)
        for dimensions, metrics in directives
        for metric in metrics
    }
    dimensions = {"Warehouse": "main"} if ALARMS[name][-1] == "breaching" else None

    assert tuple(alarm[name] for name in asked) == ALARMS[name]
    assert (alarm["namespace"], alarm["dimensions"] or None) == ("ArcoCatalog/lake", dimensions)
    assert (tuple(alarm["dimensions"] or ()), alarm["metric_name"]) in sent
