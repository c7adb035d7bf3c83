"""What is fetched is pinned, and what is shipped says under which licence."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.infra.terraform import PROVIDER, plugins

PROJECT = Path(__file__).parent.parent
LOCKS = sorted(set((PROJECT / "requirements").glob("*.txt")) - {PROJECT / "requirements" / "go.txt"})
ROOT_MODULES = [PROJECT / "infra", *sorted((PROJECT / "infra" / "examples").iterdir())]


def test_every_goal_of_maven_names_its_plugins_version() -> None:
    makefile = (PROJECT / "fetch.mk").read_text()

    assert "mvn" not in (PROJECT / "Makefile").read_text().replace("java mvn", "")
    assert re.findall(r"(?m)^\t.*\bmvn\b.*", makefile) == []
    goals = re.findall(r"(?m)^\t\$\(MVN\).*?(\S+:copy\S*)", makefile)
    assert len(goals) >= 5
    assert set(goals) <= {"$(MAVEN_DEPENDENCY):copy", "$(MAVEN_DEPENDENCY):copy-dependencies"}
    assert re.search(r"(?m)^MAVEN_DEPENDENCY := [\w.]+:[\w-]+:\d+\.\d+\.\d+$", makefile)


def test_every_folder_of_jars_holds_what_is_listed_and_nothing_else() -> None:
    makefile = (PROJECT / "fetch.mk").read_text()

    folders = re.findall(r"(?m)^\.jars/\S+/complete:.*\n((?:\t.*\n)+)", makefile)
    copied = [recipe for recipe in folders if "sha256sum" in recipe and "archives" not in recipe]
    assert len(copied) == 7
    assert all("only_listed" in recipe for recipe in copied)


@pytest.mark.parametrize("name", ["trino", "keycloak"])
def test_an_archive_that_is_fetched_is_compared_with_its_hash_before_it_is_unpacked(name: str) -> None:
    recipe = next(
        part for part in (PROJECT / "fetch.mk").read_text().split("\n\n") if f"requirements/{name}.sha256" in part
    )

    assert re.search(r"sha256sum --check --strict(?s:.*)(tar|zipfile) --extract", recipe)
    assert re.fullmatch(r"([0-9a-f]{64}  [\w.-]+\n)+", (PROJECT / "requirements" / f"{name}.sha256").read_text())


def test_every_action_of_a_workflow_is_pinned_by_its_commit_and_names_its_version() -> None:
    workflows = [*(PROJECT / ".github" / "workflows").glob("*.yml")]
    used = [line for file in workflows for line in file.read_text().splitlines() if re.search(r"\buses:", line)]

    assert len(used) > 10
    assert [line for line in used if not re.search(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line)] == []


def test_the_base_image_is_pinned_by_its_digest() -> None:
    dockerfile = (PROJECT / "Dockerfile").read_text()

    assert set(re.findall(r"(?m)^FROM (\S+)", dockerfile)) == {"python:${PYTHON}"}
    [base] = re.findall(r"(?m)^ARG PYTHON=(\S+)$", dockerfile)
    assert re.fullmatch(r"3\.11\.\d+-slim-\w+@sha256:[0-9a-f]{64}", base)


def test_servers_in_go_are_pinned() -> None:
    for line in (PROJECT / "requirements" / "go.txt").read_text().splitlines():
        assert re.fullmatch(r"[\w./-]+ [\w./-]+@v\d+\.\d+\.\d+(-[\w.-]+)?( [\w./-]+)?", line), line


def test_packages_of_npm_are_pinned_by_hash_and_no_registry_is_named() -> None:
    for folder in (*(PROJECT / "requirements").glob("*/package.json"), PROJECT / "console" / "package.json"):
        package = json.loads(folder.read_text())
        versions = {**package["dependencies"], **package.get("devDependencies", {})}.values()
        lock = json.loads((folder.parent / "package-lock.json").read_text())
        packages = [package for path, package in lock["packages"].items() if path]

        assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions)
        assert packages
        assert all(package["integrity"].startswith("sha512-") for package in packages)
        assert not [package for package in packages if "resolved" in package]


def test_crates_are_pinned_by_hash_and_named_as_cargo_names_its_index() -> None:
    """A lock of Cargo's has the name of the index in each entry. A machine whose configuration replaces this source
    takes crates from the other one, and the lock stays as it is."""
    folder = PROJECT / "tests" / "engines" / "others" / "iceberg_rust"
    packages = tomllib.loads((folder / "Cargo.lock").read_text())["package"]
    crates = [package for package in packages if package["name"] != "iceberg-rust-shell"]

    assert len(crates) == len(packages) - 1 > 400
    assert all(re.fullmatch(r"[0-9a-f]{64}", crate["checksum"]) for crate in crates)
    assert {crate["source"] for crate in crates} == {"registry+https://github.com/rust-lang/crates.io-index"}
    assert "cargo build --quiet --locked" in (PROJECT / "fetch.mk").read_text()


@pytest.mark.parametrize("module", ROOT_MODULES, ids=lambda module: module.name)
def test_every_root_module_locks_its_provider(module: Path) -> None:
    lock = (module / ".terraform.lock.hcl").read_text()

    assert f'provider "{PROVIDER}"' in lock
    [version] = re.findall(r'(?m)^  version\s+= "([\d.]+)"$', lock)
    assert len(re.findall(r'"zh:[0-9a-f]{64}"', lock)) == 15
    folder = plugins()
    if folder is not None:
        assert any((folder / PROVIDER / version).iterdir()), "tests run the provider that is locked"


def test_the_licence_is_told_and_shipped() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]

    assert project["license"] == "Apache-2.0"
    assert "Apache License" in (PROJECT / "LICENSE").read_text()


def recipe_of(target: str) -> str:
    """What `make TARGET` would run."""
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", target],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_file_pins_every_package_by_hash_and_names_no_index(lock: Path) -> None:
    text = lock.read_text()

    packages = re.split(r"(?m)^(?=[a-zA-Z])", re.sub(r"(?m)^ *#.*\n", "", text))
    pinned = [package for package in packages if re.match(r"[\w.\[\]-]+==\S+", package)]
    assert pinned
    assert pinned == [package for package in packages if package.strip()]
    assert all("--hash=sha256:" in package for package in pinned)
    assert not re.search(r"://|--(extra-)?index-url|--find-links", text)


def test_every_lock_file_is_audited_and_nothing_is_passed_over() -> None:
    recipe = recipe_of("audit")

    assert {lock.relative_to(PROJECT).as_posix() for lock in LOCKS} <= set(
        re.findall(r"requirements/[\w.-]+\.txt", recipe)
    )
    assert "pip-audit --strict --require-hashes" in recipe


def test_what_is_shipped_has_a_bill_of_materials() -> None:
    recipe = recipe_of("sbom")

    assert "for lock in serve lambda lambda-oidc lambda-sdk functions;" in recipe
    assert "cyclonedx-py requirements --pyproject pyproject.toml" in recipe


def test_every_lock_file_is_resolved_by_make_lock() -> None:
    recipe = recipe_of("lock")

    named = {f"requirements/{name}.txt" for name in re.findall(r"for engine in ([\w -]+);", recipe)[0].split()}
    named |= set(re.findall(r"-o (requirements/[\w.-]+\.txt)", recipe))
    assert named == {lock.relative_to(PROJECT).as_posix() for lock in LOCKS}
