"""`arco import realm` after its first run: what the source has changed since, and secrets that were not written."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import aiohttp
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from arco_catalog.cli.secrets_file import SecretsFile
from tests.cli.foreign_realm import polaris, serving_polaris
from tests.cli.process import serving
from tests.cli.test_import_realm import Move, counts, reasons
from tests.support.served_realms import LOGINS, Root, bootstrapped, token_of
from tools.support.request_bodies import view_request

ROWS = pa.table({"x": pa.array([1], pa.int64())})


class Source:
    """A realm of ours with tables, views and a namespace, which another one imports."""

    def __init__(self, uri: str, root: Root, token: str) -> None:
        self.uri, self._root, self._token = uri, root, token

    async def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        headers = {"authorization": f"Bearer {self._token}"}
        url = f"{self.uri}/v1/arco/namespaces/{path}"
        async with aiohttp.ClientSession() as client, client.request(method, url, json=body, headers=headers) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json() if answer.status == 200 else None

    async def fill(self) -> None:
        def tables() -> None:
            with closing(self._root.catalog(self.uri)) as catalog:
                catalog.create_namespace("a", {"comment": "old", "gone": "x"})
                for name in ("t", "s"):
                    catalog.create_table(f"a.{name}", schema=ROWS.schema).append(ROWS)

        await asyncio.to_thread(tables)
        for name in ("v", "w"):
            await self.send("POST", "a/views", view_request(name))

    async def change(self) -> None:
        """Changes a namespace and the view `v`, makes `w` and `t` anew, and renames `s`."""

        def tables() -> None:
            with closing(self._root.catalog(self.uri)) as catalog:
                catalog.update_namespace_properties("a", {"gone"}, {"comment": "new"})
                catalog.drop_table("a.t")
                catalog.create_table("a.t", schema=ROWS.schema).append(pa.table({"x": [5]}))
                catalog.rename_table("a.s", "a.s2")

        await asyncio.to_thread(tables)
        update = {"action": "set-properties", "updates": {"comment": "new"}}
        await self.send("POST", "a/views/v", {"updates": [update]})
        await self.send("DELETE", "a/views/w")
        await self.send("POST", "a/views", view_request("w", {"comment": "anew"}))


@asynccontextmanager
async def imported(folder: Path) -> AsyncIterator[tuple[Source, Move]]:
    """A source of which all is imported, and the move."""
    old = f"file:{folder}/old"
    root = await bootstrapped(old)
    async with serving(old, "--quiet", **LOGINS) as server:
        token = await token_of(server.uri, root.client_id, root.secret)
        source, move = Source(server.uri, root, token), Move(folder, server.uri, "old/arco")
        (folder / "token").write_text(token)
        await move.prepare()
        await source.fill()
        await move.report("--apply")
        yield source, move


async def test_what_the_source_has_changed_since_is_named_and_taken_over(tmp_path: Path) -> None:
    async with imported(tmp_path) as (source, move):
        assert counts(await move.report("--compare")).keys() == {"equal"}
        await source.change()

        compared = reasons(await move.report("--compare", code=1), "different")
        assert compared.keys() == {"arco.a", "arco.a.t", "arco.a.v", "arco.a.w"}
        assert compared["arco.a"] == "here differ: property comment, property gone"
        assert compared["arco.a.t"].startswith("at the source another table has the name now")
        assert compared["arco.a.v"].startswith("the source has committed to it since the import")
        assert compared["arco.a.w"].startswith("at the source another view has the name now")

        kept = await move.report("--apply", code=1)
        assert reasons(kept, "different").keys() == {"arco.a"}
        assert reasons(kept, "failed").keys() == {"arco.a.t", "arco.a.v", "arco.a.w", "arco.a.s2"}
        assert "--refresh" in reasons(kept, "failed")["arco.a.v"]
        # A table under another name is the same one, whose location no one can choose.
        assert "arco rename" in reasons(kept, "failed")["arco.a.s2"]

        changed = {"arco.a", "arco.a.t", "arco.a.v", "arco.a.w"}
        assert reasons(await move.report("--refresh", code=1), "would replace").keys() == changed
        replaced = reasons(await move.report("--apply", "--refresh", code=1), "replaced")
        assert replaced.keys() == changed
        assert replaced["arco.a"] == "properties: comment, gone"
        await move.run("rename", "a.s", "a.s2", "--warehouse", "arco", *move.at)
        assert counts(await move.report("--compare")).keys() == {"equal"}

    async with serving(move.store, *move.at[2:], "--quiet", "--auth", "none") as here:
        properties = (await here.call("GET", "/v1/arco/namespaces/a"))[1]["properties"]
        assert {name: properties.get(name) for name in ("comment", "gone")} == {"comment": "new", "gone": None}
        for view, comment in (("v", "new"), ("w", "anew")):
            metadata = (await here.call("GET", f"/v1/arco/namespaces/a/views/{view}"))[1]["metadata"]
            assert metadata["properties"]["comment"] == comment


async def test_a_table_made_anew_at_the_source_does_not_replace_one_that_was_committed_to_here(tmp_path: Path) -> None:
    async with imported(tmp_path) as (source, move):
        async with serving(move.store, *move.at[2:], "--quiet", "--auth", "none") as here:
            update = {"action": "set-properties", "updates": {"ours": "yes"}}
            await here.call("POST", "/v1/arco/namespaces/a/tables/t", {"requirements": [], "updates": [update]})
        await source.change()
        kept = reasons(await move.report("--apply", "--refresh", code=1), "failed")["arco.a.t"]
        compared = reasons(await move.report("--compare", code=1), "different")["arco.a.t"]
    same = "at the source another table has the name now, as after a drop and a create, and this catalog has committed"
    assert kept.startswith(same)
    assert compared.startswith(same)
    assert "which loses the commits made here" in kept


async def test_a_principal_is_made_after_its_secret_is_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: SecretsFile, secret: object) -> None:
        raise OSError("the disk is full")

    async with serving_polaris(polaris(tmp_path)) as source:
        move = Move(tmp_path, source.uri)
        await move.prepare()
        arguments = ("--from", source.uri, "--token-file", f"{tmp_path}/token", *move.at)
        options = ("--apply", "--secrets", f"{tmp_path}/secrets")
        with monkeypatch.context() as patched:
            patched.setattr(SecretsFile, "add", full)
            await move.run("import", "realm", *arguments, *options, code=1)
        assert "ann" not in (await move.run("principals", "list", "--store", move.store)).out
        await move.report(*options, code=1)
    lines = [json.loads(line) for line in (tmp_path / "secrets").read_text().splitlines()]
    assert {line["principal"] for line in lines} == {"ann", "etl"}


async def test_a_principal_without_a_line_in_the_file_is_named_with_what_makes_another_secret(tmp_path: Path) -> None:
    async with serving_polaris(polaris(tmp_path)) as source:
        move = Move(tmp_path, source.uri)
        await move.prepare()
        secrets = tmp_path / "secrets"
        await move.report("--apply", "--secrets", f"{secrets}", code=1)
        [kept] = [line for line in secrets.read_text().splitlines() if "ann" not in line]
        secrets.write_text(f'{kept}\n{{"principal": "an')
        for options in (("--compare",), ("--apply",), ()):
            report = await move.report(*options, "--secrets", f"{secrets}", code=int(options != ()))
            lacking = {name: reason for name, reason in reasons(report, "equal").items() if reason}
            assert lacking == {
                "ann": "the file has no secret of it: if it is lost, `arco principals reset ann` makes another"
            }
        missing = await move.report("--compare", "--secrets", f"{tmp_path}/none", code=1)
        assert {name for name, reason in reasons(missing, "equal").items() if reason} == {"ann", "etl"}
    assert not (tmp_path / "none").exists()


async def test_a_location_that_is_not_allowed_is_to_be_allowed_for_the_command(tmp_path: Path) -> None:
    async with serving_polaris(polaris(tmp_path)) as source:
        move = Move(tmp_path, source.uri)
        await move.prepare()
        source_of = ("--from", source.uri, "--token-file", f"{tmp_path}/token")
        ended = await move.run("import", "realm", *source_of, "--store", move.store, "--json", code=1)
        reason = reasons(json.loads(ended.out), "failed")["lake"]
    assert "by --allowed-location of the server or command" in reason
