"""Compose files, as Docker Compose's own library resolves them."""

import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any

from tests.packaging.dockerfile import PROJECT

FOLDER = PROJECT / "deploy" / "compose"
RESOLVER = ".tools/compose-spec"

Service = Mapping[str, Any]


def resolved(*names: str) -> Mapping[str, Service]:
    """The services of compose.yaml with these files beside it, as one project: merged, with the defaults of
    variables in place, and every short form written out. Raises `AssertionError` for files that compose would
    refuse."""
    files = [str(FOLDER / f"{name}.yaml") for name in ("compose", *names)]
    done = subprocess.run(
        [PROJECT / RESOLVER, "--format", "json", *files],
        cwd=FOLDER,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    services: Mapping[str, Service] = json.loads(done.stdout)["services"]
    return services
