"""Who may do what, read from a plan."""

import json
from fnmatch import fnmatchcase

import pytest

from tests.infra.deployments import ACCEPTED, KEY
from tests.infra.policies import Statement, of_bucket, of_roles, statements
from tests.infra.terraform import Plan
from tests.infra.wildcards import REASONS, Wildcard

BUCKET = "arn:aws:s3:::lake-123456789012-us-east-1"
DATA_FILE = f"{BUCKET}/main/warehouse/ns/t-01J/data/00000-0.parquet"
MANIFEST = f"{BUCKET}/main/warehouse/ns/t-01J/metadata/snap-1.avro"
METADATA_FILE = f"{BUCKET}/main/warehouse/ns/t-01J/metadata/00001-01J-1.metadata.json"
PACKED_METADATA_FILE = f"{BUCKET}/main/warehouse/ns/t-01J/metadata/00001-01J-1.gz.metadata.json"
POINTER = f"{BUCKET}/main/_catalog/iceberg_pointers/01J.json"
PROBE = f"{BUCKET}/_probe/01J/present"

deployment = pytest.mark.parametrize("deployment", ACCEPTED)


def function(name: str) -> str:
    return f'aws_iam_role_policy.function["{name}"]'


def allowed(statements: list[Statement], owner: str, action: str, resource: str) -> bool:
    """Whether the owner of a policy may do this. Conditions are taken to hold."""
    return any(
        statement.allows
        and statement.owner == owner
        and any(fnmatchcase(action, pattern) for pattern in statement.actions)
        and any(fnmatchcase(resource, pattern) for pattern in statement.resources)
        for statement in statements
    )


def listed(statement: Statement, resource: str) -> list[Wildcard]:
    return [entry for entry in REASONS if entry.statement == statement.id and resource.endswith(entry.ending)]


@deployment
def test_no_role_has_an_action_with_a_wildcard(plan: Plan, deployment: str) -> None:
    roles = of_roles(plan.deployment(deployment))

    assert roles
    assert [action for statement in roles if statement.allows for action in statement.actions if "*" in action] == []


@deployment
def test_a_wildcard_in_a_resource_is_listed_with_its_reason(plan: Plan, deployment: str) -> None:
    unlisted = [
        (statement.owner, statement.id, resource)
        for statement in of_roles(plan.deployment(deployment))
        if statement.allows
        for resource in statement.resources
        if ("*" in resource or "?" in resource) and not listed(statement, resource)
    ]

    assert unlisted == []


def test_every_listed_wildcard_is_in_use(plan: Plan) -> None:
    used = {
        entry
        for name in ACCEPTED
        for statement in of_roles(plan.deployment(name))
        for resource in statement.resources
        for entry in listed(statement, resource)
    }

    assert used == set(REASONS)


@deployment
def test_a_wildcard_stands_only_at_the_end_of_a_resource_or_before_the_ending_of_metadata_files(
    plan: Plan, deployment: str
) -> None:
    roles = [statement for statement in of_roles(plan.deployment(deployment)) if statement.allows]
    resources = {resource for statement in roles for resource in statement.resources}

    for resource in resources:
        start = resource.removesuffix(".gz").removesuffix(".metadata.json").removesuffix("*")
        assert "*" not in start, resource


@pytest.mark.parametrize("action", ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion"])
@pytest.mark.parametrize("file", [DATA_FILE, MANIFEST])
@pytest.mark.parametrize("name", ["api", "reconcile", "work"])
def test_no_function_touches_a_data_file(plan: Plan, name: str, file: str, action: str) -> None:
    assert not allowed(of_roles(plan.deployment("fresh")), function(name), action, file)


@pytest.mark.parametrize("name", ["api", "reconcile", "work"])
def test_no_function_deletes_state(plan: Plan, name: str) -> None:
    roles = of_roles(plan.deployment("fresh"))

    assert allowed(roles, function(name), "s3:PutObject", POINTER)
    assert not allowed(roles, function(name), "s3:DeleteObject", POINTER)
    assert not allowed(roles, function(name), "s3:DeleteObjectVersion", POINTER)


@pytest.mark.parametrize("file", [METADATA_FILE, PACKED_METADATA_FILE])
def test_only_the_api_writes_and_deletes_metadata_files(plan: Plan, file: str) -> None:
    roles = of_roles(plan.deployment("fresh"))

    for action in ("s3:PutObject", "s3:DeleteObject"):
        assert [name for name in ("api", "reconcile", "work") if allowed(roles, function(name), action, file)] == [
            "api"
        ]
    assert all(allowed(roles, function(name), "s3:GetObject", file) for name in ("api", "reconcile", "work"))


@pytest.mark.parametrize("name", ["reconcile", "work"])
def test_who_works_beside_requests_may_probe_the_store(plan: Plan, name: str) -> None:
    roles = of_roles(plan.deployment("fresh"))

    for action in ("s3:GetObject", "s3:PutObject", "s3:DeleteObject"):
        assert allowed(roles, function(name), action, PROBE)


@deployment
def test_a_missing_object_is_not_answered_as_forbidden(plan: Plan, deployment: str) -> None:
    """S3 asks for ListBucket on a GET of what is missing, and such a request carries no prefix: a condition that needs
    one would turn every 404 into a 403."""
    lists = [
        statement
        for statement in of_roles(plan.deployment(deployment))
        if "s3:ListBucket" in statement.actions and statement.owner.startswith("aws_iam_role_policy.function")
    ]

    assert {statement.owner for statement in lists} == {function(name) for name in ("api", "reconcile", "work")}
    assert {test for statement in lists for test in statement.conditions} == {"StringLikeIfExists"}


def test_a_list_is_kept_to_the_folders_of_the_catalog(plan: Plan) -> None:
    prefixes = {
        prefix
        for statement in of_roles(plan.deployment("url"))
        if "s3:ListBucket" in statement.actions
        for prefix in statement.conditions["StringLikeIfExists"]["s3:prefix"]
    }

    assert prefixes == {"lakes/one/main/_catalog/*", "lakes/one/main/warehouse/*", "lakes/one/_probe/*"}


def test_tables_elsewhere_are_reached_in_their_folder_only(plan: Plan) -> None:
    roles = of_roles(plan.deployment("existing"))
    put = "s3:PutObject"

    assert allowed(roles, function("api"), put, "arn:aws:s3:::elsewhere/tables/t/metadata/00000-a-1.metadata.json")
    assert not allowed(roles, function("api"), put, "arn:aws:s3:::elsewhere/other/t/metadata/00000-a-1.metadata.json")
    assert not allowed(roles, function("api"), put, "arn:aws:s3:::elsewhere/tables/t/data/1.parquet")


def test_a_key_is_used_where_one_is_given(plan: Plan) -> None:
    roles = of_roles(plan.deployment("existing"))

    assert allowed(roles, function("api"), "kms:GenerateDataKey", KEY)
    assert not any(
        action.startswith("kms:") for statement in of_roles(plan.deployment("fresh")) for action in statement.actions
    )


@deployment
def test_x_ray_is_allowed_only_where_tracing_is_on(plan: Plan, deployment: str) -> None:
    actions = {action for statement in of_roles(plan.deployment(deployment)) for action in statement.actions}

    assert any(action.startswith("xray:") for action in actions) == bool(ACCEPTED[deployment].get("tracing"))


def test_the_schedule_may_start_the_reconciler_and_nothing_else(plan: Plan) -> None:
    schedule = [
        statement
        for statement in of_roles(plan.deployment("fresh"))
        if statement.owner == "aws_iam_role_policy.schedule"
    ]

    assert {
        (action, resource) for statement in schedule for action in statement.actions for resource in statement.resources
    } == {
        ("lambda:InvokeFunction", "arn:aws:lambda:us-east-1:123456789012:function:lake-reconcile:live"),
        ("sqs:SendMessage", "arn:aws:sqs:us-east-1:123456789012:lake-reconcile-dead"),
    }


@deployment
def test_only_services_of_aws_take_on_roles_but_for_that_of_vended_credentials(plan: Plan, deployment: str) -> None:
    roles = [
        resource
        for resource in plan.deployment(deployment)
        if resource.type == "aws_iam_role" and not resource.address.startswith("aws_iam_role.vending")
    ]
    trusted = {
        json.dumps(statement["Principal"])
        for role in roles
        for statement in json.loads(role.values["assume_role_policy"])["Statement"]
    }
    services = ["lambda", "scheduler", *(["emr-serverless"] if "emr" in ACCEPTED[deployment] else [])]

    assert trusted == {json.dumps({"Service": f"{service}.amazonaws.com"}) for service in services}


# Who may invoke


def engine(plan: Plan, deployment: str) -> list[Statement]:
    """What the policy for engines allows."""
    return statements("engine", plan.data(deployment, "data.aws_iam_policy_document.engine")["json"])


def invokes(found: list[Statement], context: dict[str, str]) -> bool:
    """Whether somebody may invoke the API's function in a request that has these condition keys."""
    return any(
        statement.allows
        and "lambda:InvokeFunction" in statement.actions
        and all(
            context.get(key) == value
            for conditions in statement.conditions.values()
            for key, value in conditions.items()
        )
        for statement in found
    )


def test_an_engine_invokes_the_function_through_its_url_and_not_past_it(plan: Plan) -> None:
    """Directly invoked, the function would believe the `requestContext` that the invoker made up."""
    found = engine(plan, "url")

    assert invokes(found, {"lambda:InvokedViaFunctionUrl": "true"})
    assert not invokes(found, {})
    assert not invokes(found, {"lambda:InvokedViaFunctionUrl": "false"})
    [url] = [statement for statement in found if "lambda:InvokeFunctionUrl" in statement.actions]
    assert url.conditions == {"StringEquals": {"lambda:FunctionUrlAuthType": "AWS_IAM"}}
    assert url.actions == ("lambda:InvokeFunctionUrl",)


def test_the_condition_on_invoking_does_not_hold_where_the_key_is_missing(plan: Plan) -> None:
    operators = {
        operator
        for statement in engine(plan, "url")
        if "lambda:InvokeFunction" in statement.actions
        for operator in statement.conditions
    }

    assert operators == {"Bool"}, "neither BoolIfExists nor any that a missing key satisfies"


@deployment
def test_no_role_but_the_schedule_s_may_invoke_a_function(plan: Plan, deployment: str) -> None:
    invoking = {
        statement.owner
        for statement in of_roles(plan.deployment(deployment))
        if any(action.startswith("lambda:") for action in statement.actions)
    }

    assert invoking == {"aws_iam_role_policy.schedule"}


@deployment
def test_functions_let_gateways_of_their_own_in_and_nobody_else(plan: Plan, deployment: str) -> None:
    permissions = [found.values for found in plan.deployment(deployment) if found.type == "aws_lambda_permission"]

    assert {found["principal"] for found in permissions} <= {"apigateway.amazonaws.com"}
    assert bool(permissions) == (ACCEPTED[deployment].get("endpoint") != "function-url")


# The bucket


def test_the_bucket_is_reached_over_tls_only(plan: Plan) -> None:
    [rule] = [statement for statement in of_bucket(plan.deployment("fresh")) if statement.id == "OnlyOverTLS"]

    assert rule.effect == "Deny"
    assert rule.conditions == {"Bool": {"aws:SecureTransport": "false"}}
    assert {*rule.resources} == {BUCKET, f"{BUCKET}/*"}


def test_nobody_deletes_state_unless_he_is_said_to_collect(plan: Plan) -> None:
    """A plain DELETE would open a create-only key again, versioned or not."""
    [rule] = [statement for statement in of_bucket(plan.deployment("fresh")) if "s3:DeleteObject" in statement.actions]

    assert rule.effect == "Deny"
    assert {*rule.actions} == {"s3:DeleteObject", "s3:DeleteObjectVersion"}
    assert rule.resources == (f"{BUCKET}/main/_catalog/*",)
    assert rule.conditions == {}


def test_nobody_but_the_functions_writes_state(plan: Plan) -> None:
    [rule] = [statement for statement in of_bucket(plan.deployment("fresh")) if "s3:PutObject" in statement.actions]
    roles = {resource.values["name"] for resource in plan.deployment("fresh") if resource.type == "aws_iam_role"}

    assert rule.effect == "Deny"
    assert {arn.rpartition("/")[2] for arn in rule.conditions["ArnNotEquals"]["aws:PrincipalArn"]} == roles - {
        "lake-schedule"
    }
