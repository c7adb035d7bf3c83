"""The settings to paste, as they are pasted."""

import asyncio
import base64
import json
import shlex
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from arco_catalog.cli.client_config import client_config
from tests.infra.google.conftest import Values
from tests.infra.google.values import URL
from tests.support.stub_server import stub_server

SECONDS = 120
ENGINES = ("spark", "pyiceberg", "trino")
PROJECT = {"GOOGLE_CLOUD_PROJECT": "my-project"}


def lines(text: str) -> set[str]:
    """What is said, without the order and the comments."""
    return {line.strip().removesuffix(" \\") for line in text.splitlines() if line and not line.startswith("#")}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("deployment", ["fresh", "anyone"])
def test_they_are_those_that_a_server_prints_and_what_signs_in(values: Values, deployment: str, engine: str) -> None:
    local = dict(zip(ENGINES, client_config(URL, "main", "gs://b", PROJECT).split("\n\n# "), strict=True))
    expected = lines(local[engine].partition("\n")[2])
    given = lines(values[deployment]["settings"][engine])

    assert expected <= given
    if deployment == "anyone":
        assert given == expected


def test_spark_is_given_the_token_of_the_shell_that_it_is_pasted_into(values: Values) -> None:
    command = f'spark-sql() {{ printf "%s\\n" "$@"; }}\n{values["fresh"]["settings"]["spark"]}'
    done = subprocess.run(
        ["bash", "-c", command],
        env={"ID_TOKEN": "abc.def"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )

    arguments = done.stdout.splitlines()
    assert "spark.sql.catalog.arco.header.X-Serverless-Authorization=Bearer abc.def" in arguments
    assert arguments.count("--conf") == (len(arguments) - 2) / 2
    assert done.stderr == ""


async def test_pyiceberg_signs_in_as_the_service_account_of_its_environment(values: Values, tmp_path: Path) -> None:
    """The pasted program, with google-auth and a token endpoint of a test's own in place of Google's."""
    asked: list[str] = []
    seen: list[str] = []
    token = _token()

    async def answer(request: web.BaseRequest) -> web.Response:
        if request.path == "/token":
            [assertion] = parse_qs(await request.text())["assertion"]
            asked.append(_claims(assertion)["target_audience"])
            return web.json_response({"id_token": token})
        seen.append(request.headers["Authorization"])
        if request.path == "/v1/config":
            return web.json_response({"defaults": {}, "overrides": {}})
        return web.json_response({"namespaces": []})

    async with stub_server(answer) as server:
        pasted = tmp_path / "pasted.py"
        pasted.write_text(
            f"{values['fresh']['settings']['pyiceberg']}\nprint(catalog.list_namespaces())".replace(URL, server.uri)
        )
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(pasted)),
            env={"GOOGLE_APPLICATION_CREDENTIALS": str(_account(tmp_path, f"{server.uri}/token"))},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate()

        assert (process.returncode, out) == (0, b"[]\n"), err.decode()
        assert set(asked) == {server.uri}
        assert set(seen) == {f"Bearer {token}"}


def test_what_is_pasted_is_no_secret(values: Values) -> None:
    assert "${ENV:ID_TOKEN}" in values["fresh"]["settings"]["trino"]
    assert shlex.split("x $ID_TOKEN")[1] in values["fresh"]["settings"]["spark"]


def _account(folder: Path, token_uri: str) -> Path:
    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "account.json"
    account = {
        "type": "service_account",
        "project_id": "my-project",
        "client_email": "lake-spark@my-project.iam.gserviceaccount.com",
        "private_key_id": "1",
        "private_key": key.decode(),
        "token_uri": token_uri,
    }
    file.write_text(json.dumps(account))
    return file


def _token() -> str:
    parts = ({"alg": "RS256", "typ": "JWT"}, {"exp": int(time.time()) + 3600, "aud": "any"})
    return ".".join([*(base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts), "c2lnbmVk"])


def _claims(token: str) -> dict[str, str]:
    text = token.split(".")[1]
    claims: dict[str, str] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return claims
