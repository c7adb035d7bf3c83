"""CI calls the same make targets as developers, and nothing beside them knows how to build."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.packaging.dockerfile import PROJECT

WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"(?m)^([a-z-]+):", (PROJECT / "Makefile").read_text()))


def steps() -> Iterator[dict[str, Any]]:
    for path in WORKFLOWS:
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            yield from job["steps"]


def test_each_part_of_ci_is_a_make_target() -> None:
    called = {target for step in steps() for target in re.findall(r"\bmake ([a-z-]+)", step.get("run", ""))}
    assert called == {"lint", "test", "rck", "docs", "image", "sbom", "audit"}
    assert called <= TARGETS


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_and_every_job_is_bounded(path: Any) -> None:
    document = yaml.safe_load(path.read_text())
    assert document["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] <= 60 for job in document["jobs"].values())


def test_every_action_has_a_version() -> None:
    assert all(re.search(r"@v\d+$", step["uses"]) for step in steps() if "uses" in step)
