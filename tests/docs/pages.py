"""The pages that readers follow, and the blocks of code in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"(?ms)^(?P<indent> *)```(?P<info>[^\n]*)\n(?P<body>.*?)^(?P=indent)```$")
RUN = ("python", "sh")
OUTPUT = "text output"
"""What the Python block before it prints."""
READ_ONLY = ("hcl", "json", "mermaid", "properties", "rego", "rust", "sql", "text", "yaml", OUTPUT)
"""What is no program of this machine: settings, pictures, and what tests/engines has in its own words."""


@dataclass(frozen=True)
class Block:
    """One fenced block: its info string, its text without the fence's indent, and where it is."""

    info: str
    text: str
    line: int

    @property
    def language(self) -> str:
        return self.info.partition(" ")[0]

    @property
    def not_run(self) -> str | None:
        """Why no test runs it, None if one does."""
        found = re.fullmatch(r'\w+ not-run="([^"]+)"', self.info)
        return found[1] if found else None


def pages() -> Iterator[Path]:
    """Every page that tells a reader what to do."""
    yield from (PROJECT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "infra/README.md"))
    yield from sorted((PROJECT / "docs").rglob("*.md"))


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    text = page.read_text()
    found = []
    for fence in FENCE.finditer(text):
        indent = len(fence["indent"])
        body = "".join(line[indent:] for line in fence["body"].splitlines(keepends=True))
        found.append(Block(fence["info"].strip(), body, text.count("\n", 0, fence.start()) + 1))
    return found
