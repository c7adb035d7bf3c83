"""`arco pipeline run`: which options belong to which job, checked before Spark starts."""

from pathlib import Path

import pytest

from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.pipeline import Connection, arguments, logged_in
from arco_catalog.cli.saved_logins import SavedLogin, login_path, write_login
from arco_catalog.state.runtime import SystemRuntime
from tests.cli.in_process import arco


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["reconcile", "--dry-run"],
            "--dry-run, --max-bytes, --minutes, --jars and --no-vended-credentials are of maintain",
        ),
        (["fsck", "--delete"], "--delete and --seconds are of collect"),
        (["reconcile", "--after", "db.t"], "--table and --after are of fsck"),
        (["maintain", "--uri", "http://127.0.0.1:1", "--table", "db.t"], "--table and --after are of fsck"),
        (["compact"], "compact needs --uri"),
        (["fsck", "--uri", "http://127.0.0.1:1"], "--uri and --credential-file are of compact and maintain"),
    ],
)
async def test_an_option_of_another_job_is_refused(tmp_path: Path, words: list[str], message: str) -> None:
    ended = await arco("pipeline", "run", *words, "--store", tmp_path.as_uri())

    assert ended.code == 2
    assert message in ended.err


async def test_a_check_of_what_is_not_there_is_reported(tmp_path: Path) -> None:
    ended = await arco("pipeline", "run", "fsck", "--store", tmp_path.as_uri(), "--warehouse", "none")

    assert ended.code == 2
    assert "there is no warehouse 'none'" in ended.err


URI = "http://127.0.0.1:8181"


def save_login(folder: Path, expires_ms: int, secret_file: str = "") -> dict[str, str]:
    """Saves a login, and returns the environment in which commands find it."""
    environment = {"XDG_CONFIG_HOME": str(folder)}
    login = SavedLogin(URI, f"{URI}/v1/oauth/tokens", "id", "scope", "a-token", expires_ms, "", secret_file)
    write_login(login_path(URI, environment), login)
    return environment


def in_minutes(minutes: int) -> int:
    return SystemRuntime().now_ms() + minutes * 60_000


@pytest.mark.parametrize("minutes", [60, 10])
def test_a_job_gets_the_token_of_the_saved_login_in_a_file_of_the_user_that_goes_at_the_end(
    tmp_path: Path, minutes: int
) -> None:
    """Also one that is valid for few minutes, and can't be renewed."""
    environment = save_login(tmp_path, in_minutes(minutes))

    with logged_in(Connection(f"{URI}/"), environment) as connected:
        assert connected is not None
        words = arguments(CatalogOptions("file:///x", "arco"), "compact", connected, "local")
        file = Path(words[words.index("--token-file") + 1])
        assert file.read_text() == "a-token"
        assert file.parent.stat().st_mode & 0o777 == 0o700
        assert not any("a-token" in word for word in words)
    assert not file.exists()


def test_a_saved_login_that_has_expired_and_cannot_be_renewed_is_reported(tmp_path: Path) -> None:
    environment = save_login(tmp_path, in_minutes(-1))

    with pytest.raises(CliError, match="and was not renewed"), logged_in(Connection(URI), environment):
        pass


def test_a_credential_file_goes_before_a_saved_login_and_without_either_there_is_no_token(tmp_path: Path) -> None:
    environment = save_login(tmp_path, in_minutes(60))

    for connection in (Connection(URI, "file"), Connection("http://127.0.0.1:1"), None):
        with logged_in(connection, environment) as connected:
            assert connected == connection
