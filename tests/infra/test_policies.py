"""Who may do what, read from a plan."""

import json
import re
from fnmatch import fnmatchcase
from typing import cast

import pytest

from tests.infra.deployments import ACCEPTED, CHANGES_QUEUE, CHANGES_TOPIC, KEY, WITH_JOBS
from tests.infra.evaluation import Policies, Request
from tests.infra.policies import Statement, of_bucket, of_roles, statements
from tests.infra.terraform import Plan
from tests.infra.wildcards import REASONS, Wildcard

BUCKET = "arn:aws:s3:::lake-123456789012-us-east-1"
DATA_FILE = f"{BUCKET}/main/warehouse/ns/t-01J/data/00000-0.parquet"
MANIFEST = f"{BUCKET}/main/warehouse/ns/t-01J/metadata/snap-1.avro"
METADATA_FILE = f"{BUCKET}/main/warehouse/ns/t-01J/metadata/00001-01J-1.metadata.json"
PACKED_METADATA_FILE = f"{BUCKET}/main/warehouse/ns/t-01J/metadata/00001-01J-1.gz.metadata.json"
POINTER = f"{BUCKET}/main/_catalog/iceberg_pointers/01J.json"
FUNCTIONS = ("api", "reconcile", "work", "collect")
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
def test_a_wildcard_stands_only_at_the_end_of_a_resource_or_before_the_ending_of_metadata_files_and_manifests(
    plan: Plan, deployment: str
) -> None:
    roles = [statement for statement in of_roles(plan.deployment(deployment)) if statement.allows]
    resources = {resource for statement in roles for resource in statement.resources}

    for resource in resources:
        start = re.sub("/_realm/catalogs/[*]/_catalog/(tasks/open|core/proposals)/", "/", resource)  # of each catalog
        start = re.sub("/_catalog/events/[*]/iceberg/committed/", "/", start)  # of each day
        start = start.removesuffix(".gz").removesuffix(".metadata.json").removesuffix(".avro").removesuffix("*")
        assert "*" not in start, resource


@pytest.mark.parametrize(
    ("action", "receiver"), [("sqs:SendMessage", CHANGES_QUEUE), ("sns:Publish", CHANGES_TOPIC)], ids=["sqs", "sns"]
)
def test_the_worker_alone_sends_events_and_only_to_what_was_named(plan: Plan, action: str, receiver: str) -> None:
    roles = of_roles(plan.deployment("rest"))

    senders = [name for name in FUNCTIONS if allowed(roles, function(name), action, receiver)]
    assert senders == ["work"]
    assert not allowed(roles, function("work"), action, f"{receiver}-another")
    others = [of_roles(plan.deployment(name)) for name in ACCEPTED if name != "rest"]
    assert not any(allowed(each, function("work"), action, receiver) for each in others)


@pytest.mark.parametrize("action", ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion"])
@pytest.mark.parametrize("file", [DATA_FILE, MANIFEST])
@pytest.mark.parametrize("name", ["api", "reconcile", "collect"])
def test_no_function_touches_a_data_file_but_the_one_that_purges(plan: Plan, name: str, file: str, action: str) -> None:
    assert not allowed(of_roles(plan.deployment("fresh")), function(name), action, file)


@pytest.mark.parametrize("file", [DATA_FILE, MANIFEST, METADATA_FILE])
def test_who_purges_reads_and_deletes_what_lies_where_tables_may_be_and_writes_metadata_files_alone(
    plan: Plan, file: str
) -> None:
    roles = of_roles(plan.deployment("fresh"))

    assert all(allowed(roles, function("work"), action, file) for action in ("s3:GetObject", "s3:DeleteObject"))
    assert allowed(roles, function("work"), "s3:PutObject", file) == (file == METADATA_FILE)
    assert not any(
        allowed(roles, function("work"), action, place)
        for place, actions in {
            file: ("s3:DeleteObjectVersion",),
            f"{BUCKET}/other/file.parquet": ("s3:GetObject", "s3:DeleteObject"),
            f"{BUCKET}/main/other/file.parquet": ("s3:GetObject", "s3:DeleteObject"),
        }.items()
        for action in actions
    )


@pytest.mark.parametrize("deployment", ["existing", "tokens"])
def test_tables_elsewhere_are_purged_in_their_folder_only(plan: Plan, deployment: str) -> None:
    roles = of_roles(plan.deployment(deployment))

    assert allowed(roles, function("work"), "s3:DeleteObject", "arn:aws:s3:::elsewhere/tables/t/data/1.parquet")
    assert not allowed(roles, function("work"), "s3:DeleteObject", "arn:aws:s3:::elsewhere/other/t/data/1.parquet")


def test_who_purges_deletes_hints_of_the_state_alone(plan: Plan) -> None:
    for deployment, root in (("fresh", "main/"), ("signed", "_realm/catalogs/01J/")):
        roles = of_roles(plan.deployment(deployment))
        deletes = [
            key
            for key in ("tasks/open/20260101T000000000Z-id", "tasks/id/1.json", "core/manifest.json", "events/a.json")
            if allowed(roles, function("work"), "s3:DeleteObject", f"{BUCKET}/{root}_catalog/{key}")
        ]
        assert deletes == ["tasks/open/20260101T000000000Z-id"]


def test_who_collects_deletes_state_and_metadata_files_and_never_a_manifest(plan: Plan) -> None:
    roles = [found for found in of_roles(plan.deployment("signed")) if found.owner == function("collect")]

    def deletes(resource: str) -> bool:
        return Policies(roles).allow(Request("collect", "s3:DeleteObject", resource))

    for root in ("main", "_realm/catalogs/01J"):
        assert all(deletes(f"{BUCKET}/{root}/_catalog/{key}") for key in ("events/e/a.json", "core/commits/c.json"))
        assert not deletes(f"{BUCKET}/{root}/_catalog/core/manifest.json")
    assert deletes(METADATA_FILE)
    for old in ("_realm/core/commits/c.json", "_realm/core/index/s.json", "_catalog/tasks/id/1.json"):
        assert deletes(f"{BUCKET}/{old}")
    for root in ("main/_catalog", "_realm", "_realm/catalogs/01J/_catalog"):
        assert deletes(f"{BUCKET}/{root}/core/proposals/p.json")
    for kept in ("_realm/core/manifest.json", "_realm/core/page_key.json", "_catalog/core/manifest.json"):
        assert not deletes(f"{BUCKET}/{kept}")
    assert not deletes(DATA_FILE)
    assert not deletes(MANIFEST)


def test_the_api_deletes_proposals_of_the_state_alone(plan: Plan) -> None:
    for deployment, roots in (
        ("fresh", ["main/_catalog"]),
        ("signed", ["main/_catalog", "_realm", "_realm/catalogs/01J/_catalog"]),
    ):
        roles = of_roles(plan.deployment(deployment))
        for root in roots:
            deletes = [
                key
                for key in ("proposals/01J-00000001.json", "bell.json", "manifest.json", "commits/c.json")
                if allowed(roles, function("api"), "s3:DeleteObject", f"{BUCKET}/{root}/core/{key}")
            ]
            assert deletes == ["proposals/01J-00000001.json"]


@pytest.mark.parametrize("name", ["api", "reconcile"])
def test_functions_that_do_neither_delete_no_state(plan: Plan, name: str) -> None:
    roles = of_roles(plan.deployment("fresh"))

    assert allowed(roles, function(name), "s3:PutObject", POINTER)
    assert not allowed(roles, function(name), "s3:DeleteObject", POINTER)
    assert not allowed(roles, function(name), "s3:DeleteObjectVersion", POINTER)


@pytest.mark.parametrize("file", [METADATA_FILE, PACKED_METADATA_FILE])
def test_only_the_api_and_the_worker_write_metadata_files_and_only_the_reconciler_deletes_none(
    plan: Plan, file: str
) -> None:
    roles = of_roles(plan.deployment("fresh"))

    def who(action: str) -> list[str]:
        return [name for name in FUNCTIONS if allowed(roles, function(name), action, file)]

    assert who("s3:PutObject") == ["api", "work"]
    assert who("s3:DeleteObject") == ["api", "work", "collect"]
    assert who("s3:GetObject") == [*FUNCTIONS]


@pytest.mark.parametrize("name", ["reconcile", "work", "collect"])
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
        if statement.id != "TellWhetherThereWasARealm"  # names that are listed, and never got
    ]

    assert {statement.owner for statement in lists} == {function(name) for name in FUNCTIONS}
    assert {test for statement in lists for test in statement.conditions} == {"StringLikeIfExists"}


def test_a_list_is_kept_to_the_folders_of_the_catalog(plan: Plan) -> None:
    prefixes: dict[str, set[str]] = {}
    for statement in of_roles(plan.deployment("url")):
        if "s3:ListBucket" in statement.actions:
            [condition] = statement.conditions.values()
            said = condition["s3:prefix"]
            prefixes.setdefault(statement.owner, set()).update([said] if isinstance(said, str) else said)

    own = {"lakes/one/main/_catalog/*", "lakes/one/main/warehouse/*", "lakes/one/_probe/*"}
    realms = {"lakes/one/_realm/core/commits/*"}
    assert prefixes.pop(function("collect")) == {*own, *realms, "lakes/one/_catalog/*"}
    assert all(listed == own | realms for listed in prefixes.values())


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


def test_the_schedule_may_start_its_runs_and_queue_work_and_nothing_else(plan: Plan) -> None:
    schedule = [
        statement
        for statement in of_roles(plan.deployment("fresh"))
        if statement.owner == "aws_iam_role_policy.schedule"
    ]

    assert {
        (action, resource) for statement in schedule for action in statement.actions for resource in statement.resources
    } == {
        ("lambda:InvokeFunction", "arn:aws:lambda:us-east-1:123456789012:function:lake-reconcile:live"),
        ("lambda:InvokeFunction", "arn:aws:lambda:us-east-1:123456789012:function:lake-collect:live"),
        ("sqs:SendMessage", "arn:aws:sqs:us-east-1:123456789012:lake-work"),
        ("sqs:SendMessage", "arn:aws:sqs:us-east-1:123456789012:lake-reconcile-dead"),
        ("sqs:SendMessage", "arn:aws:sqs:us-east-1:123456789012:lake-collect-dead"),
    }


def test_the_api_and_the_worker_queue_work_and_only_the_worker_takes_it(plan: Plan) -> None:
    roles, queue = of_roles(plan.deployment("fresh")), "arn:aws:sqs:us-east-1:123456789012:lake-work"

    def who(action: str) -> list[str]:
        return [name for name in FUNCTIONS if allowed(roles, function(name), action, queue)]

    assert who("sqs:SendMessage") == ["api", "work"]
    assert who("sqs:ReceiveMessage") == ["work"]


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


@pytest.mark.parametrize("deployment", ["fresh", "signed"])
def test_nobody_deletes_state_but_who_collects_and_who_removes_hints_or_proposals(plan: Plan, deployment: str) -> None:
    """A plain DELETE would open a create-only key again, versioned or not."""
    spark = deployment in WITH_JOBS
    names = (
        "collect",
        *(["pipeline-collect"] if spark else []),
        "api",  # proposals alone
        "work",
        *(["pipeline"] if spark else []),
    )  # marks alone
    own = [f"arn:aws:iam::123456789012:role/lake-{name}" for name in names]
    policy = of_bucket(plan.deployment(deployment))
    [rule] = [statement for statement in policy if statement.id == "StateIsDeletedByTheCollectorOnly"]

    assert rule.effect == "Deny"
    assert {*rule.actions} == {"s3:DeleteObject", "s3:DeleteObjectVersion"}
    assert f"{BUCKET}/main/_catalog/*" in rule.resources
    said = ACCEPTED[deployment].get("collector_role_arns", [])
    assert rule.conditions == {"ArnNotEquals": {"aws:PrincipalArn": [*own, *cast(list[str], said)]}}


@pytest.mark.parametrize("deployment", ["fresh", "signed"])
def test_whatever_is_attached_to_their_roles_the_bucket_holds_them_to_what_they_do(plan: Plan, deployment: str) -> None:
    everything = [Statement("attached", "", "Allow", ("*",), ("*",), {})]
    policies = Policies(everything, of_bucket(plan.deployment(deployment)))
    hint = f"{BUCKET}/main/_catalog/tasks/open/20260101T000000000Z-id"
    receipt, manifest = f"{BUCKET}/main/_catalog/events/a.json", f"{BUCKET}/main/_catalog/core/manifest.json"
    proposal = f"{BUCKET}/main/_catalog/core/proposals/p.json"

    def deletes(name: str) -> list[str]:
        role = f"arn:aws:iam::123456789012:role/lake-{name}"
        files = (DATA_FILE, METADATA_FILE, hint, proposal, receipt, POINTER, manifest)
        return [file for file in files if policies.allow(Request(role, "s3:DeleteObject", file))]

    assert deletes("work") == [DATA_FILE, METADATA_FILE, hint]
    assert deletes("collect") == [DATA_FILE, METADATA_FILE, hint, proposal, receipt, POINTER]
    assert deletes("api") == [METADATA_FILE, proposal]
    assert deletes("reconcile") == [DATA_FILE, METADATA_FILE]


def test_nobody_but_the_functions_writes_state(plan: Plan) -> None:
    [rule] = [statement for statement in of_bucket(plan.deployment("fresh")) if "s3:PutObject" in statement.actions]
    roles = {resource.values["name"] for resource in plan.deployment("fresh") if resource.type == "aws_iam_role"}

    assert rule.effect == "Deny"
    assert {arn.rpartition("/")[2] for arn in rule.conditions["ArnNotEquals"]["aws:PrincipalArn"]} == roles - {
        "lake-schedule"
    }
