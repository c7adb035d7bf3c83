"""The built console is small, and complete in itself."""

import gzip
import re
from pathlib import Path

import pytest

from arco_catalog.http.console.files import BUILT, read_console
from tools import package, package_azure

KB = 1000
FIRST_VIEW = 100 * KB
WHOLE = 160 * KB
pytestmark = pytest.mark.needs("node", "npm", "arco_catalog/http/console/built/index.html")


def packed(file: Path) -> int:
    return len(gzip.compress(file.read_bytes(), 9))


def named_by(page: str) -> set[str]:
    """The files that a browser loads for the first view."""
    return set(re.findall(r'(?:href|src)="([\w-]+\.(?:js|css))"', page))


def test_the_first_view_and_the_whole_are_small() -> None:
    page = (BUILT / "index.html").read_text()
    first = named_by(page)

    assert {Path(name).suffix for name in first} == {".js", ".css"}
    assert sum(packed(BUILT / name) for name in first) <= FIRST_VIEW
    assert sum(map(packed, BUILT.iterdir())) <= WHOLE


def test_every_file_is_served_and_named_by_another() -> None:
    console = read_console()
    texts = [console.index.body, *(file.body for file in console.files.values())]

    assert {file.name for file in BUILT.iterdir()} == {"index.html", *console.files}
    assert [name for name in console.files if not any(name.encode() in text for text in texts)] == ["licenses.txt"]


def test_no_file_names_an_address_to_load_from() -> None:
    """The namespaces of XML are names."""
    texts = [file.read_text() for file in BUILT.iterdir() if file.suffix != ".txt"]
    addresses = {found for text in texts for found in re.findall(r"https?://[^\s\"'`)\\]+", text)}

    assert {address for address in addresses if "www.w3.org/" not in address} == set()


def test_the_zip_of_functions_has_no_built_file() -> None:
    for sources in (package.SOURCES, package_azure.SOURCES):
        names = [name for name, _ in package.modules(sources, package.NOT_SHIPPED)]

        assert "arco_catalog/http/app.py" in names
        assert [name for name in names if "/built/" in name] == []
