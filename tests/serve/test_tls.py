"""`arco serve --tls-cert`: clients that trust the test's own certificate, and those that speak something else."""

import asyncio
import contextlib
import logging
import os
import shutil
import socket
import ssl
import subprocess
import warnings
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from arco_catalog.cli.errors import CliError
from arco_catalog.cli.tls import Certificate, certificate_of
from tests.cli.in_process import arco
from tests.cli.process import TIMEOUT_SECONDS, Server, serving
from tests.support.certificates import write_certificate
from tests.support.served_realms import LOGINS, bootstrapped


@dataclass(frozen=True)
class Files:
    """A certificate for 127.0.0.1, which is its own authority, and its key."""

    certificate: Path
    key: Path

    @property
    def options(self) -> tuple[str, ...]:
        return "--tls-cert", str(self.certificate), "--tls-key", str(self.key)

    @property
    def trusted(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.certificate))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = Files(tmp_path / "tls.crt", tmp_path / "tls.key")
    write_certificate(made.certificate, made.key, "127.0.0.1")
    return made


async def config_status(server: Server, tls: ssl.SSLContext, **headers: str) -> int:
    async with aiohttp.ClientSession(server.uri) as client, client.get("/v1/config", ssl=tls, headers=headers) as got:
        return got.status


@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.slow), "2"])  # all others have one
async def test_pyiceberg_logs_in_writes_and_reads_over_tls(workers: str, files: Files, tmp_path: Path) -> None:
    store = f"file:{tmp_path}/store"
    root = await bootstrapped(store)
    trust = {"ssl.cabundle": str(files.certificate)}
    async with serving(store, *files.options, "--workers", workers, **LOGINS) as server:
        assert server.uri.startswith("https://127.0.0.1:")

        def work() -> list[int]:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("REQUESTS_CA_BUNDLE", str(files.certificate))
                catalog = root.catalog(server.uri, **trust)
                catalog.create_namespace("db")
                table = catalog.create_table("db.t", pa.schema([("x", pa.int64())]))
                table.append(pa.table({"x": [1, 2]}))
                found: list[int] = catalog.load_table("db.t").scan().to_arrow()["x"].to_pylist()
                return found

        assert await asyncio.to_thread(work) == [1, 2]
        ended = await server.stop()

    assert (ended.code, ended.err) == (0, "")
    assert f'"uri": "{server.uri}"' in ended.out
    assert f'"oauth2-server-uri": "{server.uri}/v1/oauth/tokens"' in ended.out


async def test_who_listens_everywhere_by_tls_is_not_warned_of_who_listens_in(files: Files, tmp_path: Path) -> None:
    store = f"file:{tmp_path}/store"
    await bootstrapped(store)
    warned = {}
    for name, options in {"tls": files.options, "none": ()}.items():
        async with serving(store, *options, "--host", "0.0.0.0", "--workers", "1", "--quiet", **LOGINS) as server:
            warned[name] = (await server.stop()).err

    assert warned["tls"] == ""
    assert "it has no TLS" in warned["none"]


async def test_browsers_are_held_off_as_without_tls(files: Files) -> None:
    async with serving("memory:", *files.options, "--quiet") as server:
        port = server.uri.rpartition(":")[2]
        assert await config_status(server, files.trusted, Host=f"localhost:{port}") == 200
        assert await config_status(server, files.trusted, Host="evil.example") == 403
        assert await config_status(server, files.trusted, Origin="https://evil.example") == 403
        assert await config_status(server, files.trusted, Origin=f"https://127.0.0.1:{port}") == 200
        async with aiohttp.ClientSession(server.uri) as client, client.get("/health", ssl=files.trusted) as got:
            assert "Strict-Transport-Security" not in got.headers


async def test_old_protocols_and_plain_http_are_refused_without_effect_on_others(files: Files) -> None:
    old = files.trusted
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    async with serving("memory:", *files.options, "--quiet", "--max-connections", "16") as server:
        port = int(server.uri.rpartition(":")[2])
        with pytest.raises(aiohttp.ClientError):
            await config_status(server, old)
        for _ in range(40):  # more than there may be at once
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /v1/config HTTP/1.1\r\nHost: localhost\r\n\r\n")
            async with asyncio.timeout(TIMEOUT_SECONDS):
                assert b"200" not in await reader.read()
            writer.close()
        assert await config_status(server, files.trusted) == 200


async def test_clients_that_never_shake_hands_make_room_in_the_end(files: Files) -> None:
    async with serving("memory:", *files.options, "--quiet", "--max-connections", "16") as server:
        port = int(server.uri.rpartition(":")[2])
        silent = [socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_SECONDS) for _ in range(16)]
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS * 4):
                assert await config_status(server, files.trusted) == 200
        finally:
            for connection in silent:
                connection.close()


def test_a_renewed_certificate_is_for_new_connections(
    files: Files, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificate = certificate_of(str(files.certificate), str(files.key))
    assert certificate is not None
    before = certificate.context
    certificate.renew()
    assert certificate.context is before

    shutil.copy(files.certificate, tmp_path / "old.crt")
    write_certificate(files.certificate, tmp_path / "new.key", "127.0.0.1")
    os.utime(files.certificate, ns=(1, 1))
    with caplog.at_level(logging.ERROR):
        certificate.renew()  # half of it: the key is still the old one
    assert certificate.context is before
    assert "the key is not the certificate's" in caplog.text

    shutil.copy(tmp_path / "new.key", files.key)
    certificate.renew()
    assert certificate.context is not before
    assert certificate.context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert shown_by(certificate) == files.certificate.read_text() != (tmp_path / "old.crt").read_text()


def shown_by(certificate: Certificate) -> str:
    """The certificate that a client gets to see."""
    ours, theirs = socket.socketpair()
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing, back, forth = (ssl.MemoryBIO() for _ in range(4))
    ours.close()
    theirs.close()
    server = certificate.context.wrap_bio(incoming, outgoing, server_side=True)
    client = context.wrap_bio(back, forth)
    for _ in range(10):
        for side in (client, server):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
            incoming.write(forth.read())
            back.write(outgoing.read())
    shown = client.getpeercert(binary_form=True)
    assert shown is not None
    return ssl.DER_cert_to_PEM_cert(shown)


def test_both_files_are_needed_and_must_fit(files: Files, tmp_path: Path) -> None:
    other = Files(tmp_path / "other.crt", tmp_path / "other.key")
    write_certificate(other.certificate, other.key, "127.0.0.1")
    encrypted = tmp_path / "encrypted.key"
    command = ["openssl", "pkey", "-in", str(files.key), "-aes256", "-passout", "pass:x", "-out", str(encrypted)]
    subprocess.run(command, check=True, timeout=60, capture_output=True)

    assert certificate_of(None, None) is None
    for certificate, key, why in (
        (files.certificate, None, "both --tls-cert and --tls-key"),
        (None, files.key, "both --tls-cert and --tls-key"),
        (files.certificate, other.key, "the key is not the certificate's"),
        (files.key, files.key, "not in PEM format, or broken"),
        (files.certificate, tmp_path / "missing", "No such file or directory"),
        (files.certificate, encrypted, "the private key of the certificate is encrypted"),
    ):
        with pytest.raises(CliError, match=why):
            certificate_of(*(None if file is None else str(file) for file in (certificate, key)))


async def test_a_wrong_file_is_reported_in_one_line_before_anything_is_served(files: Files) -> None:
    ended = await arco("serve", "--store", "memory:", "--port", "0", "--tls-cert", str(files.certificate))

    assert (ended.code, ended.err.count("\n")) == (1, 1)
    assert ended.err.startswith("arco: TLS takes both --tls-cert and --tls-key")
