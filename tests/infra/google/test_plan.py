"""The module as Google's provider reads it: validity, and plans of accepted deployments, which ask Google nothing."""

import json
from pathlib import Path

import pytest

from tests.infra.google.conftest import Values
from tests.infra.google.values import ACCEPTED, GOOGLE, SPARK, named
from tests.infra.terraform import Plan, Resource, Workspace, copy_module, module_block

pytestmark = pytest.mark.optional("terraform-provider-google")

EXAMPLES = sorted(folder.name for folder in (GOOGLE / "examples").iterdir())
deployment = pytest.mark.parametrize("deployment", ACCEPTED)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """All accepted deployments, planned at once, as somebody whom nobody asks for credentials."""
    scratch = tmp_path_factory.mktemp("google-plan")
    blocks = [module_block(name, named(given), "./google") for name, given in ACCEPTED.items()]
    (scratch / "main.tf").write_text("\n".join(blocks))
    provider = {"project": "my-project", "access_token": "none"}
    (scratch / "provider.tf.json").write_text(json.dumps({"provider": {"google": provider}}))
    return copied(scratch, ".").plan()


def copied(scratch: Path, module: str) -> Workspace:
    """A workspace in a copy of the module, or beside it."""
    copy_module(GOOGLE, scratch)
    workspace = Workspace(scratch / module)
    workspace.initialise("google")
    return workspace


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_valid(example: str, tmp_path: Path) -> None:
    checked = json.loads(copied(tmp_path, f"google/examples/{example}").run("validate", "-json"))

    assert checked["valid"]
    assert checked["diagnostics"] == []


@deployment
def test_the_service_runs_the_container_as_its_own_account(plan: Plan, values: Values, deployment: str) -> None:
    [service] = plan.of_type(deployment, "google_cloud_run_v2_service")
    [template] = service.values["template"]
    [container] = template["containers"]

    assert template["service_account"] == "lake-api@my-project.iam.gserviceaccount.com"
    assert container["args"] == values[deployment]["serve"]
    assert {env["name"]: env["value"] for env in container["env"]} == values[deployment]["service_environment"]
    assert [port["container_port"] for port in container["ports"]] == [8181]
    assert container["image"] == named(ACCEPTED[deployment])["image"]


def test_the_service_costs_nothing_unless_it_is_asked(plan: Plan) -> None:
    def template(deployment: str) -> tuple[int, bool]:
        [service] = plan.of_type(deployment, "google_cloud_run_v2_service")
        [found] = service.values["template"]
        return found["scaling"][0]["min_instance_count"], found["containers"][0]["resources"][0]["cpu_idle"]

    assert template("fresh") == (0, True)
    assert template("folder") == (1, False)


@deployment
@pytest.mark.parametrize("name", ["reconcile", "tasks", "collect"])
def test_each_job_runs_by_its_schedule_as_its_own_account(
    plan: Plan, values: Values, name: str, deployment: str
) -> None:
    def of_job(kind: str) -> Resource:
        return next(each for each in plan.of_type(deployment, kind) if each.values["name"] == f"lake-{name}")

    job, schedule = of_job("google_cloud_run_v2_job"), of_job("google_cloud_scheduler_job")
    [task] = job.values["template"][0]["template"]
    [target] = schedule.values["http_target"]

    assert task["service_account"] == f"lake-{name}@my-project.iam.gserviceaccount.com"
    assert task["containers"][0]["args"] == values[deployment]["jobs"][name]["args"]
    assert (
        schedule.values["schedule"]
        == {
            "reconcile": "*/15 * * * *",
            "tasks": "5-59/15 * * * *",
            "collect": "40 3,15 * * *",
        }[name]
    )
    assert target["uri"].endswith(f"/projects/my-project/locations/europe-west3/jobs/lake-{name}:run")
    assert target["oauth_token"][0]["service_account_email"] == "lake-schedule@my-project.iam.gserviceaccount.com"


@deployment
def test_nobody_calls_unasked_unless_that_was_said(plan: Plan, deployment: str) -> None:
    anyone = ACCEPTED[deployment].get("authorization") == "none"
    callers = [
        (found.values["role"], found.values["member"])
        for found in plan.of_type(deployment, "google_cloud_run_v2_service_iam_member")
    ]

    assert callers == [("roles/run.invoker", "allUsers" if anyone else SPARK)]


@deployment
def test_bindings_are_those_that_were_decided(plan: Plan, values: Values, deployment: str) -> None:
    made = {
        (found.values["bucket"], found.values["member"], *(each["expression"] for each in found.values["condition"]))
        for found in plan.of_type(deployment, "google_storage_bucket_iam_member")
    }

    assert made == {
        (binding["bucket"], binding["member"], *([binding["condition"]] if binding["condition"] else []))
        for binding in values[deployment]["bindings"].values()
    }


def test_a_bucket_that_is_made_is_private_and_keeps_what_is_replaced(plan: Plan) -> None:
    [bucket] = plan.of_type("fresh", "google_storage_bucket")
    values = bucket.values

    assert (values["uniform_bucket_level_access"], values["public_access_prevention"]) == (True, "enforced")
    assert (values["versioning"][0]["enabled"], values["force_destroy"]) == (True, False)
    assert values["soft_delete_policy"][0]["retention_duration_seconds"] == 7 * 86400
    assert not plan.of_type("folder", "google_storage_bucket")


@pytest.mark.parametrize("deployment", ["fresh", "anyone"])
def test_nothing_current_expires_but_probes(plan: Plan, deployment: str) -> None:
    [bucket] = plan.of_type(deployment, "google_storage_bucket")
    deleting = [
        rule["condition"][0]
        for rule in bucket.values["lifecycle_rule"]
        if [action["type"] for action in rule["action"]] == ["Delete"]
    ]

    assert sorted((rule["with_state"], tuple(rule["matches_prefix"] or ())) for rule in deleting) == [
        ("ANY", ("_probe/",)),
        ("ARCHIVED", ()),
    ]


def test_alerts_go_where_it_was_said(plan: Plan) -> None:
    alerts = plan.of_type("anyone", "google_monitoring_alert_policy")

    assert {alert.values["display_name"] for alert in alerts} == {
        *("lake-5xx", "lake-no-instance", "lake-reconcile-failed", "lake-reconcile-age", "lake-collect-age"),
        *("lake-tasks-age", "lake-tasks-failed", "lake-leases-lost", "lake-state-size"),
    }
    assert all(alert.values["notification_channels"] == ACCEPTED["anyone"]["notification_channels"] for alert in alerts)
