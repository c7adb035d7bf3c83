"""`arco login`: by a secret, a device code and a browser, at a real issuer; what is saved, and what hostile answers and
files lead to."""

import asyncio
import base64
import json
import os
import re
import stat
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from arco_catalog.cli import saved_logins
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.login import saved_token
from arco_catalog.cli.loopback import browser_tokens
from arco_catalog.cli.oauth import Issuer, device_tokens, discover, request_tokens
from arco_catalog.cli.saved_logins import SavedLogin, forget_login, locked, login_path, read_login, write_login
from tests.cli.in_process import arco
from tests.cli.process import CompletedProcess, Server, finished, serving, start
from tests.support.login_pages import submit_forms
from tests.support.oidc_provider import OidcProvider, oidc_provider
from tests.support.served_realms import LOGINS, bootstrapped, manage

AUDIENCE = "arco-of-this-test"
TOKEN = "an-access-token"


@dataclass
class Person:
    """A user of the commands, with a folder of their own."""

    folder: Path

    async def run(self, *arguments: str, code: int = 0) -> CompletedProcess:
        ended = await arco(*arguments, XDG_CONFIG_HOME=f"{self.folder}/config")
        assert ended.code == code, ended
        return ended

    @property
    def file(self) -> Path:
        """The one saved login."""
        (found,) = (self.folder / "config/arco/logins").glob("*.json")
        return found

    @property
    def saved(self) -> SavedLogin:
        found = read_login(self.file)
        assert found is not None
        return found

    def age(self) -> None:
        """Lets the saved token expire."""
        write_login(self.file, SavedLogin(**{**json.loads(self.file.read_text()), "expires_ms": 0}))


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


class TestSecrets:
    """A client logs in with its secret."""

    async def test_the_token_is_saved_for_its_owner_and_printed_nowhere(self, person: Person) -> None:
        store = f"file:{person.folder}/lake"
        root = await bootstrapped(store)
        secret = person.folder / "secret"
        secret.write_text(f"{root.secret}\n")
        async with serving(store, "--workers", "1", "--quiet", **LOGINS) as server:
            refused = await person.run("principals", "list", "--url", server.uri, code=1)
            made = await person.run("login", server.uri, "--client-id", root.client_id, "--secret-file", str(secret))
            listed = await person.run("principals", "list", "--url", f"{server.uri}/", "--json")
            first = person.saved
            person.age()
            renewed = await person.run("principals", "list", "--url", server.uri, "--json")
            second = person.saved
            secret.unlink()
            person.age()
            failed = await person.run("principals", "list", "--url", server.uri, code=1)
            forgotten = await person.run("login", server.uri, "--forget")

        assert "arco login" in refused.err
        assert [each["name"] for each in json.loads(listed.out)] == ["root"]
        assert listed.out == renewed.out
        assert first.access_token != second.access_token
        assert "and was not renewed: the secret was not read" in failed.err
        assert [*(person.folder / "config/arco/logins").iterdir()] == []
        assert forgotten.out.startswith("Forgot the login")
        printed = "".join(each.out + each.err for each in (refused, made, listed, renewed, failed, forgotten))
        for hidden in (root.secret, first.access_token, second.access_token):
            assert hidden not in printed

    async def test_a_login_is_saved_after_the_renewal_that_is_under_way(self, person: Person) -> None:
        store = f"file:{person.folder}/lake"
        root = await bootstrapped(store)
        (person.folder / "secret").write_text(root.secret)
        async with serving(store, "--workers", "1", "--quiet", **LOGINS) as server:
            path = login_path(server.uri, {"XDG_CONFIG_HOME": f"{person.folder}/config"})
            words = ("login", server.uri, "--client-id", root.client_id, "--secret-file", f"{person.folder}/secret")
            async with locked(path):
                login = await start(*words, XDG_CONFIG_HOME=f"{person.folder}/config")
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(login.wait(), 3)
                assert not path.exists()
            assert (await finished(login)).code == 0

        assert person.saved.client_id == root.client_id

    async def test_a_wrong_secret_saves_nothing(self, person: Person) -> None:
        store = f"file:{person.folder}/lake"
        root = await bootstrapped(store)
        (person.folder / "secret").write_text("0" * 64)
        async with serving(store, "--workers", "1", "--quiet", **LOGINS) as server:
            ended = await person.run(
                "login", server.uri, "--client-id", root.client_id, "--secret-file", f"{person.folder}/secret", code=1
            )

        assert "answered: invalid_client" in ended.err
        assert not (person.folder / "config").exists()


def log_in(url: str) -> str:
    """Logs in as `ada`, confirms every form of the issuer's pages, and returns the text at the end."""

    def fill_in(form: str) -> Mapping[str, str]:
        hidden = dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form))
        return {**hidden, **({"login": "ada", "password": "x"} if 'name="login"' in form else {"confirm": "yes"})}

    return submit_forms(url, fill_in)


@asynccontextmanager
async def catalog_of_people(person: Person, issuer: OidcProvider) -> AsyncIterator[Server]:
    """A server that accepts the issuer's tokens, with the principal `ada`, who may list namespaces."""
    store = f"file:{person.folder}/lake"
    await bootstrapped(store)
    for command in (
        ("principals", "create", "ada", "--property", f"arco.subject={issuer.issuer} ada"),
        ("roles", "create", "reader"),
        ("roles", "assign", "reader", "--to", "ada"),
        ("roles", "create", "lists", "--catalog-role"),
        ("roles", "assign", "lists", "--catalog-role", "--to", "reader"),
        ("grants", "add", "lists", "NAMESPACE_LIST"),
    ):
        await manage(store, *command)
    accepts = {
        "ARCO_AUTH": "oidc",
        "ARCO_OIDC_ISSUERS": issuer.issuer,
        "ARCO_OIDC_AUDIENCES": AUDIENCE,
        "ARCO_OIDC_LOOPBACK_HTTP": "true",
    }
    async with serving(store, "--workers", "1", "--quiet", **accepts) as server:
        yield server


@pytest.mark.needs("node", "npm")
class TestPeople:
    """A person logs in at a real issuer."""

    @pytest.mark.parametrize("way", [(), ("--browser",)], ids=["by a device code", "by a browser"])
    async def test_a_person_logs_in_and_the_token_is_renewed(self, way: tuple[str, ...], person: Person) -> None:
        async with oidc_provider(AUDIENCE) as issuer, catalog_of_people(person, issuer) as server:
            arguments = ("login", server.uri, "--client-id", "arco", "--issuer", issuer.issuer, *way)
            environment = {"XDG_CONFIG_HOME": f"{person.folder}/config"}
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "arco_catalog.cli", *arguments),
                env={**os.environ, **environment},
                stderr=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            assert process.stderr is not None
            shown = (await asyncio.wait_for(process.stderr.readline(), 60)).decode()
            url = re.search(r"http://\S+", shown)
            assert url is not None, shown
            end = await asyncio.to_thread(log_in, url[0])
            out, err = await asyncio.wait_for(process.communicate(), 60)
            assert process.returncode == 0, (out, err, end)

            check = ("grants", "check", "-", "NAMESPACE_LIST", "--url", server.uri, "--json")
            first, before = json.loads((await person.run(*check)).out), person.saved
            person.age()
            second, after = json.loads((await person.run(*check)).out), person.saved

        assert first == second
        assert (first["allowed"], first["principal"]) == (True, "ada")
        assert before.access_token != after.access_token
        assert stat.S_IMODE(person.file.stat().st_mode) == 0o600
        for hidden in (before.access_token, before.refresh_token):
            assert hidden
            assert hidden not in shown + out.decode() + err.decode()


class TestFiles:
    """A login is read from a file that its owner alone may read."""

    def login(self, path: Path) -> SavedLogin:
        made = SavedLogin("https://x", "https://x/token", "id", "scope", TOKEN, 1)
        write_login(path, made)
        return made

    def test_it_is_written_for_its_owner_alone(self, tmp_path: Path) -> None:
        path = login_path("https://x/", {"XDG_CONFIG_HOME": f"{tmp_path}"})
        made = self.login(path)

        assert read_login(path) == made
        assert path == login_path("https://x", {"XDG_CONFIG_HOME": f"{tmp_path}"})
        assert [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent)] == [0o600, 0o700]
        assert [*path.parent.iterdir()] == [path]

    def test_the_folders_that_are_made_are_for_its_owner_alone(self, tmp_path: Path) -> None:
        before = os.umask(0)
        try:
            self.login(login_path("https://x", {"HOME": f"{tmp_path}"}))
        finally:
            os.umask(before)

        made = [tmp_path / name for name in (".config", ".config/arco", ".config/arco/logins")]
        assert [stat.S_IMODE(each.stat().st_mode) for each in made] == [0o700] * 3

    def test_each_server_has_its_own_below_the_folder_of_configurations(self, tmp_path: Path) -> None:
        home = {"HOME": f"{tmp_path}", "XDG_CONFIG_HOME": "relative"}

        assert login_path("https://x", home) != login_path("https://y", home)
        assert login_path("https://x", home).parent == tmp_path / ".config/arco/logins"

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
    def test_one_that_others_may_read_is_not_used(self, tmp_path: Path, mode: int) -> None:
        self.login(tmp_path / "login")
        (tmp_path / "login").chmod(mode)

        with pytest.raises(CliError, match="others may not read"):
            read_login(tmp_path / "login")

    def test_a_link_and_a_pipe_are_not_followed(self, tmp_path: Path) -> None:
        self.login(tmp_path / "login")
        (tmp_path / "link").symlink_to(tmp_path / "login")
        os.mkfifo(tmp_path / "pipe", 0o600)

        for name in ("link", "pipe"):
            with pytest.raises(CliError):
                read_login(tmp_path / name)

    @pytest.mark.parametrize("content", ["", "[]", "{}", '{"url": 1}', "{" * 500_000])
    def test_what_is_no_login_is_refused(self, tmp_path: Path, content: str) -> None:
        (tmp_path / "login").write_text(content)
        (tmp_path / "login").chmod(0o600)

        with pytest.raises(CliError, match="has no login"):
            read_login(tmp_path / "login")

    def test_without_a_file_there_is_no_login(self, tmp_path: Path) -> None:
        assert read_login(tmp_path / "login") is None


@asynccontextmanager
async def answering(answers: Mapping[str, str]) -> AsyncIterator[str]:
    """A server that gives each path its answer, in raw HTTP, and its address."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        writer.write(answers[head.split()[1]].encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def response(body: object, status: str = "200 OK", headers: str = "") -> str:
    text = body if isinstance(body, str) else json.dumps(body)
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(text)}\r\nconnection: close\r\n{headers}\r\n{text}"


class TestHostileIssuers:
    """An issuer is not believed further than it must be."""

    @pytest.mark.parametrize(
        ("answer", "problem"),
        [
            (response({}, "302 Found", "location: http://127.0.0.1:1/x\r\n"), "redirects"),
            (response("x" * 70_000), "no complete answer"),
            (response("no JSON"), "no bearer token"),
            (response({"access_token": "a\r\nb", "token_type": "bearer"}), "no bearer token"),
            (response({"access_token": "a" * 17_000, "token_type": "bearer"}), "no bearer token"),
            (response({"access_token": TOKEN, "token_type": "mac"}), "no bearer token"),
            (
                response({"access_token": TOKEN, "token_type": "bearer", "expires_in": "1.5"}),
                "no whole number of seconds",
            ),
            (
                response({"access_token": TOKEN, "token_type": "bearer", "expires_in": "²"}),
                "no whole number of seconds",
            ),
            (
                response({"access_token": TOKEN, "token_type": "bearer", "expires_in": True}),
                "no whole number of seconds",
            ),
            (response({"access_token": TOKEN, "token_type": "bearer", "refresh_token": "a b\n"}), "refresh token"),
            (response({"error": "x\x1b[2J", "error_description": "y" * 900}, "400 Bad Request"), "answered: x"),
        ],
    )
    async def test_a_wrong_answer_to_a_request_for_tokens_is_refused(self, answer: str, problem: str) -> None:
        async with answering({"/token": answer}) as url:
            with pytest.raises(CliError, match=problem) as refused:
                await request_tokens(f"{url}/token", {"grant_type": "x", "client_secret": "hidden"})

        assert "hidden" not in str(refused.value)
        assert str(refused.value).isprintable()
        assert len(str(refused.value)) < 1_000

    @pytest.mark.parametrize("lifetime", [10**15, "1" * 4_000])
    async def test_a_lifetime_is_bounded(self, lifetime: object) -> None:
        right = {"access_token": TOKEN, "token_type": "Bearer", "expires_in": lifetime}
        async with answering({"/token": response(right)}) as url:
            tokens = await request_tokens(f"{url}/token", {})

        assert tokens.expires_ms < 10**13

    async def test_a_lifetime_may_be_digits_in_a_string(self) -> None:
        """As old versions of Entra ID have it."""
        answered = {"access_token": TOKEN, "token_type": "Bearer"}
        async with answering(
            {
                "/number": response({**answered, "expires_in": 3_600}),
                "/text": response({**answered, "expires_in": "3600"}),
            }
        ) as url:
            as_number, as_text = [(await request_tokens(f"{url}/{each}", {})).expires_ms for each in ("number", "text")]

        assert 0 <= as_text - as_number < 60_000

    @pytest.mark.parametrize(
        ("document", "problem"),
        [
            ({"issuer": "https://other", "token_endpoint": "https://other/token"}, "of another issuer"),
            ({"token_endpoint": "ftp://x/token"}, "not allowed"),
            ({"token_endpoint": "http://example.com/token"}, "not allowed"),
            ({"token_endpoint": "https://x/token", "authorization_endpoint": "javascript:x"}, "not allowed"),
            ({}, "no token endpoint"),
        ],
    )
    async def test_a_wrong_discovery_document_is_refused(self, document: dict[str, str], problem: str) -> None:
        answers: dict[str, str] = {}
        async with answering(answers) as url:
            answers["/.well-known/openid-configuration"] = response({"issuer": url, **document})
            with pytest.raises(CliError, match=problem):
                await discover(url)

    async def test_a_device_code_is_polled_for_a_bounded_time(self) -> None:
        device = {"device_code": "d", "user_code": "u\x1b[2J", "verification_uri": "https://x/\x1b[2J", "interval": 0}
        pending = response({"error": "slow_down"}, "400 Bad Request")
        waited: list[float] = []
        shown: list[str] = []

        async def sleep(seconds: float) -> None:
            waited.append(seconds)

        async with answering({"/device": response({**device, "expires_in": 10**9}), "/token": pending}) as url:
            issuer = Issuer(url, f"{url}/token", f"{url}/device", "")
            with pytest.raises(CliError, match="not confirmed in time"):
                await device_tokens(issuer, "arco", "", shown.append, sleep, os.urandom)

        assert (waited[:2], sum(waited) < 2_000, len(waited) < 40) == ([1, 6], True, True)
        assert [text.isprintable() for text in shown] == [True]

    async def test_a_user_has_the_lifetime_of_the_code_however_long_the_polls_take(self) -> None:
        device = {"device_code": "d", "user_code": "u", "verification_uri": "https://x/", "expires_in": 1}

        async def sleep(seconds: float) -> None:
            await asyncio.sleep(3_600)

        async with answering({"/device": response(device)}) as url, asyncio.timeout(60):
            with pytest.raises(CliError, match="not confirmed in time"):
                await device_tokens(
                    Issuer(url, "", f"{url}/device", ""), "arco", "", lambda text: None, sleep, os.urandom
                )

    @pytest.mark.parametrize("lost", ["", response("{}", "503 Service Unavailable"), response("{}", "500 Failed")])
    async def test_polls_without_an_answer_are_repeated_after_twice_the_time(self, lost: str) -> None:
        device = {"device_code": "d", "user_code": "u", "verification_uri": "https://x/"}
        right = response({"access_token": TOKEN, "token_type": "bearer"})
        answers = {"/device": response(device), "/token": lost}
        waited: list[float] = []

        async def sleep(seconds: float) -> None:
            waited.append(seconds)
            answers["/token"] = right if len(waited) == 3 else lost

        async with answering(answers) as url:
            issuer = Issuer(url, f"{url}/token", f"{url}/device", "")
            tokens = await device_tokens(issuer, "arco", "", lambda text: None, sleep, os.urandom)

        assert (tokens.access_token, waited) == (TOKEN, [5, 10, 20])


class TestRenewals:
    """A renewed token takes the place of the login that it renews, and of no other."""

    async def renewed(self, folder: Path, meanwhile: Callable[[Path], object]) -> tuple[str | None, SavedLogin | None]:
        """The token that a command sends, and the saved login after it, if the user does something while the issuer
        answers."""
        environment = {"XDG_CONFIG_HOME": f"{folder}"}
        path = login_path("https://x", environment)

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            meanwhile(path)
            writer.write(response({"access_token": "renewed", "token_type": "bearer"}).encode())
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        async with server:
            endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/token"
            write_login(path, SavedLogin("https://x", endpoint, "id", "scope", TOKEN, 1, "a-refresh-token"))
            return await saved_token("https://x", environment), read_login(path)

    async def test_it_is_saved(self, tmp_path: Path) -> None:
        token, saved = await self.renewed(tmp_path, lambda path: None)

        assert saved is not None
        assert (token, saved.access_token) == ("renewed", "renewed")

    async def test_a_login_that_was_forgotten_meanwhile_stays_forgotten(self, tmp_path: Path) -> None:
        assert await self.renewed(tmp_path, forget_login) == ("renewed", None)

    async def test_another_login_that_was_made_meanwhile_is_used_and_kept(self, tmp_path: Path) -> None:
        other = SavedLogin("https://x", "https://x/token", "id", "scope", "another", 10**15)

        assert await self.renewed(tmp_path, lambda path: write_login(path, other)) == ("another", other)

    async def test_of_two_commands_at_once_one_renews_it_for_both(self, tmp_path: Path) -> None:
        environment = {"XDG_CONFIG_HOME": f"{tmp_path}"}
        path = login_path("https://x", environment)
        requests: list[str] = []

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            requests.append("refresh")
            await asyncio.sleep(0.2)  # for the other to come
            writer.write(response({"access_token": f"renewed-{len(requests)}", "token_type": "bearer"}).encode())
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        async with server:
            endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/token"
            write_login(path, SavedLogin("https://x", endpoint, "id", "scope", TOKEN, 1, "a-refresh-token"))
            tokens = await asyncio.gather(*(saved_token("https://x", environment) for _ in range(2)))

        assert (tokens, requests) == (["renewed-1"] * 2, ["refresh"])

    async def test_another_command_that_renews_it_for_long_is_one_clear_line(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(saved_logins, "LOCK_S", 0.05)
        environment = {"XDG_CONFIG_HOME": f"{tmp_path}"}
        path = login_path("https://x", environment)
        write_login(path, SavedLogin("https://x", "https://x/token", "id", "scope", TOKEN, 1, "a-refresh-token"))

        async with saved_logins.locked(path):
            with pytest.raises(CliError, match="another command renews the login"):
                await saved_token("https://x", environment)

    async def test_a_login_at_another_server_is_not_sent(self, tmp_path: Path) -> None:
        environment = {"XDG_CONFIG_HOME": f"{tmp_path}"}
        write_login(
            login_path("https://x", environment), SavedLogin("https://y", "https://y/t", "id", "", TOKEN, 10**15)
        )

        with pytest.raises(CliError, match="is of another server") as refused:
            await saved_token("https://x/", environment)

        assert TOKEN not in str(refused.value)


class TestTextsInFiles:
    """A secret or token that can't be whole is refused in one clear line."""

    @pytest.mark.parametrize(
        ("content", "problem"),
        [(b"\xff", "is not UTF-8 text"), (b"x" * 4_097, "has more than 4,096 bytes")],
        ids=["no text", "too long"],
    )
    async def test_of_secrets(self, person: Person, content: bytes, problem: str) -> None:
        file = person.folder / "secret"
        file.write_bytes(content)

        ended = await person.run("login", "http://127.0.0.1:1", "--client-id", "x", "--secret-file", str(file), code=1)

        assert ended.err == f"arco: the secret was not read: {file} {problem}\n"

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (b"\xff", "is not UTF-8 text"),
            (b"x" * 65_537, "has more than 65,536 bytes"),
        ],
        ids=["no text", "too long"],
    )
    async def test_of_tokens(self, person: Person, content: bytes, problem: str) -> None:
        file = person.folder / "token"
        file.write_bytes(content)

        ended = await person.run("principals", "list", "--url", "http://127.0.0.1:1", "--token-file", str(file), code=1)

        assert ended.err == f"arco: the token was not read: {file} {problem}\n"


class TestCallbacks:
    """The port of a login by a browser takes one answer: the right one."""

    async def log_in(self, answers: list[dict[str, str]], url: str) -> list[int]:
        """Starts a login, and brings it these answers after the right ones of state; the statuses."""
        issuer = Issuer(url, f"{url}/token", "", f"{url}/auth")
        shown: asyncio.Queue[str] = asyncio.Queue()
        task = asyncio.create_task(browser_tokens(issuer, "arco", "openid", shown.put_nowait, os.urandom))
        query = parse_qs(urlsplit((await shown.get()).removeprefix("Open ")).query)
        redirect, state = query["redirect_uri"][0], query["state"][0]
        assert query["code_challenge_method"] == ["S256"]
        statuses, self.pages = [], list[str]()
        for answer in answers:
            sent = {name: state if value == "STATE" else value for name, value in answer.items()}
            status, page = await asyncio.to_thread(answer_of, f"{redirect}?{urlencode(sent)}")
            statuses.append(status)
            self.pages.append(page)
        await task
        return statuses

    async def test_only_an_answer_with_the_state_counts(self) -> None:
        right = {"access_token": TOKEN, "token_type": "bearer"}
        async with answering({"/token": response(right)}) as url:
            statuses = await self.log_in(
                [{"code": "x"}, {"code": "x", "state": "wrong"}, {"code": "x", "state": "STATE"}], url
            )

        assert statuses == [400, 400, 200]

    @pytest.mark.parametrize(
        ("answer", "problem"),
        [
            ({"state": "STATE", "error": "access_denied"}, "answered: access_denied"),
            ({"state": "STATE", "code": "x", "iss": "https://other"}, "of another issuer"),
        ],
    )
    async def test_a_refusal_and_an_answer_of_another_issuer_end_the_login(
        self, answer: dict[str, str], problem: str
    ) -> None:
        async with answering({}) as url:
            with pytest.raises(CliError, match=problem):
                await self.log_in([answer], url)

        [page] = self.pages
        assert "You are logged in" not in page
        assert ("You are not logged in" in page) == ("error" in answer)

    @pytest.mark.parametrize("claims", ['{"iss":"https://other"}', "no JSON", "nonce"])
    async def test_an_id_token_of_another_login_is_refused(self, claims: str) -> None:
        answers: dict[str, str] = {}
        async with answering(answers) as url:
            text = json.dumps({"iss": url, "aud": "arco", "nonce": "other"}) if claims == "nonce" else claims
            token = f"x.{base64.urlsafe_b64encode(text.encode()).decode().rstrip('=')}.x"
            answers["/token"] = response({"access_token": TOKEN, "token_type": "bearer", "id_token": token})
            with pytest.raises(CliError, match="ID token"):
                await self.log_in([{"state": "STATE", "code": "x"}], url)


def answer_of(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return int(answer.status), answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
