"""The documentation site: which pages it has, where their links lead, and what is made from the code."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.test_citations import anchors_of
from tools import configuration, site

PROJECT = Path(__file__).resolve().parents[2]
DOCS = PROJECT / "docs"


class Loader(yaml.SafeLoader):
    """Takes the tags by which mkdocs names functions for texts."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/name:", lambda _, name, node: name)
CONFIGURATION = yaml.load((PROJECT / "mkdocs.yml").read_text(), Loader)


def leaves(entry: object) -> Iterator[str]:
    """The pages that a part of the navigation names."""
    match entry:
        case str():
            yield entry
        case list():
            for each in entry:
                yield from leaves(each)
        case dict():
            yield from leaves([*entry.values()])


def pages() -> dict[str, str]:
    """The text of each page of the site, by its place."""
    inside = {file.relative_to(DOCS).as_posix(): file.read_text() for file in DOCS.rglob("*.md")}
    return inside | {place: (PROJECT / name).read_text() for name, place in site.OUTSIDE.items()}


def test_the_navigation_has_every_page_once() -> None:
    named = [*leaves(CONFIGURATION["nav"])]
    assert sorted(named) == sorted(place for place in pages() if not re.match(r"decisions/0", place))


def test_every_link_of_the_site_leads_to_a_page_of_it() -> None:
    texts = pages()
    wrong = []
    for place, text in texts.items():
        for link in re.finditer(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", site.linked(text, place)):
            target = (Path("/", place).parent / link[1]).resolve().relative_to("/").as_posix() if link[1] else place
            if target in site.DATA.values() or (Path(target).suffix == ".webp" and (DOCS / target).exists()):
                continue
            if target not in texts or (link[2] and link[2] not in anchors_of(texts[target])):
                wrong.append(f"{place}: {link[0]}")
    assert wrong == []


def test_the_decisions_page_lists_all_of_them() -> None:
    listed = re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", site.decisions())
    assert listed == sorted(file.name for file in (DOCS / "decisions").glob("[0-9]*.md"))


def test_the_configuration_page_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert configuration.main(["--check"]) == 0, capsys.readouterr().err


def test_a_configuration_page_that_is_not_current_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration, "PAGE", tmp_path / "configuration.md")
    configuration.PAGE.write_text("# Configuration\n")
    assert configuration.main(["--check"]) == 1
    assert configuration.main([]) == 0
    assert configuration.main(["--check"]) == 0


def test_texts_that_troubleshooting_explains_are_texts_of_ours() -> None:
    page = (DOCS / "troubleshooting.md").read_text().partition("## Engines")[0]
    texts = {text for row in re.findall(r"(?m)^\| (`.*?`) \|", page) for text in re.findall(r"`([^`]+)`", row)}
    assert len(texts) > 12
    packages = ("arco_catalog", "storage_backends", "reconciler")
    sources = "\n".join(file.read_text() for package in packages for file in (PROJECT / package).rglob("*.py"))
    said = re.sub(r"\{[^{}\n]*\}", "...", re.sub(r'"\s*\n\s*f?"', "", sources))
    for text in texts:
        parts = re.split(r"\.\.\.|127\.0\.0\.1|8181|ARCO_STORE|: Address already in use", text)
        assert all(part.strip() in said for part in parts if part.strip()), text


@pytest.mark.parametrize(
    ("place", "text", "expected"),
    [
        ("index.md", "[a](docs/stores.md#what-was-run)", "[a](stores.md#what-was-run)"),
        ("decisions/0001-x.md", "[a](../../infra/README.md)", "[a](../infra.md)"),
        ("operations.md", "[a](commit.py)", "a"),
        ("index.md", "[a](docs/missing.md)", "[a](missing.md)"),
        ("index.md", "[a](missing.txt)", "[a](missing.txt)"),
        ("index.md", "[a](https://iceberg.apache.org)", "[a](https://iceberg.apache.org)"),
    ],
)
def test_a_link_is_made_to_fit_the_site(place: str, text: str, expected: str) -> None:
    assert site.linked(text, place) == expected


def test_the_site_shows_blocks_without_what_they_say_to_tests() -> None:
    for place, text in pages().items():
        shown = site.shown(text, place)
        assert shown.count("```") == text.count("```")
        assert re.findall(r"(?m)^ *```\w+ .+$", shown) == []
