"""Saves the logins that `arco login` makes: one file for each server, which its owner alone may read or write."""

import asyncio
import hashlib
import os
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from arco_catalog.cli.errors import CliError, describe_os_error
from arco_catalog.cli.small_files import replace_file
from arco_catalog.iceberg.json import MalformedJson, dumps, loads
from arco_catalog.state.runtime import SystemRuntime
from storage_backends.local.files import try_lock

MAX_BYTES = 256 << 10
"""Maximum size of a file."""
LOCK_S = 60.0
"""How long a command waits for another that renews the login: longer than a renewal takes."""
LOCK_POLL_S = 0.05
OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class SavedLogin:
    """The login at the server `url`: an access token, when it expires in milliseconds since 1970, and how another one
    is requested. That is by the refresh token, or else by the client secret in the file `secret_file`; with neither, by
    the user. `client_id` requests tokens at `token_endpoint`."""

    url: str
    token_endpoint: str
    client_id: str
    scope: str
    access_token: str
    expires_ms: int
    refresh_token: str = ""
    secret_file: str = ""


def login_path(url: str, environment: Mapping[str, str]) -> Path:
    """Returns the file with the login at a server: in the folder `arco/logins` of `XDG_CONFIG_HOME`, or of `~/.config`
    if that is not set or relative."""
    home = environment.get("XDG_CONFIG_HOME", "")
    config = Path(home) if os.path.isabs(home) else Path(environment.get("HOME") or Path.home()) / ".config"
    return config / "arco" / "logins" / f"{hashlib.sha256(url.rstrip('/').encode()).hexdigest()[:32]}.json"


def read_login(path: Path) -> SavedLogin | None:
    """Returns the login in a file, None if the file does not exist. Raises `CliError` if others than its owner, who
    must be the user, have any permission for it, if it is no regular file or can't be read, and if it has no login."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CliError(f"the login was not read: {describe_os_error(error)}") from error
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & OTHERS:
            raise CliError(
                f"the login in {path} was not used: it must be a regular file of yours that others may not "
                "read, write or execute; remove it, and log in again"
            )
        body = file.read(MAX_BYTES)
    try:
        document = loads(body)
        fields = document if isinstance(document, dict) else {}
        login = SavedLogin(**fields)  # type: ignore[arg-type] # the next line checks the types
        if not all(isinstance(value, int if name == "expires_ms" else str) for name, value in asdict(login).items()):
            raise TypeError
    except (MalformedJson, TypeError) as error:
        raise CliError(f"the file {path} has no login: remove it, and log in again") from error
    return login


def write_login(path: Path, login: SavedLogin) -> None:
    """Writes a login to a file with mode 0600, in place of the one that is there, all or nothing, and makes its folder
    as `_make_folder` does. Raises `CliError`."""
    try:
        _make_folder(path)
        replace_file(path, dumps({**asdict(login)}), 0o600)
    except OSError as error:
        raise CliError(f"the login was not saved: {describe_os_error(error)}") from error


def _make_folder(path: Path) -> None:
    """Makes the folder of a login and the two around it with mode 0700; existing ones keep their mode. Raises
    `OSError`."""
    for folder in reversed(path.parents[:3]):  # with `parents`, mkdir gives the mode to the last one alone
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


@asynccontextmanager
async def locked(path: Path) -> AsyncIterator[None]:
    """Holds the lock of the login at `path`, a file beside it, against every other command; makes their folder. The end
    of a process releases it. Raises `CliError` if another command holds it for `LOCK_S`, or the file can't be
    opened."""
    try:
        _make_folder(path)
        descriptor = os.open(_lock_path(path), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise CliError(f"the login was not locked: {describe_os_error(error)}") from error
    try:
        await _lock(descriptor, path)
        yield
    finally:
        os.close(descriptor)


async def _lock(descriptor: int, path: Path) -> None:
    """Takes the lock of the login at `path` by its lock file, open as `descriptor`, and waits for it up to `LOCK_S`.
    Raises `CliError` if another command holds it longer."""
    runtime = SystemRuntime()
    try:
        async with asyncio.timeout(LOCK_S):
            while not try_lock(descriptor):
                await runtime.sleep(LOCK_POLL_S)
    except TimeoutError as error:
        raise CliError(f"another command renews the login in {path} for over {LOCK_S:.0f} s: try again") from error


def _lock_path(path: Path) -> Path:
    """Returns the path of the lock file of the login at `path`: with the ending `.lock` in place of the other."""
    return path.with_suffix(".lock")


def forget_login(path: Path) -> bool:
    """Deletes a login and its lock, and returns whether there was a login. Raises `CliError`."""
    try:
        _lock_path(path).unlink(missing_ok=True)
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CliError(f"the login was not removed: {describe_os_error(error)}") from error
    return True
