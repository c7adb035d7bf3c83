"""A store on files that is filled once and restored for each test. It stays in one folder, whose name is part of the
locations in table metadata."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True)
class FilledStore:
    """A store, and a copy of what it held once it was filled."""

    store: Path
    copy: Path

    @classmethod
    def of(cls, folder: Path, fill: Callable[[str], None]) -> Self:
        """Calls `fill` with the URL of a store in this folder, and copies what it has written there."""
        made = cls(folder / "store", folder / "copy")
        fill(made.url)
        shutil.copytree(made.store, made.copy)
        return made

    @property
    def url(self) -> str:
        return f"file:{self.store}"

    def restore(self) -> str:
        """Puts back what the store held once it was filled. Returns its URL. No server may have it open."""
        shutil.rmtree(self.store)
        shutil.copytree(self.copy, self.store)
        return self.url
