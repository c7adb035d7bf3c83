"""Logs in by a browser: an authorization code with PKCE, which the browser brings to a port of this machine
(RFC 8252)."""

import asyncio
import base64
import hmac
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qs, urlencode

from arco_catalog.cli.errors import CliError
from arco_catalog.cli.oauth import Issuer, Tokens, error_reason, request_tokens
from arco_catalog.cli.pkce import proof_key, url_text
from arco_catalog.iceberg.json import MalformedJson, loads
from arco_catalog.state.characters import escaped

SECONDS = 300.0
"""How long a user may take."""
MAX_HEAD_BYTES = 16 << 10
READ_SECONDS = 10.0
CALLBACK = "/callback"
DONE = "The answer has arrived: arco shows whether you are logged in. This page can be closed."
REFUSED = "You are not logged in: the issuer answered with an error, which arco shows. This page can be closed."
WRONG = "This is not the answer that arco waits for."


async def browser_tokens(
    issuer: Issuer, client_id: str, scope: str, show: Callable[[str], None], entropy: Callable[[int], bytes]
) -> Tokens:
    """Returns the tokens for which the user logs in by a browser on this machine: `show` prints the address to open.
    Raises `CliError` if the issuer has no authorization endpoint or answers with an error, if the ID token is not for
    this login, and if the user takes longer than `SECONDS`."""
    if not issuer.authorization_endpoint:
        raise CliError(f"the issuer {issuer.name} has no authorization endpoint: leave --browser out")
    verifier, challenge = proof_key(entropy)
    state, nonce = url_text(entropy(32)), url_text(entropy(32))
    answered: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(_listener(state, answered), "127.0.0.1", 0, limit=MAX_HEAD_BYTES)
    async with server:
        redirect = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{CALLBACK}"
        query = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": redirect,
            "scope": scope,
            "state": state,
            "nonce": nonce,
            **challenge,
        }
        if "offline_access" in scope.split():
            query["prompt"] = "consent"  # else no refresh token is given (OpenID Connect Core 1.0, section 11)
        joint = "&" if "?" in issuer.authorization_endpoint else "?"
        show(escaped(f"Open {issuer.authorization_endpoint}{joint}{urlencode(query)}"))
        try:
            async with asyncio.timeout(SECONDS):
                answer = await answered
        except TimeoutError as error:
            raise CliError("no login came from the browser in time: log in again") from error
    code = _code(issuer, answer)
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect, "client_id": client_id}
    tokens = await request_tokens(issuer.token_endpoint, {**form, "code_verifier": verifier})
    _check_id_token(issuer, client_id, nonce, tokens.id_token)
    return tokens


def _listener(
    state: str, answered: "asyncio.Future[Mapping[str, str]]"
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """Returns the handler of connections to the port: the first request for the callback that has the `state` sets the
    answer, and gets 200, as later ones with it do; others, which any page or program may send, get 400, or nothing if
    their head is too large, or not complete within `READ_SECONDS`."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_SECONDS):
                query = _query(await reader.readuntil(b"\r\n\r\n"))
                right = query is not None and hmac.compare_digest(query.get("state", "").encode(), state.encode())
                if query is not None and right and not answered.done():
                    answered.set_result(query)
                status, text = ("200 OK", DONE) if right else ("400 Bad Request", WRONG)
                if query is not None and right and "code" not in query:
                    text = REFUSED
                writer.write(
                    f"HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {len(text)}\r\n"
                    f"connection: close\r\nreferrer-policy: no-referrer\r\n\r\n{text}".encode()
                )
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # not the browser of this login
        finally:
            writer.close()

    return handle


def _query(head: bytes) -> Mapping[str, str] | None:
    """Returns the parameters of a GET of the callback, without parameters that are empty or that it has more than once;
    None for any other request."""
    method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
    path, _, query = rest.partition(" ")[0].partition("?")
    if method != "GET" or path != CALLBACK:
        return None
    return {name: values[0] for name, values in parse_qs(query).items() if len(values) == 1}


def _code(issuer: Issuer, answer: Mapping[str, str]) -> str:
    """Returns the authorization code that the browser brought. Raises `CliError` for another issuer or an error."""
    if answer.get("iss", issuer.name) != issuer.name:
        raise CliError(f"the browser brought an answer of another issuer than {issuer.name}: log in again")
    code = answer.get("code")
    if code is None:
        raise CliError(f"the issuer {issuer.name} answered: {error_reason({**answer}, 'no code')}")
    return code


def _check_id_token(issuer: Issuer, client_id: str, nonce: str, token: str) -> None:
    """Raises `CliError` unless an ID token is of this login: of the issuer, for the client, with the nonce. Its
    signature is not verified: it came from the token endpoint itself (OpenID Connect Core 1.0, section 3.1.3.7). No
    token, which an issuer sends for the scope `openid` alone, is right."""
    if not token:
        return
    payload = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (MalformedJson, ValueError):
        claims = None
    audience = claims.get("aud") if isinstance(claims, dict) else None
    audiences = audience if isinstance(audience, list) else [audience]
    if not isinstance(claims, dict) or claims.get("iss") != issuer.name or client_id not in audiences:
        raise CliError(
            f"the ID token of {issuer.name} is malformed, of another issuer or not for this client: check --issuer and "
            "--client-id"
        )
    if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
        raise CliError(f"the ID token of {issuer.name} is of another login: log in again")
