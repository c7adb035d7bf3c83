"""CI calls the same make targets as developers, and nothing beside them knows how to build."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.packaging.dockerfile import PROJECT

WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))
SHORTER = {"test-minio", "test-versitygw", "test-gcs", "test-azure", "test-image"}
"""`test-stores` has the first three; `make image`, which CI calls, does more than the last."""
MAKEFILES = ("Makefile", "fetch.mk", "slow.mk")
TARGETS = set(re.findall(r"(?m)^([a-z-]+):", "".join((PROJECT / name).read_text() for name in MAKEFILES)))


def jobs() -> Iterator[dict[str, Any]]:
    for path in WORKFLOWS:
        yield from yaml.safe_load(path.read_text())["jobs"].values()


def steps() -> Iterator[dict[str, Any]]:
    for job in jobs():
        yield from job["steps"]


def test_each_part_of_ci_is_a_make_target() -> None:
    called = {target for step in steps() for target in re.findall(r"\bmake ([a-z-]+)", step.get("run", ""))}
    assert called == {"lint", "test", "rck", "docs", "image", "sbom", "audit", "release"}
    assert called <= TARGETS


def test_what_make_test_leaves_to_other_targets_runs_each_night() -> None:
    nightly = {target for job in jobs() for target in job.get("strategy", {}).get("matrix", {}).get("target", [])}
    assert nightly <= TARGETS
    assert {target for target in TARGETS if target.startswith("test-")} - nightly == SHORTER | {
        "test-slow",
        "test-polaris-spark",
        "test-polaris-python",
    }


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_and_every_job_is_bounded(path: Any) -> None:
    document = yaml.safe_load(path.read_text())
    assert document["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] <= (180 if path.stem == "nightly" else 60) for job in document["jobs"].values())


def test_only_the_release_may_write_and_only_from_a_tag() -> None:
    writing: dict[str, Any] = {}
    for path in WORKFLOWS:
        for name, job in yaml.safe_load(path.read_text())["jobs"].items():
            allowed = {what for what, right in job.get("permissions", {}).items() if right == "write"}
            if allowed:
                writing[f"{path.stem}/{name}"] = (allowed, job.get("if"))
    assert writing == {
        "release/build": ({"id-token", "attestations"}, None),
        "release/index": ({"id-token"}, "github.ref_type == 'tag'"),
        "release/page": ({"contents"}, "github.ref_type == 'tag'"),
    }


def test_every_action_is_pinned() -> None:
    assert all(re.search(r"@[0-9a-f]{40}$", step["uses"]) for step in steps() if "uses" in step)
