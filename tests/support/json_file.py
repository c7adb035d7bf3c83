"""A file of JSON that a long run keeps its progress in."""

import json
from pathlib import Path


def write_json(path: Path, document: object) -> None:
    """Replaces the file at once: a run that is stopped meanwhile finds the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps(document, indent=1))
    unfinished.replace(path)
