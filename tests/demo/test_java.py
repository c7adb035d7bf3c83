"""Which JDK the demo gives to Spark."""

import os
from pathlib import Path

import pytest

from tools.demo import java


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with JDK 25 as its default and nothing else that can be found."""
    monkeypatch.setattr(java, "_INSTALLED", ((tmp_path, "*"),))
    for name in [name for name in os.environ if name.startswith("JAVA_HOME_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("JAVA_HOME", str(jdk(tmp_path / "a-default", "25.0.3")))
    monkeypatch.setenv("PATH", str(tmp_path / "a-default" / "bin"))
    return tmp_path


def jdk(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch(mode=0o755)
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


def test_a_supported_jdk_is_found_behind_an_unsupported_default(installed: Path) -> None:
    seventeen = jdk(installed / "b", "17.0.15")

    assert java.java_home() == seventeen


def test_17_is_taken_before_21(installed: Path) -> None:
    jdk(installed / "b", "21.0.2")
    seventeen = jdk(installed / "c", "17")

    assert java.java_home() == seventeen


def test_java_home_is_taken_first_where_it_will_do(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jdk(installed / "b", "17.0.1")
    named = jdk(installed / "named", "17.0.2")
    monkeypatch.setenv("JAVA_HOME", str(named))

    assert java.java_home() == named


def test_a_jdk_is_found_by_the_variable_of_its_version(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = jdk(installed.parent / "tools" / "17", "17.0.2")
    monkeypatch.setenv("JAVA_HOME_17_X64", str(named))

    assert java.java_home() == named


def test_without_a_supported_jdk_the_demo_says_what_it_needs(installed: Path) -> None:
    with pytest.raises(LookupError, match="Spark needs JDK 17"):
        java.java_home()
