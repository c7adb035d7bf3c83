"""The audit log: as many lines as credentials, signatures and denials, and no secret in them."""

import asyncio
from pathlib import Path

import pytest

from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.telemetry.audit import AuditFile, AuditLog
from arco_catalog.telemetry.request_log import RequestLog
from arco_catalog.telemetry.telemetry import Telemetry
from tests.access.test_delegation import VENDED, Fixture, T, credentials_of, lake, to_sign
from tests.access.test_secrets_stay_out import OWN, STS, session, signatures
from tests.support.realm_service import on_table
from tools.support.asgi_client import Client


def audited(it: Fixture, file: Path) -> tuple[Telemetry, Client]:
    """A server with an audit log, and its owner's client."""
    log = AuditFile.open(str(file))
    telemetry = it.app.telemetry = Telemetry([], it.app.clock, [AuditLog(log.write, it.app.clock.now_ms)])
    it.app.app = it.app.serve()
    it.owner = it.app.client("owner")
    return telemetry, it.owner


def lines_of(file: Path) -> list[JsonObject]:
    lines = [loads(line) for line in file.read_bytes().splitlines()]
    return [line for line in lines if isinstance(line, dict)]


def ids(it: Fixture, principal: str) -> str:
    """The id of a principal with a name."""
    return it.app.ids[it.app.names[0], principal]


def events(file: Path, event: str) -> list[JsonObject]:
    return [line for line in lines_of(file) if line["event"] == event]


async def test_each_credential_signature_and_denial_has_one_line_without_secrets(tmp_path: Path) -> None:
    async with lake() as it:
        file = tmp_path / "audit"
        audited(it, file)

        answers = await session(it)

        assert len(events(file, "vended")) == sum(len(credentials_of(answer)) for answer in answers) == 7
        assert [line["signed_method"] for line in events(file, "signed")] == ["GET", "GET"]
        assert [line["principal"] for line in events(file, "denied")] == [ids(it, "stranger"), ids(it, "reader")]
        for secret in (*STS, *OWN, *signatures(answers)):
            assert secret not in file.read_text()


async def test_a_line_has_the_principal_the_location_and_the_end_of_validity(tmp_path: Path) -> None:
    async with lake() as it:
        file = tmp_path / "audit"
        audited(it, file)
        await it.app.principal("reader", on_table("TABLE_READ_DATA", "db", "t"))
        reader = it.app.client("reader")
        answer = await reader.get(T, **VENDED)
        path = str(answer.json["metadata-location"]).removeprefix("s3://")
        assert (await reader.post(f"{T}/sign", to_sign("GET", path))).status == 200

        vended, signed = lines_of(file)[-2:]

        (credential,) = credentials_of(answer)
        assert (vended["event"], vended["location"], vended["access"]) == ("vended", credential["prefix"], "read")
        assert vended["principal"] == signed["principal"] == ids(it, "reader")
        assert vended["operation"] == "loadTable"
        assert str(vended["expires"]) > str(vended["time"])
        assert (signed["event"], signed["location"], signed["access"]) == ("signed", credential["prefix"], "read")
        assert vended["entity"] == signed["entity"]
        assert vended["request_id"] != signed["request_id"]


async def test_requests_beside_each_other_have_as_many_lines_as_credentials(tmp_path: Path) -> None:
    async with lake() as it:
        file = tmp_path / "audit"
        _, owner = audited(it, file)
        second = AuditFile.open(str(file))  # another process's
        it.app.telemetry = Telemetry([], it.app.clock, [AuditLog(second.write, it.app.clock.now_ms)])
        other = it.app.client("owner", app=it.app.serve())
        stranger = await it.app.principal("stranger")

        answers = await asyncio.gather(
            *(client.get(T, **VENDED) for client in (owner, other) for _ in range(100)),
            *(stranger.get(T, **VENDED) for _ in range(100)),
        )

        assert len(events(file, "vended")) == sum(len(credentials_of(answer)) for answer in answers) == 200
        assert len(events(file, "denied")) == 100


async def test_a_line_that_cannot_be_written_is_counted_and_logged_and_the_request_is_answered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with lake() as it:
        counted: list[RequestLog] = []

        class Inner:
            def observe(self, log: RequestLog) -> None:
                counted.append(log)

        log = AuditFile.open(str(tmp_path / "audit"))
        log.close()
        telemetry = Telemetry([], it.app.clock, [AuditLog(log.write, it.app.clock.now_ms), Inner()])
        it.app.telemetry = telemetry
        client = it.app.client("owner", app=it.app.serve())

        answer = await client.get(T, **VENDED)

        assert (answer.status, len(credentials_of(answer))) == (200, 1)
        assert (telemetry.dropped, len(counted)) == (1, 1)
        assert "AuditLog failed to export a request" in caplog.text


def test_the_file_is_its_owners_alone_and_must_be_a_file(tmp_path: Path) -> None:
    AuditFile.open(str(tmp_path / "audit")).close()

    assert (tmp_path / "audit").stat().st_mode & 0o777 == 0o600
    with pytest.raises(OSError, match="directory"):
        AuditFile.open(str(tmp_path))
    with pytest.raises(ValueError, match="is not a regular file"):
        AuditFile.open("/dev/null")
