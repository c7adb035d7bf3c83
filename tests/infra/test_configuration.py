"""What can be said of the configuration without a plan, and what it refuses."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.infra.deployments import REFUSED_ALONE, REFUSED_TOGETHER, any_package, named
from tests.infra.terraform import INFRA, TerraformFailed, Variables, Workspace, plugins, terraform
from tools.support.environment import PROJECT
from tools.support.s3_servers import S3Server

Refused = Mapping[str, tuple[Variables, str]]
_FUNCTION = 'resource "aws_lambda_function" "function"'
REFUSED_BY_RESOURCES = ("engines_in_the_state", "tables_in_the_realm_s_state", "nothing_to_deploy")
"""Of what contradicts itself: not the variables say so, but a function that would be made of them."""
EXAMPLES: Mapping[str, Variables] = {
    "existing-bucket": {"bucket": "there-already", "issuer": "https://id.example.com"},
    "fresh-bucket": {},
}
"""With the variables that each requires."""


def test_the_formatter_has_nothing_to_change() -> None:
    Workspace(INFRA).run("fmt", "-check", "-recursive")


def test_the_examples_are_valid(tmp_path: Path) -> None:
    assert {*EXAMPLES} == {folder.name for folder in (INFRA / "examples").iterdir()}
    checked = json.loads(Workspace.of_examples(EXAMPLES, tmp_path).run("validate", "-json"))

    assert checked["valid"]
    assert checked["diagnostics"] == []


def test_a_variable_that_cannot_be_right_is_refused_with_what_would_be(tmp_path: Path) -> None:
    workspace = _workspace(REFUSED_ALONE, tmp_path, ())

    assert _not_said(REFUSED_ALONE, workspace.refusals("validate")) == set()


def test_variables_that_contradict_each_other_are_refused_with_the_way_out(aws: S3Server, tmp_path: Path) -> None:
    workspace = _workspace(REFUSED_TOGETHER, tmp_path, REFUSED_BY_RESOURCES)
    workspace.use(aws)

    assert _not_said(REFUSED_TOGETHER, workspace.refusals("plan")) == set()


def test_without_terraform_the_tests_fail_and_say_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    with pytest.raises(TerraformFailed, match="not in PATH"):
        terraform()


def test_plugins_are_taken_from_the_folder_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "registry.terraform.io/hashicorp/aws/5.100.0/linux_amd64/terraform-provider-aws_v5.100.0_x5"
    program.parent.mkdir(parents=True)
    program.touch()
    monkeypatch.setenv("TF_PLUGIN_DIR", str(tmp_path))

    assert plugins() == tmp_path


def test_no_file_names_this_machine() -> None:
    folder = plugins()
    texts = [file.read_text() for file in INFRA.rglob("*") if file.is_file() and ".terraform" not in file.parts]

    assert not any(str(PROJECT) in text or (folder is not None and str(folder) in text) for text in texts)


def _workspace(refused: Refused, scratch: Path, by_resources: Sequence[str]) -> Workspace:
    package = any_package(scratch)
    deployments = {name: named(given, package) for name, (given, _) in refused.items()}
    return Workspace.of_refused(deployments, scratch, by_resources=by_resources)


def _not_said(refused: Refused, refusals: list[dict[str, Any]]) -> set[str]:
    """Deployments of which nobody said what was to be said: of its own variables, or of a resource, whose deployment
    Terraform does not name."""
    said = {(refusal["snippet"]["context"], refusal["detail"]) for refusal in refusals}
    return {
        name
        for name, (_, words) in refused.items()
        if not any(words in detail and context in (f'module "{name}"', _FUNCTION) for context, detail in said)
    }
