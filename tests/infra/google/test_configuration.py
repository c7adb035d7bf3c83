"""What can be said of the module without its provider, and what it refuses."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

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
    assert set(re.findall(r"roles/[\w.]+", TEXT)) == {"roles/run.invoker"}
    assert values["fresh"]["roles"] == {
        "list": ["storage.objects.list"],
        "read": ["storage.objects.get"],
        "write": ["storage.objects.get", "storage.objects.create", "storage.objects.delete"],
    }


def test_service_and_job_run_what_was_decided() -> None:
    service, job = FILES["service"], FILES["reconcile"]

    assert re.search(r"(?m)^ +args += local\.serve$", service)
    assert re.search(r"(?m)^ +args += local\.reconcile$", job)
    assert all("for_each = local.container_environment" in text for text in (service, job))
    assert "container_port = local.port" in service
    assert '["api"]' in service
    assert '["reconcile"]' in job


def test_the_readme_tells_of_every_file() -> None:
    readme = (GOOGLE / "README.md").read_text()

    assert [name for name in FILES if f"`{name}.tf`" not in readme] == []


def test_graphs_and_alerts_ask_for_metrics_that_there_are(values: Values) -> None:
    ours = {
        f"logging_googleapis_com:user_{name}"
        for name in ("lake_walks_completed", *(f"lake_{metric}_bucket" for metric in values["fresh"]["request_metric"]))
    }
    queries = [*values["fresh"]["alerts"].values(), *values["fresh"]["graphs"]]

    assert set(re.findall(r"logging_googleapis_com:\w+", " ".join(query["query"] for query in queries))) == ours
    assert set(values["fresh"]["alerts"]) == {"5xx", "no-instance", "reconcile-failed", "reconcile-age"}
    assert len(values["folder"]["graphs"]) == 5
