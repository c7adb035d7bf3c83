"""`arco doctor --auth`: what of a token a server would not accept, and why."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jwt
import pytest

from arco_catalog.authentication.authenticator import AuthenticationResult
from arco_catalog.cli.auth_doctor import _advice
from arco_catalog.planning.access import Identity
from tests.cli.in_process import arco
from tests.support.oidc_provider import oidc_provider
from tests.support.served_realms import KEY, bootstrapped

AUDIENCE = "arco-of-this-test"


class Doctor:
    """A realm, and a file with a token."""

    def __init__(self, folder: Path) -> None:
        self.store = f"file:{folder}/lake"
        self.file = folder / "token"

    async def manage(self, *arguments: str) -> None:
        ended = await arco(*arguments, "--store", self.store)
        assert ended.code == 0, ended

    async def examine(self, token: str, environment: Mapping[str, str], code: int = 1) -> list[dict[str, Any]]:
        """The checks, of which none quotes the token."""
        self.file.write_text(f"{token}\n")
        ended = await arco("doctor", "--auth", str(self.file), "--store", self.store, "--json", **environment)
        assert ended.code == code, ended
        assert len(token) < 100 or token.rpartition(".")[2] not in ended.out + ended.err
        checks: list[dict[str, Any]] = json.loads(ended.out)["checks"]
        return checks


@pytest.fixture
async def doctor(tmp_path: Path) -> Doctor:
    made = Doctor(tmp_path)
    await bootstrapped(made.store)
    return made


@pytest.mark.needs("node", "npm")
async def test_each_reason_why_a_token_of_an_issuer_is_not_accepted_is_named(doctor: Doctor) -> None:
    async with oidc_provider(AUDIENCE) as issuer:
        token = await issuer.token()
        right = {
            "ARCO_AUTH": "oidc",
            "ARCO_OIDC_ISSUERS": issuer.issuer,
            "ARCO_OIDC_AUDIENCES": AUDIENCE,
            "ARCO_OIDC_ROLES_CLAIM": "roles",
            "ARCO_OIDC_LOOPBACK_HTTP": "true",
        }
        audience = (await doctor.examine(token, {**right, "ARCO_OIDC_AUDIENCES": "other"}))[-1]
        elsewhere = (await doctor.examine(token, {**right, "ARCO_OIDC_ISSUERS": "https://other.example"}))[-1]
        forged = (await doctor.examine(f"{token[:-8]}AAAAAAAA", right))[-1]
        unknown = (await doctor.examine(token, right))[-1]
        await doctor.manage("principals", "create", "ada", "--property", f"arco.subject={issuer.issuer} ada")
        roleless = (await doctor.examine(token, right))[-1]
        await doctor.manage("roles", "create", "reader")
        await doctor.manage("roles", "assign", "reader", "--to", "ada")
        accepted = await doctor.examine(token, right, code=0)

    assert (audience["check"], "ARCO_OIDC_AUDIENCES=other" in audience["advice"]) == ("verification", True)
    assert (elsewhere["check"], "issuer" in elsewhere["found"]) == ("verification", True)
    assert forged["check"] == "verification"
    assert (unknown["check"], f"'arco.subject={issuer.issuer} ada'" in unknown["advice"]) == ("principal", True)
    assert (roleless["check"], "reader, writer" in roleless["found"]) == ("roles", True)
    assert [(each["check"], each["status"]) for each in accepted] == [
        (name, "ok") for name in ("settings", "token", "verification", "principal", "roles")
    ]
    assert f"aud={AUDIENCE}" in accepted[1]["found"]


async def test_settings_that_no_server_would_start_with_are_named(doctor: Doctor) -> None:
    (unset,) = await doctor.examine("x", {})
    (keyless,) = await doctor.examine("x", {"ARCO_AUTH": "internal"})

    assert "ARCO_AUTH names no way to verify a token" in unset["found"]
    assert "needs a key to sign tokens" in keyless["found"]


async def test_a_token_of_another_key_is_advised_the_variables_of_keys(doctor: Doctor) -> None:
    token = jwt.encode({"iss": "arco", "aud": "arco-catalog", "sub": "x"}, "k" * 32, "HS256", {"kid": "other"})
    found = (await doctor.examine(token, {"ARCO_AUTH": "internal", "ARCO_TOKEN_KEY": KEY}))[-1]

    assert (found["check"], found["status"]) == ("verification", "failed")
    assert "ARCO_TOKEN_KEY_FILE" in found["advice"]
    assert "OIDC" not in found["advice"]


@pytest.mark.parametrize("token", ["opaque", "a.b.c", ""])
async def test_what_is_no_jwt_is_named(doctor: Doctor, token: str) -> None:
    found = await doctor.examine(token, {"ARCO_AUTH": "internal", "ARCO_TOKEN_KEY": KEY})

    assert [(each["check"], each["status"]) for each in found] == [("settings", "ok"), ("token", "failed")]


async def test_a_token_file_that_is_missing_and_a_store_without_a_realm_are_errors(tmp_path: Path) -> None:
    missing = await arco("doctor", "--auth", f"{tmp_path}/none", "--store", f"file:{tmp_path}")
    (tmp_path / "token").write_text("x")
    without = await arco("doctor", "--auth", f"{tmp_path}/token", "--store", f"file:{tmp_path}/lake")
    both = await arco("doctor", "memory:", "--auth", f"{tmp_path}/token")

    assert (missing.code, "the token was not read" in missing.err) == (1, True)
    assert (without.code, "there is no realm" in without.err) == (2, True)
    assert both.code == 2


def test_a_command_to_copy_has_the_subject_as_one_word_of_a_shell() -> None:
    subject = "https://login.example ada' --x; $(reboot)"
    found = AuthenticationResult("POLARIS", Identity(subject, issued=True), "ada")

    assert shlex.split(_advice(found))[4:] == ["--property", f"arco.subject={subject}"]


def test_a_token_of_the_realm_without_a_principal_is_not_advised_a_subject() -> None:
    found = AuthenticationResult("POLARIS", Identity("an-id"), "ada")

    assert "log in again" in _advice(found)
