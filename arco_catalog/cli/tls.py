"""TLS for servers: reads the certificate and the authorities for certificates of clients, again whenever the files
change."""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arco_catalog.cli.errors import CliError

LOOK_SECONDS = 60.0
"""Interval at which the files are checked. A certificate is renewed days before it expires, so a minute suffices."""
HANDSHAKE_SECONDS = 10.0
"""Maximum duration of a TLS handshake. Only after it can the connection be cut for another one (crowd.py)."""
GOODBYE_SECONDS = 1.0
"""Maximum wait for a client to answer the end of TLS. An idle client does not answer, and would delay the server's
end."""

_LOG = logging.getLogger(__name__)


@dataclass
class Certificate:
    """A certificate and the private key of it, in two files. New connections use `context`; open ones keep the context
    that they started with. With `client_ca`, a file of authorities, every client must have a certificate that one of
    them signed."""

    certificate: str
    key: str
    client_ca: str | None = None
    _seen: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Reads the certificate, the key, and the authorities of client certificates from their files. Raises
        `CliError` if one can't be read or used, such as an encrypted key, or the key is not the certificate's."""
        try:
            self._seen = self._times()
            self.context = self._read()
        except (OSError, ValueError) as error:
            authorities = "" if self.client_ca is None else f" --tls-client-ca {self.client_ca}"
            named = f"--tls-cert {self.certificate} --tls-key {self.key}{authorities}"
            raise CliError(f"{named}: {_reason(error)}") from error

    async def follow(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        """Checks the files of the certificate every `LOOK_SECONDS`, and rereads them when they have changed, as `renew`
        does. Runs until it is cancelled."""
        while True:
            await sleep(LOOK_SECONDS)
            await asyncio.to_thread(self.renew)

    def renew(self) -> None:
        """Reads the files of the certificate if one has changed since they were last read, and logs that. If one can't
        be read or used, logs an error and does not change the context; the next call retries."""
        try:
            times = self._times()
            if times != self._seen:
                self.context = self._read()
                self._seen = times
                _LOG.info("the files of the certificate %s were read again: new connections use them", self.certificate)
        except (OSError, ValueError) as error:
            _LOG.error(
                "the files of the certificate %s can't be used now: %s; new connections get the one that was read "
                "last, and the next attempt is in %g s",
                self.certificate,
                _reason(error),
                LOOK_SECONDS,
            )

    def _times(self) -> tuple[int, ...]:
        """Returns when the files of the certificate were last modified, in nanoseconds since 1970. Raises `OSError`."""
        files = (self.certificate, self.key, *(() if self.client_ca is None else (self.client_ca,)))
        return tuple(Path(file).stat().st_mtime_ns for file in files)

    def _read(self) -> ssl.SSLContext:
        """Reads the files of the certificate into a new context for TLS 1.2 and newer, which requires certificates of
        clients if there is a `client_ca`. Raises `OSError` or `ValueError` if one can't be used, also for an encrypted
        key."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(self.certificate, self.key, password=_refuse_password)
        if self.client_ca is not None:
            context.load_verify_locations(cafile=self.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def certificate_of(certificate: str | None, key: str | None, client_ca: str | None = None) -> Certificate | None:
    """Reads the certificate that the options name; None if no option is given. Raises `CliError` if the options name
    authorities, a key or a certificate, but not both key and certificate, and if a file can't be read."""
    if certificate is None and key is None and client_ca is None:
        return None
    if certificate is None or key is None:
        raise CliError("TLS takes both --tls-cert and --tls-key, also with --tls-client-ca: not both are given")
    return Certificate(certificate, key, client_ca)


def subject_of(peer: Mapping[str, Any] | None) -> str | None:
    """Returns the subject of a client's certificate, which has the form of `SSLObject.getpeercert`. If the subject is
    empty, returns the first URI or DNS name of the certificate. None if it has neither, or there is no certificate."""
    if not peer:
        return None
    parts = [f"{name}={value}" for group in peer.get("subject", ()) for name, value in group]
    if parts:
        return ",".join(parts)
    names = [f"{kind}={value}" for kind, value in peer.get("subjectAltName", ()) if kind in ("URI", "DNS")]
    return names[0] if names else None


def _refuse_password() -> str:
    """Raises `ValueError`; without this callback OpenSSL would prompt for a password on the terminal."""
    raise ValueError(
        "the private key of the certificate is encrypted, and the server has no password: store it unencrypted in a "
        "file only the server may read"
    )


def _reason(error: Exception) -> str:
    """Returns in words why the files can't be used."""
    if isinstance(error, ssl.SSLError):
        if error.reason == "KEY_VALUES_MISMATCH":
            return "the key is not the certificate's"
        return "one of the files is not in PEM format, or broken"
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
