"""What can be said of the module without its provider, and what it refuses."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from arco_catalog.config.variables import AUTHENTICATION, SERVER
from arco_catalog.telemetry.emf import REQUESTS
from tests.infra.google.conftest import Values
from tests.infra.google.values import GOOGLE, REFUSED_ALONE, REFUSED_TOGETHER, VALUES, workspace
from tests.infra.terraform import Variables

FILES = {path.stem: path.read_text() for path in GOOGLE.glob("*.tf")}
TEXT = "\n".join(FILES.values())


def blocks(kind: str) -> dict[str, str]:
    """The text of each block of a kind, by its name."""
    return {found[1]: found[2] for found in re.finditer(rf'(?ms)^{kind} "(\w+)" {{\n(.*?)^}}', TEXT)}


@pytest.mark.parametrize("kind", ["variable", "output"])
def test_everything_that_goes_in_and_comes_out_says_what_it_is(kind: str) -> None:
    assert len(blocks(kind)) >= 7
    assert [name for name, text in blocks(kind).items() if not re.search(r'(?m)^  description = ".{20,}', text)] == []


def test_what_must_be_said_has_no_default() -> None:
    without = {name for name, text in blocks("variable").items() if not re.search(r"(?m)^  default ", text)}

    assert without == {"project", "region", "name", "image"}


@pytest.mark.parametrize("refused", [REFUSED_ALONE, REFUSED_TOGETHER], ids=["alone", "together"])
def test_what_cannot_be_right_is_refused_with_what_would_be(
    refused: Mapping[str, tuple[Variables, str]], tmp_path: Path
) -> None:
    said = {
        (refusal["snippet"]["context"], refusal["detail"])
        for refusal in workspace({name: given for name, (given, _) in refused.items()}, tmp_path).refusals("plan")
    }

    unsaid = {
        name
        for name, (_, words) in refused.items()
        if not any(context == f'module "{name}"' and words in detail for context, detail in said)
    }
    assert unsaid == set()


def test_values_need_no_provider() -> None:
    assert not any(re.search(r"(?m)^(resource|data|provider) ", FILES[name]) for name in VALUES)
    assert not re.search(r"(?m)^data ", TEXT)  # nor is anything asked of Google before there is something


def test_no_role_is_broader_than_what_is_done_with_it(values: Values) -> None:
    # Google's own, of one or two rights each; no role of this project can be given on a topic of another one.
    assert set(re.findall(r"roles/[\w.]+", TEXT)) == {"roles/run.invoker", "roles/pubsub.publisher"}
    assert values["fresh"]["roles"] == {
        "list": ["storage.objects.list"],
        "read": ["storage.objects.get"],
        "write": ["storage.objects.get", "storage.objects.create", "storage.objects.delete"],
        "purge": ["storage.objects.get", "storage.objects.delete"],
    }


def test_the_api_makes_tokens_of_one_account_and_reads_one_secret(values: Values) -> None:
    permissions = FILES["permissions"]

    assert values["realm"]["vend_permissions"] == ["iam.serviceAccounts.getAccessToken"]
    assert values["realm"]["token_key_permissions"] == ["secretmanager.versions.access"]
    for kind in ("google_service_account_iam_member", "google_secret_manager_secret_iam_member"):
        [block] = re.findall(rf'(?ms)^resource "{kind}" "\w+" {{\n(.*?)^}}', permissions)
        assert "local.members.api" in block
    assert 'service_account_id = google_service_account.account["vending"].name' in permissions


def test_the_service_is_told_whom_to_believe_and_the_reconciler_is_not(values: Values) -> None:
    told = {
        name: value
        for name, value in values["realm"]["service_environment"].items()
        if values["realm"]["environment"].get(name) != value
    }

    assert told == {
        "ARCO_AUTH": "internal,oidc",
        "ARCO_TOKEN_KEY_SECRET": "projects/my-project/secrets/lake-token-key",
        "ARCO_TOKEN_AUDIENCE": "arco-catalog",
        "ARCO_TOKEN_LIFETIME": "3600",
        "ARCO_OIDC_ISSUERS": "https://accounts.google.com",
        "ARCO_OIDC_AUDIENCES": "lake",
        "ARCO_OIDC_ALGORITHMS": "RS256,ES256,EdDSA",
        "ARCO_OIDC_PRINCIPAL_CLAIM": "sub",
    }
    assert {variable.name for variable in (*SERVER, *AUTHENTICATION)} >= {*told}
    assert values["fresh"]["service_environment"] == values["fresh"]["environment"]


def test_catalogs_vend_by_the_account_that_reaches_tables(values: Values) -> None:
    assert values["realm"]["storage"] == {
        "new_catalogs": ["gs://there-already/lakes/one/catalogs"],
        "storageConfigInfo": {
            "storageType": "GCS",
            "gcsServiceAccount": "lake-vending@my-project.iam.gserviceaccount.com",
        },
    }
    assert "gcsServiceAccount" not in values["fresh"]["storage"]["storageConfigInfo"]


def test_service_and_job_run_what_was_decided() -> None:
    service, job = FILES["service"], FILES["jobs"]

    assert re.search(r"(?m)^ +args += local\.serve$", service)
    assert re.search(r"(?m)^ +args += each\.value\.args$", job)
    assert "for_each = local.service_environment" in service
    assert "for_each = local.container_environment" in job
    assert "container_port = local.port" in service
    assert '["api"]' in service
    assert "google_service_account.account[each.key].email" in job
    assert job.count("for_each = local.jobs") == 2


def test_the_readme_tells_of_every_file() -> None:
    readme = (GOOGLE / "README.md").read_text()

    assert [name for name in FILES if f"`{name}.tf`" not in readme] == []


def test_the_alert_on_5xx_does_not_count_stale_keys(values: Values) -> None:
    query = values["fresh"]["alerts"]["5xx"]["query"]
    errors, stale = query.removesuffix(" >= 5").split(" - ")

    assert 'response_code_class="5xx"' in errors
    assert "user_lake_stale_keys{" in stale
    assert stale.endswith("or vector(0))"), "without a stale key there is no series, and nothing would be compared"
    [metric] = re.findall(r'(?ms)^resource "google_logging_metric" "stale_keys" {\n(.*?)^}', TEXT)
    assert "jsonPayload.StaleKeys=1" in metric
    assert any("StaleKeys" in metrics for _, metrics in REQUESTS), "a line of a request has this field"


def test_graphs_and_alerts_ask_for_metrics_that_there_are(values: Values) -> None:
    ours = {
        f"logging_googleapis_com:user_{name}"
        for name in (
            "lake_walks_completed",
            "lake_collections_completed",
            "lake_state_objects_sum",
            "lake_state_objects_count",
            "lake_stale_keys",
            *(f"lake_tasks_{metric}" for metric in values["fresh"]["task_metric"]),
            *(f"lake_{metric}_bucket" for metric in values["fresh"]["request_metric"]),
        )
    }
    queries = [*values["fresh"]["alerts"].values(), *values["fresh"]["graphs"]]

    assert set(re.findall(r"logging_googleapis_com:\w+", " ".join(query["query"] for query in queries))) == ours
    assert set(values["fresh"]["alerts"]) == {
        *("5xx", "no-instance", "reconcile-failed", "reconcile-age", "collect-age"),
        *("tasks-age", "tasks-failed", "leases-lost", "state-size"),
    }
    assert len(values["folder"]["graphs"]) == 7
