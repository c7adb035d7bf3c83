"""Programs of tools/javaclient, which use Iceberg's Java library: compiled, and run in a JVM."""

import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyspark

from arco_catalog.iceberg.json import JsonValue
from tools.demo.java import java_home
from tools.support.environment import PROJECT

COMPILE_S = 240.0
END_S = 240.0


def runtime_jar(version: str) -> Path:
    """All of Iceberg but Hadoop, which PySpark has. Raises `LookupError` if it is not there."""
    jar = PROJECT / ".jars" / f"iceberg-spark-runtime-4.1_2.13-{version}.jar"
    if not jar.exists():
        raise LookupError(f"no {jar.name} in .jars: `make jars` and `make test` fetch it")
    return jar


def class_path(version: str) -> str:
    """Iceberg, and of PySpark Hadoop. Raises `LookupError` as `runtime_jar` does."""
    return f"{runtime_jar(version)}:{Path(pyspark.__file__).parent / 'jars' / '*'}"


def compile_programs(names: Sequence[str], version: str, folder: Path | str) -> None:
    """Compiles sources into a folder. Raises `LookupError` without a JDK or Iceberg's jar."""
    sources = [str(PROJECT / "tools" / "javaclient" / name) for name in names]
    javac = str(java_home() / "bin" / "javac")
    subprocess.run([javac, "-cp", class_path(version), "-d", str(folder), *sources], check=True, timeout=COMPILE_S)


@dataclass(frozen=True)
class JavaProgram:
    """A program in a JVM that reads a line of JSON, and answers it by another one."""

    process: subprocess.Popen[str]
    errors: Path
    """The file with what it prints to its standard error."""

    def answer(self, request: Mapping[str, JsonValue]) -> Any:
        """Returns the JSON of the answer. Raises `RuntimeError` if the JVM has ended."""
        _pipe(self.process.stdin).write(json.dumps(request) + "\n")
        _pipe(self.process.stdin).flush()
        return json.loads(self.read_line())

    def read_line(self) -> str:
        """Returns the next line that the program prints. Raises `RuntimeError` if the JVM has ended."""
        line = _pipe(self.process.stdout).readline()
        if not line:
            raise RuntimeError(f"the JVM ended with {self.process.wait(END_S)}: {self.errors.read_text()[-2000:]}")
        return line


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


@contextmanager
def running(
    folder: Path, version: str, program: str, *arguments: str, options: Sequence[str] = ()
) -> Iterator[JavaProgram]:
    """Runs a program that was compiled into a folder, where `stderr` has its errors. The JVM ends with the context."""
    path = f"{folder}:{class_path(version)}"
    command = [str(java_home() / "bin" / "java"), *options, "-cp", path, program, *arguments]
    with (
        (folder / "stderr").open("wb") as errors,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            yield JavaProgram(process, folder / "stderr")
        finally:
            process.kill()


@contextmanager
def compiled_and_running(
    names: Sequence[str], version: str, program: str, *, options: Sequence[str] = ()
) -> Iterator[JavaProgram]:
    """Compiles sources into a folder that goes with the context, and runs a program of them. Raises `LookupError`
    without a JDK or Iceberg's jar."""
    with tempfile.TemporaryDirectory(prefix="arco-java-") as folder:
        compile_programs(names, version, folder)
        with running(Path(folder), version, program, options=options) as found:
            yield found
