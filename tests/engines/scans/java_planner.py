"""Iceberg's own scan planner in one JVM that lives as long as a test run: tools/javaclient/Planner.java."""

import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from arco_catalog.iceberg.json import JsonValue
from tests.engines.java_client import class_path
from tools.demo.engines import PROJECT
from tools.demo.java import java_home

RELEASE = "1.11.0"
SOURCES = ("LocalFiles.java", "Planner.java", "RowFilter.java", "Rows.java", "Tables.java")
LIMIT_S = 240.0


@dataclass(frozen=True)
class JavaPlanner:
    """Requests are answered one after the other."""

    process: subprocess.Popen[str]

    def answer(self, request: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """The answer's JSON, which has `error` where Java threw. Raises `RuntimeError` if the JVM has ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the JVM ended: {self.process.wait(LIMIT_S)}")
        answer: dict[str, JsonValue] = json.loads(line)
        return answer


@contextmanager
def java_planner() -> Iterator[JavaPlanner]:
    with tempfile.TemporaryDirectory(prefix="arco-planner-") as folder:
        path = class_path(RELEASE)
        sources: Sequence[Path] = [PROJECT / "tools" / "javaclient" / name for name in SOURCES]
        subprocess.run(
            [java_home() / "bin" / "javac", "-cp", path, "-d", folder, *sources], check=True, timeout=LIMIT_S
        )
        command = [str(java_home() / "bin" / "java"), "-Xmx512m", "-cp", f"{folder}:{path}", "Planner"]
        with (
            (Path(folder) / "stderr").open("wb") as errors,
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as process,
        ):
            try:
                yield JavaPlanner(process)
            finally:
                process.kill()
