"""A hook of mkdocs: pages that lie outside of docs/ are in the site too, and links between all of them hold.

A link to a file that is no page becomes plain text, since the site has no copy of it. A link to nothing stays, and
`mkdocs build --strict` fails over it.
"""

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig  # type: ignore[import-not-found]
    from mkdocs.structure.files import Files  # type: ignore[import-not-found]
    from mkdocs.structure.pages import Page  # type: ignore[import-not-found]

PROJECT = Path(__file__).resolve().parents[1]
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
    "arco_catalog/operations/README.md": "operations.md",
    "arco_catalog/upkeep/README.md": "upkeep.md",
    "infra/README.md": "infra.md",
    "infra/google/README.md": "infra-google.md",
    "infra/azure/README.md": "infra-azure.md",
    "storage_backends/README.md": "storage-backends.md",
    "tests/simulation/README.md": "simulation.md",
}
"""Where a page of the repository is in the site, if it does not lie in docs/."""
DATA = {"arco_catalog/http/openapi.json": "openapi.json"}
"""The same of files that are no pages."""
_WHERE = {place: name for name, place in OUTSIDE.items()}
_FENCE = re.compile(r"(?m)^(?P<start> *```\w+) .+$")
"""A fence with a word for tests behind its language, which mkdocs would take for text."""
_LINK = re.compile(r"(?<!!)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])+)\]\((?P<target>[^()\s]+)\)")


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Adds what lies outside."""
    from mkdocs.structure.files import File

    for name, place in (OUTSIDE | DATA).items():
        files.append(File.generated(config, place, content=(PROJECT / name).read_text()))
    return files


def on_page_markdown(markdown: str, page: "Page", config: "MkDocsConfig", files: "Files") -> str:
    """Turns the text of a page of the repository into that of the site, and lists the decisions on their first page."""
    place: str = page.file.src_uri
    if place == "decisions/README.md":
        markdown += decisions()
    return shown(markdown, place)


def shown(markdown: str, place: str) -> str:
    """The text of the page at `place` as mkdocs gets it."""
    return _FENCE.sub(r"\g<start>", linked(markdown, place))


def linked(markdown: str, place: str) -> str:
    """The text of the page at `place` in the site, its links to files of the repository made to fit the site."""
    origin = _WHERE.get(place, f"docs/{place}")

    def fitting(link: re.Match[str]) -> str:
        path, mark, anchor = link["target"].partition("#")
        if not path or re.match(r"[a-z]+:", path):
            return link[0]
        name = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
        target = (OUTSIDE | DATA).get(name) or (name.removeprefix("docs/") if re.match(r"docs/.*\.md$", name) else None)
        if name in ("docs/decisions", "docs/design"):
            target = f"{name.removeprefix('docs/')}/README.md"
        if target is not None:
            relative = posixpath.relpath(target, posixpath.dirname(place) or ".")
            return f"[{link['text']}]({relative}{mark}{anchor})"
        return link["text"] if (PROJECT / name).exists() else link[0]

    return _LINK.sub(fitting, markdown)


def decisions() -> str:
    """A list of all decision pages by their titles."""
    pages = sorted((PROJECT / "docs/decisions").glob("[0-9]*.md"))
    lines = [f"- [{page.read_text().partition(chr(10))[0].lstrip('# ')}]({page.name})" for page in pages]
    return "\n" + "\n".join(lines) + "\n"


def slug(text: str, separator: str) -> str:
    """The anchor of a heading, as code hosts spell it, so that one link fits both."""
    return re.sub(r"[^\w\- ]", "", text).strip().lower().replace(" ", separator)
