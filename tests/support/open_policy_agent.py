"""Open Policy Agent itself, as a server with the policy that docs/opa.md shows."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.support.environment import PROJECT
from tools.support.server_process import listening

PROGRAM = ".tools/opa"


def documented_policy() -> str:
    """The policy on the page."""
    [policy] = re.findall(r"(?s)```rego\n(.*?)```", (PROJECT / "docs" / "opa.md").read_text())
    return str(policy)


@contextmanager
def open_policy_agent(policy: str | None = None) -> Iterator[str]:
    """Runs OPA with a policy, by default that on the page, on a free port, and yields its URI."""

    def command(port: int, folder: Path) -> Sequence[str | Path]:
        file = folder / "policy.rego"
        file.write_text(documented_policy() if policy is None else policy)
        return [PROJECT / PROGRAM, "run", "--server", "--addr", f"127.0.0.1:{port}", "--disable-telemetry", file]

    with listening(command) as uri:
        yield uri
