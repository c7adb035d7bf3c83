"""Jobs of the pipeline by the clock: what is planned, and what their role may do."""

import argparse
import json

import pytest

from reconciler import collect_job, fsck_job
from reconciler.compact import job as compact
from reconciler.maintain import job as maintain
from tests.infra.deployments import ACCEPTED, KEY, WITH_JOBS
from tests.infra.evaluation import Policies, Request
from tests.infra.policies import LATER, Statement, of_roles, statements, to_be_written
from tests.infra.terraform import Plan

ACCOUNT = "arn:aws:iam::123456789012"
ROLE = f"{ACCOUNT}:role/lake-pipeline"
BUCKET = "arn:aws:s3:::lake-123456789012-us-east-1"
STATE = f"{BUCKET}/main/_catalog"
TABLE = f"{BUCKET}/main/warehouse/ns/t-01J"
FILES = (f"{TABLE}/data/0.parquet", f"{TABLE}/metadata/1.metadata.json", f"{TABLE}/metadata/snap-1.avro")
MARK, HINT = f"{STATE}/events/late/2026-01-01", f"{STATE}/tasks/open/20260101T000000000Z-id"
TASK = f"{STATE}/tasks/id/1.json"
RECORDS = (f"{STATE}/iceberg_pointers/01J.json", f"{STATE}/core/manifest.json", f"{STATE}/events/2026-01-01/a.json")
JOBS = {"compact": compact, "maintain": maintain, "collect": collect_job, "fsck": fsck_job}
SERVED = ("compact", "maintain")
WRITES = ("s3:PutObject", "s3:DeleteObject")
PASSED = {"own-files": (ROLE,), "signed": (ROLE, f"{ROLE}-collect", f"{ROLE}-fsck")}

deployment = pytest.mark.parametrize("deployment", WITH_JOBS)


def document(plan: Plan, deployment: str, name: str) -> list[Statement]:
    """A policy document of the module, be it known now or only when it is made."""
    values = plan.data(deployment, f"data.aws_iam_policy_document.{name}")
    if values.get("json") is None:
        return to_be_written(name, values["statement"])
    return statements(name, values["json"])


def policies(plan: Plan, deployment: str) -> Policies:
    """What decides on requests of the jobs' role: its own policies, and the bucket's."""
    named = {resource.address for resource in plan.deployment(deployment)}
    own = document(plan, deployment, "pipeline[0]")
    if "aws_iam_role_policy.pipeline_engine[0]" in named:
        own = [*own, *document(plan, deployment, "engine")]
    return Policies(own, document(plan, deployment, "bucket"))


def may(plan: Plan, deployment: str, action: str, resource: str) -> bool:
    return policies(plan, deployment).allow(Request(ROLE, action, resource))


def test_nothing_runs_unless_it_is_asked_for(plan: Plan) -> None:
    """An application alone brings no schedule, no role and no queue of the pipeline."""
    for name in set(ACCEPTED) - {*WITH_JOBS}:
        assert not [found.address for found in plan.deployment(name) if "pipeline" in found.address], name
    assert "emr" in ACCEPTED["existing"]


def test_each_job_has_its_schedule_and_starts_once_a_time(plan: Plan) -> None:
    jobs = [found.values for found in plan.of_type("signed", "aws_scheduler_schedule") if ".job[" in found.address]

    assert {job["name"]: job["schedule_expression"] for job in jobs} == {
        "lake-pipeline-compact": "rate(1 hour)",
        "lake-pipeline-maintain": "cron(0 3 * * ? *)",
        "lake-pipeline-collect": "rate(7 days)",
        "lake-pipeline-fsck": "rate(30 days)",
    }
    for job in jobs:
        [target] = job["target"]
        assert target["arn"] == "arn:aws:scheduler:::aws-sdk:emrserverless:startJobRun"


def test_a_job_is_told_the_catalog_and_signs_its_requests(plan: Plan) -> None:
    arguments, submission = plan.jobs("signed")
    catalog = ["--store", "s3://lake-123456789012-us-east-1", "--warehouse", "main"]

    assert arguments["compact"] == [
        *("compact", *catalog, "--property=rest.signing-name=execute-api", "--property=rest.signing-region=us-east-1"),
        *("--property=rest.sigv4-enabled=true", "--property=s3.region=us-east-1"),
    ]
    assert arguments["maintain"][:5] == ["maintain", *catalog]
    assert arguments["maintain"][-2:] == ["--max-bytes", "100G"]
    assert {said for said in arguments["maintain"] if said.startswith("--spark-property=")} == {
        "--spark-property=client.region=us-east-1",
        "--spark-property=header.X-Iceberg-Access-Delegation=vended-credentials",
        "--spark-property=io-impl=org.apache.iceberg.aws.s3.S3FileIO",
        "--spark-property=rest.auth.type=sigv4",
        "--spark-property=rest.auth.sigv4.delegate-auth-type=none",
        "--spark-property=rest.signing-name=execute-api",
        "--spark-property=rest.signing-region=us-east-1",
    }
    assert arguments["collect"] == ["collect", *catalog, "--delete"]
    assert arguments["fsck"] == ["fsck", *catalog]
    assert "driverEnv.ARCO_IDEMPOTENCY_CLEANUP_ENABLED=true" in submission["collect"]
    assert submission["compact"].startswith("--py-files s3://code/arco/arco.zip --conf ")
    assert "--jars /usr/share/aws/iceberg/lib/iceberg-spark3-runtime.jar" in submission["maintain"]
    assert "--jars" not in submission["compact"]


def test_an_image_of_one_s_own_brings_its_python_and_a_credential_travels_as_a_file(plan: Plan) -> None:
    arguments, submission = plan.jobs("own-files")

    assert arguments["compact"][-2:] == ["--credential-file", "pipeline"]
    assert "--files s3://keys/lake/pipeline" in submission["compact"]
    assert "spark.archives" not in submission["compact"]
    assert submission["compact"].count("PYSPARK_PYTHON=/usr/bin/python3.11") == 2
    assert "spark.archives=s3://code/arco/environment.tar.gz#environment" in plan.jobs("signed")[1]["compact"]


@deployment
def test_each_job_s_own_parser_takes_what_it_is_told(plan: Plan, deployment: str) -> None:
    arguments, _ = plan.jobs(deployment)
    for job, said in arguments.items():
        parser = argparse.ArgumentParser(exit_on_error=False)
        parser.add_argument("--store")
        parser.add_argument("--warehouse")
        JOBS[job].add_arguments(parser)

        uri = ["--uri", "https://catalog.example.com"] if job in SERVED else []
        parsed = parser.parse_args([*said[1:], *uri])

        assert parsed.warehouse == "main"
        if job in SERVED:
            assert f"{parsed.credential_file}" == ("pipeline" if deployment == "own-files" else "None")


@deployment
def test_who_starts_jobs_starts_them_as_their_role_and_no_other(plan: Plan, deployment: str) -> None:
    starts, passes, keeps = document(plan, deployment, "pipeline_schedule[0]")

    assert starts.actions == ("emr-serverless:StartJobRun",)
    assert len(starts.resources) == 1
    assert (passes.actions, passes.resources) == (("iam:PassRole",), PASSED[deployment])
    assert passes.conditions == {"StringEquals": {"iam:PassedToService": ["emr-serverless.amazonaws.com"]}}
    assert (keeps.actions, keeps.resources) == (
        ("sqs:SendMessage",),
        ("arn:aws:sqs:us-east-1:123456789012:lake-pipeline-dead",),
    )


@deployment
def test_a_job_reads_the_state_and_deletes_marks(plan: Plan, deployment: str) -> None:
    for key in (*RECORDS, MARK, TASK):
        assert may(plan, deployment, "s3:GetObject", key)
    for key in FILES[1:]:
        assert may(plan, deployment, "s3:GetObject", key)
    assert may(plan, deployment, "s3:DeleteObject", MARK)


@deployment
def test_a_job_reads_who_has_which_roles_in_the_realm(plan: Plan, deployment: str) -> None:
    """`readers` is what the realm's roles and the catalog's grants come to, whatever parts their registries have."""
    for folder in (f"{BUCKET}/_realm/core", f"{STATE}/core"):
        for key in ("manifest.json", "commits/01J.json", "index/01J.json"):
            assert may(plan, deployment, "s3:GetObject", f"{folder}/{key}")


@deployment
@pytest.mark.parametrize("action", [*WRITES, "s3:DeleteObjectVersion"])
def test_a_job_changes_nothing_else_of_the_state(plan: Plan, deployment: str, action: str) -> None:
    """What becomes of a table the API decides: a job that could write pointers would need no grant."""
    realm = (f"{BUCKET}/_realm/core/manifest.json", f"{BUCKET}/_realm/catalogs/01J/_catalog/iceberg_pointers/01J.json")

    assert not [key for key in (*RECORDS, *realm) if may(plan, deployment, action, key)]
    if action == "s3:DeleteObjectVersion":
        assert not may(plan, deployment, action, MARK)


def test_only_who_maintains_writes_tasks(plan: Plan) -> None:
    assert may(plan, "signed", "s3:PutObject", TASK)
    assert may(plan, "signed", "s3:PutObject", HINT)
    assert may(plan, "signed", "s3:DeleteObject", HINT)
    assert not may(plan, "signed", "s3:DeleteObject", TASK)
    assert not [(action, key) for key in (TASK, HINT) for action in WRITES if may(plan, "own-files", action, key)]


def test_only_who_maintains_writes_committed_receipts_marks_and_checkpoints(plan: Plan) -> None:
    days = f"{STATE}/events/2026-01-01"
    missing = (f"{days}/iceberg/committed/a.json", MARK, f"{STATE}/operational/reconciler/walked-00.json")
    others = (f"{days}/iceberg/pending/a.json", f"{days}/openlineage/a.json", f"{STATE}/operational/a.json")

    assert all(may(plan, "signed", "s3:PutObject", key) for key in missing)
    assert not [key for key in missing if may(plan, "own-files", "s3:PutObject", key)]
    assert not [key for key in others if may(plan, "signed", "s3:PutObject", key)]
    assert not [key for key in (missing[0], missing[2], *others) if may(plan, "signed", "s3:DeleteObject", key)]


def test_a_job_has_no_right_on_files_that_the_catalog_gives_it_credentials_for(plan: Plan) -> None:
    assert not [file for file in FILES for action in WRITES if may(plan, "signed", action, file)]
    assert not may(plan, "signed", "s3:GetObject", FILES[0])
    assert all(may(plan, "own-files", action, file) for file in FILES for action in WRITES), "there it gives none"


@deployment
def test_whatever_is_attached_to_the_role_the_bucket_keeps_it_from_deleting_state(plan: Plan, deployment: str) -> None:
    everything = [Statement("attached", "", "Allow", ("*",), ("*",), {})]
    rules = Policies(everything, document(plan, deployment, "bucket"))

    deletes = [key for key in (*RECORDS, TASK, MARK) if rules.allow(Request(ROLE, "s3:DeleteObject", key))]

    assert deletes == [MARK]


def test_a_job_calls_the_catalog_where_requests_are_signed(plan: Plan) -> None:
    """The policy for engines: it names the API, whose id Amazon gives."""
    assert LATER[1] in {found.address for found in plan.deployment("signed")}
    actions = {action for statement in document(plan, "signed", "engine") for action in statement.actions}
    assert actions == {"execute-api:Invoke"}


@deployment
def test_policies_that_are_known_later_are_these(plan: Plan, deployment: str) -> None:
    """So no other is passed over by the tests of policies."""
    later = [
        found.address
        for found in plan.deployment(deployment)
        if found.type in ("aws_iam_role_policy", "aws_iam_policy") and "policy" not in found.values
    ]

    assert {*later} <= {*LATER}
    assert of_roles(plan.deployment(deployment))


def test_the_credential_is_read_where_there_is_one_and_the_job_everywhere(plan: Plan) -> None:
    credential, code = "arn:aws:s3:::keys/lake/pipeline", "arn:aws:s3:::code/arco/arco.zip"

    assert may(plan, "own-files", "s3:GetObject", credential)
    assert not may(plan, "own-files", "s3:GetObject", f"{credential}2")
    assert not may(plan, "signed", "s3:GetObject", credential)
    for name in WITH_JOBS:
        assert may(plan, name, "s3:GetObject", code)
        assert not may(plan, name, "s3:PutObject", code)


def test_a_key_is_used_where_one_is_given_to_the_module(plan: Plan) -> None:
    own = Policies(document(plan, "signed", "pipeline[0]"))

    assert own.allow(Request(ROLE, "kms:Decrypt", KEY))
    assert not any(
        action.startswith("kms:") for each in document(plan, "own-files", "pipeline[0]") for action in each.actions
    )


@deployment
def test_a_job_that_fails_ends_among_the_dead_letters(plan: Plan, deployment: str) -> None:
    """As one that could not start: an alarm looks at that queue."""
    [rule] = plan.of_type(deployment, "aws_cloudwatch_event_rule")
    [target] = plan.of_type(deployment, "aws_cloudwatch_event_target")
    [queue] = [
        found.values["name"]
        for found in plan.of_type(deployment, "aws_sqs_queue")
        if found.address.startswith("aws_sqs_queue.pipeline_dead")
    ]
    [policy] = plan.of_type(deployment, "aws_sqs_queue_policy")
    [let_in] = json.loads(policy.values["policy"])["Statement"]

    assert (rule.values["name"], target.values["rule"]) == ("lake-pipeline-failed", "lake-pipeline-failed")
    assert let_in["Principal"] == {"Service": "events.amazonaws.com"}
    assert let_in["Resource"] == f"arn:aws:sqs:us-east-1:123456789012:{queue}"
    assert let_in["Condition"] == {
        "ArnEquals": {"aws:SourceArn": "arn:aws:events:us-east-1:123456789012:rule/lake-pipeline-failed"}
    }


def of_job(plan: Plan, job: str) -> Policies:
    """What decides on requests of a job that works on the store alone."""
    return Policies(document(plan, "signed", f"spark_{job}[0]"), document(plan, "signed", "bucket"))


def test_the_job_that_collects_deletes_state_and_lost_tries_and_never_a_manifest_or_data(plan: Plan) -> None:
    role = f"{ROLE}-collect"
    rules = of_job(plan, "collect")
    everything = Policies([Statement("attached", "", "Allow", ("*",), ("*",), {})], document(plan, "signed", "bucket"))

    for key in (RECORDS[0], RECORDS[2], TASK, HINT, FILES[1]):
        assert rules.allow(Request(role, "s3:DeleteObject", key)), key
    assert not rules.allow(Request(role, "s3:DeleteObject", RECORDS[1]))
    assert not everything.allow(Request(role, "s3:DeleteObject", RECORDS[1])), "whatever is attached to it"
    for key in (FILES[0], FILES[2]):
        assert not [action for action in ("s3:GetObject", *WRITES) if rules.allow(Request(role, action, key))], key


def test_the_job_that_checks_reads_everything_and_writes_nothing(plan: Plan) -> None:
    role = f"{ROLE}-fsck"
    rules = of_job(plan, "fsck")

    for key in (*RECORDS, *FILES, MARK, TASK, f"{BUCKET}/_realm/core/manifest.json"):
        assert rules.allow(Request(role, "s3:GetObject", key)), key
        assert not [action for action in WRITES if rules.allow(Request(role, action, key))], key
    attached = Policies([Statement("attached", "", "Allow", ("*",), ("*",), {})], document(plan, "signed", "bucket"))
    assert not attached.allow(Request(role, "s3:DeleteObject", RECORDS[0])), "whatever is attached to it"
