"""`arco delegation-service`: who is let in, by real tokens and real certificates, and purges between processes."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog import load_catalog

from tests.cli.in_process import arco
from tests.cli.metrics_page import scrape
from tests.cli.process import TIMEOUT_SECONDS, Server, running, serving
from tests.support.certificates import Authority
from tests.support.foreign_tables import files, foreign_table
from tests.support.served_realms import LOGINS, bootstrapped
from tools.support.ports import free_port

EXECUTE = "/tasks/execute/synchronous"
ROLES = "/api/management/v1/principal-roles"


@asynccontextmanager
async def delegation_service(store: str, *options: str, **environment: str) -> AsyncIterator[Server]:
    arguments = ("delegation-service", "--store", store, "--port", "0", *options)
    async with running(*arguments, **environment) as server:
        yield server


async def call(
    uri: str,
    body: object = None,
    *,
    token: str | None = None,
    tls: ssl.SSLContext | None = None,
    method: str | None = None,
) -> tuple[int, Any]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as client:
        verb = method or ("GET" if body is None else "POST")
        async with client.request(verb, uri, json=body, headers=headers, ssl=tls or True) as got:
            text = await got.text()
            return got.status, json.loads(text) if text else None


async def token_of(server: Server, client_id: str, secret: str, scope: str) -> tuple[int, Any]:
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret, "scope": scope}
    async with aiohttp.ClientSession() as client, client.post(f"{server.uri}/v1/oauth/tokens", data=form) as got:
        return got.status, await got.json()


async def test_tokens_of_the_scope_for_tasks_are_let_in_and_no_others(tmp_path: Path) -> None:
    store, theirs = f"file:{tmp_path}/store", tmp_path / "theirs"
    root = await bootstrapped(store)
    tables = [foreign_table(theirs, name) for name in ("first", "second")]
    options = ("--delegation-location", f"file:{theirs}", "--delegation-realm", "theirs")
    async with (
        serving(store, "--workers", "1", **LOGINS) as catalog,
        delegation_service(store, *options, **LOGINS) as service,
    ):
        assert (await call(f"{service.uri}/tasks"))[0] == 401
        assert (await call(f"{service.uri}/tasks", token="no.token.atall"))[0] == 401
        _, all_roles = await token_of(catalog, root.client_id, root.secret, "PRINCIPAL_ROLE:ALL")
        refused = await call(f"{service.uri}{EXECUTE}", tables[0].payload(), token=all_roles["access_token"])
        assert (refused[0], refused[1]["error_code"]) == (403, "FORBIDDEN")
        status, report = await token_of(catalog, root.client_id, root.secret, "execute_tasks")
        assert (status, report["error"]) == (400, "invalid_scope")

        manages = all_roles["access_token"]
        role = {"principalRole": {"name": "execute_tasks"}}
        mine = f"{catalog.uri}/api/management/v1/principals/root/principal-roles"
        assert (await call(catalog.uri + ROLES, role, token=manages))[0] == 201
        assert (await call(mine, role, token=manages, method="PUT"))[0] == 201
        status, report = await token_of(catalog, root.client_id, root.secret, "execute_tasks")
        assert (status, report["scope"]) == (200, "execute_tasks")
        executes = report["access_token"]

        status, done = await call(f"{service.uri}{EXECUTE}", tables[0].payload(), token=executes)
        assert (status, done["status"]) == (200, "COMPLETED_SUCCESS")
        assert tables[0].files() == []
        assert (await call(f"{catalog.uri}/v1/arco/namespaces", token=executes))[0] == 404  # it activates no role
        assert (await call(f"{mine}/execute_tasks", token=manages, method="DELETE"))[0] == 204
        status, refused_now = await call(f"{service.uri}{EXECUTE}", tables[1].payload(), token=executes)
        assert (status, refused_now["error_code"]) == (403, "FORBIDDEN")
        assert len(tables[1].files()) > 0


async def test_a_page_of_metrics_has_its_requests_and_how_purges_ended(tmp_path: Path) -> None:
    theirs, port = tmp_path / "theirs", free_port()
    kept = foreign_table(theirs, "kept", properties={"gc.enabled": "false"})
    options = ("--delegation-location", f"file:{theirs}", "--delegation-realm", "theirs", "--metrics-port", str(port))
    async with delegation_service(f"file:{tmp_path}/store", *options) as service:
        assert (await scrape(port))["arco_delegation_tasks_total"] == {
            ("succeeded",): 0,
            ("failed",): 0,
            ("stopped",): 0,
            ("lost",): 0,
        }
        assert (await call(f"{service.uri}{EXECUTE}", foreign_table(theirs, "first").payload()))[0] == 200
        assert (await call(f"{service.uri}{EXECUTE}", kept.payload()))[0] == 500
        assert (await call(f"{service.uri}/tasks"))[0] == 200
        found = await scrape(port)
        ended = await service.stop()

    assert found["arco_delegation_tasks_total"] == {("succeeded",): 1, ("failed",): 1, ("stopped",): 0, ("lost",): 0}
    assert found["arco_delegation_task_duration_seconds_count"] == {(): 2}
    assert found["arco_delegation_tasks_running"] == {(): 0}
    assert found["arco_requests_total"] == {
        ("other", "executeSynchronousTask", "2xx"): 1,
        ("other", "executeSynchronousTask", "5xx"): 1,
        ("other", "listTasks", "2xx"): 1,
    }
    assert found["arco_workers"] == {(): 1}
    assert f"Metrics for Prometheus are at http://127.0.0.1:{port}/metrics\n" in ended.out


def context(authority: Authority, shown: tuple[Path, Path] | None) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=str(authority.file))
    if shown is not None:
        made.load_cert_chain(*shown)
    return made


async def test_certificates_of_the_right_authority_are_let_in_and_no_others(tmp_path: Path) -> None:
    right, wrong = (Authority.make(tmp_path / f"{name}.pem", name) for name in ("right", "wrong"))
    certificate, key = right.issue(tmp_path, "server", address="127.0.0.1")
    polaris, other = (right.issue(tmp_path, name) for name in ("polaris", "other"))
    nameless = right.issue(tmp_path, "nameless", uri="spiffe://example.org/catalog")
    stranger, selfmade = wrong.issue(tmp_path, "polaris-of-others"), wrong.issue(tmp_path, "polaris2")
    theirs = tmp_path / "theirs"
    tables = [foreign_table(theirs, name) for name in ("first", "second")]
    options = (
        *("--tls-cert", str(certificate), "--tls-key", str(key), "--tls-client-ca", str(right.file)),
        *("--delegation-location", f"file:{theirs}", "--delegation-realm", "theirs", "--host", "0.0.0.0"),
    )
    async with delegation_service(f"file:{tmp_path}/store", *options) as service:
        port = service.uri.split(":")[2].partition("/")[0]
        uri = f"https://127.0.0.1:{port}/delegation-service/api/v1"
        for shown in (None, stranger, selfmade):
            with pytest.raises(aiohttp.ClientError):
                await call(f"{uri}{EXECUTE}", tables[0].payload(), tls=context(right, shown))
        assert len(tables[0].files()) > 0

        status, done = await call(f"{uri}{EXECUTE}", tables[0].payload(), tls=context(right, polaris))
        assert (status, done["status"]) == (200, "COMPLETED_SUCCESS")
        assert tables[0].files() == []
        task = f"{uri}/tasks/{done['delegation_task_id']}"
        assert (await call(task, tls=context(right, polaris)))[0] == 200
        assert (await call(task, tls=context(right, other)))[0] == 404
        assert (await call(f"{uri}/tasks", tls=context(right, other)))[1] == {"tasks": []}
        status, done = await call(f"{uri}{EXECUTE}", tables[1].payload(), tls=context(right, nameless))
        assert status == 200
        _, shown_task = await call(f"{uri}/tasks/{done['delegation_task_id']}", tls=context(right, nameless))
        assert json.loads(shown_task["task_payload"])["submitted_by"] == "URI=spiffe://example.org/catalog"


async def test_a_catalog_requires_certificates_too(tmp_path: Path) -> None:
    right, wrong = (Authority.make(tmp_path / f"{name}.pem", name) for name in ("right", "wrong"))
    certificate, key = right.issue(tmp_path, "server", address="127.0.0.1")
    options = ("--tls-cert", str(certificate), "--tls-key", str(key), "--tls-client-ca", str(right.file), "--quiet")
    async with serving("memory:", *options) as server:
        for shown in (None, wrong.issue(tmp_path, "stranger")):
            with pytest.raises(aiohttp.ClientError):
                await call(f"{server.uri}/v1/config", tls=context(right, shown))
        assert (await call(f"{server.uri}/v1/config", tls=context(right, right.issue(tmp_path, "client"))))[0] == 200


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--host", "0.0.0.0"), "by --auth, or certificates of clients by --tls-client-ca"),
        (("--host", "0.0.0.0", "--auth", "none"), "by --auth, or certificates of clients by --tls-client-ca"),
        (("--tls-client-ca", "/nowhere"), "TLS takes both --tls-cert and --tls-key"),
        (("--delegation-location", "nowhere"), "Not a valid location"),
        (("--task-property", "x=1"), "no such property"),
    ],
)
async def test_what_would_let_in_anybody_or_means_nothing_keeps_it_from_starting(
    options: tuple[str, ...], why: str
) -> None:
    ended = await arco("delegation-service", "--store", "memory:", "--port", "0", *options)

    assert ended.code == 1
    assert why in ended.err


async def purged(catalog: Server, name: str = "db.t") -> Path:
    """Makes a table by PyIceberg, and drops it with purge. Returns its folder, in which files are left for now."""

    def work() -> Path:
        client = load_catalog("arco", type="rest", uri=catalog.uri)
        client.create_namespace("db")
        rows = pa.table({"id": pa.array(range(50), pa.int64())})
        table = client.create_table(name, schema=rows.schema)
        for _ in range(2):
            table.append(rows)
        table.delete("id < 5")
        folder = Path(table.location().removeprefix("file://"))
        assert len(files(folder)) > 8
        client.purge_table(name)
        return folder

    return await asyncio.to_thread(work)


async def test_one_process_has_its_tables_purged_by_another(tmp_path: Path) -> None:
    """By certificate, and with a store of its own: what it purges is another catalog's to it."""
    authority = Authority.make(tmp_path / "ca.pem", "both")
    certificate, key = authority.issue(tmp_path, "service", address="127.0.0.1")
    shown = authority.issue(tmp_path, "catalog")
    options = (
        *("--tls-cert", str(certificate), "--tls-key", str(key), "--tls-client-ca", str(authority.file)),
        *("--delegation-location", f"file:{tmp_path}/ours"),
    )
    async with delegation_service(f"file:{tmp_path}/service", *options) as service:
        delegation = {
            "ARCO_PURGE_EXECUTOR": "delegated",
            "ARCO_DELEGATION_URL": service.uri.partition("/delegation-service")[0],
            "ARCO_DELEGATION_CA": str(authority.file),
            "ARCO_DELEGATION_CLIENT_CERT": str(shown[0]),
            "ARCO_DELEGATION_CLIENT_KEY": str(shown[1]),
        }
        store = f"file:{tmp_path}/ours"
        async with serving(store, "--workers", "1", "--purge-undrop-window", "PT0S", **delegation) as catalog:
            folder = await purged(catalog)
            task = await ended_task(store)
            assert task["status"] == "SUCCESS", task
            assert files(folder) == []
            _, report = await call(f"{service.uri}/tasks", tls=context(authority, shown))
            assert [each["status"] for each in report["tasks"]] == ["COMPLETED_SUCCESS"]
            assert report["tasks"][0]["execution_result"]["files_deleted"] > 8


async def ended_task(store: str) -> Mapping[str, Any]:
    """The only task of a catalog, when it has ended."""
    for _ in range(200):
        ended = await arco("tasks", "--json", "--store", store)
        assert ended.code == 0, ended.err
        tasks: list[dict[str, Any]] = json.loads(ended.out)
        if [task for task in tasks if task["status"] in ("SUCCESS", "FAILURE")]:
            break
        await asyncio.sleep(1)
    [task] = tasks
    return task
