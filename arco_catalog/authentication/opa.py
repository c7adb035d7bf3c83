"""Finds out from Open Policy Agent, by its data API, whether an actor may do something
(https://www.openpolicyagent.org/docs/rest-api, docs/opa.md).

Only an answer that allows something is cached, for seconds. An answer that is not readable, also that of a policy that
is not defined, raises `Unavailable`: a client that took it for a refusal would delete the files of its commit.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import urlsplit

from arco_catalog.config.variables import OPA_BATCH_URL, OPA_CA, OPA_CACHE, OPA_TIMEOUT, OPA_TOKEN_FILE, OPA_URL
from arco_catalog.iceberg.errors import Unavailable
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, dumps, loads
from arco_catalog.planning.policy_questions import SYSTEM_ACCESS, Actor, Question
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.runtime import Runtime
from storage_backends import StoreError, StoreUnavailable
from storage_backends.wire.fetch import checked_url
from storage_backends.wire.http1 import Response
from storage_backends.wire.origin_pools import OriginPools
from storage_backends.wire.settings import ConnectionSettings

BATCH = 1_000
"""Maximum number of questions in one call."""
CONCURRENT_CALLS = 16
MAX_CACHED = 16_384
"""Maximum number of cached decisions; the oldest makes room."""
MAX_ANSWER_BYTES = 256 << 10
"""Several times the answer to a full batch: the numbers of 1,000 questions."""
MAX_TOKEN_BYTES = 16 << 10

Send = Callable[[str, bytes], Awaitable[Response]]
"""Sends a JSON body to a URL, and returns the response, whatever its status. Raises `StoreError` without one."""


class PolicyAgent:
    """A policy that Open Policy Agent evaluates: the rule at `url` for one question, that at `batch_url`, if it is
    given, for more than one, and for `SYSTEM_ACCESS`, which is denied without it. Decisions that allow something are
    cached for `cache_ms`, at most `MAX_CACHED` of them."""

    def __init__(self, url: str, batch_url: str | None, send: Send, now_ms: Callable[[], int], cache_ms: int) -> None:
        self._url = url
        self._batch_url = batch_url
        self._send = send
        self._now_ms = now_ms
        self._cache_ms = cache_ms
        self._allowed: dict[tuple[Actor, Question], int] = {}

    @property
    def takes_batches(self) -> bool:
        """Whether many questions take few calls: there is a rule for batches."""
        return self._batch_url is not None

    async def decide(self, actor: Actor, questions: Sequence[Question]) -> Sequence[int | None]:
        """Returns for each question the time, in milliseconds since 1970, at which the policy was queried, if it allows
        what the question is about, and None if it does not. A decision that allows something is cached, with the time
        of the query. Without a rule for batches, nothing is allowed that needs `SYSTEM_ACCESS`. Raises `Unavailable`
        without a readable answer."""
        known = {question: self._cached(actor, question) for question in questions}
        unknown = [question for question, queried_ms in known.items() if queried_ms is None]
        about_system = any(question.action == SYSTEM_ACCESS for question in unknown)
        if self._batch_url is None:
            unknown = [question for question in unknown if question.action != SYSTEM_ACCESS]
        if self._batch_url is not None and (len(unknown) > 1 or about_system):
            for batch in batches(unknown, BATCH):
                known.update(await self._query_batch(actor, batch, self._batch_url))
        else:
            for batch in batches(unknown, CONCURRENT_CALLS):
                decisions = await gather(*(self._query(actor, question) for question in batch))
                known.update(zip(batch, decisions, strict=True))
        for question in unknown:
            self._remember(actor, question, known[question])
        return [known[question] for question in questions]

    def _cached(self, actor: Actor, question: Question) -> int | None:
        """Returns the time of the query that allowed a question; None if none is cached, or it is `cache_ms` old."""
        queried_ms = self._allowed.get((actor, question))
        if queried_ms is None or not 0 <= self._now_ms() - queried_ms < self._cache_ms:
            return None
        return queried_ms

    def _remember(self, actor: Actor, question: Question, queried_ms: int | None) -> None:
        """Keeps a decision that allows a question, in place of an earlier one; only removes that one if `queried_ms` is
        None. Drops the oldest of more than `MAX_CACHED`."""
        self._allowed.pop((actor, question), None)
        if queried_ms is None:
            return
        while len(self._allowed) >= MAX_CACHED:
            del self._allowed[next(iter(self._allowed))]
        self._allowed[actor, question] = queried_ms

    async def _query(self, actor: Actor, question: Question) -> int | None:
        """Queries the rule for one question. Returns the time before the query, None if the policy does not allow it.
        Raises `Unavailable` without a readable answer."""
        queried_ms = self._now_ms()
        wanted: JsonObject = {"action": question.action, "resource": question.resource()}
        result = await self._result(self._url, {**_about(actor), **wanted})
        if not isinstance(result, bool):
            raise _unreadable(self._url, "the result of the policy's rule must be true or false")
        return queried_ms if result else None

    async def _query_batch(
        self, actor: Actor, questions: Sequence[Question], url: str
    ) -> Mapping[Question, int | None]:
        """Queries the rule for batches at `url` by one call. Returns for each question the time before the query, None
        if the policy does not allow it. Raises `Unavailable` without a readable answer."""
        queried_ms = self._now_ms()
        wanted: list[JsonValue] = [{"action": each.action, "resource": each.resource()} for each in questions]
        result = await self._result(url, {**_about(actor), "requests": wanted})
        if not isinstance(result, list):
            raise _unreadable(
                url, "the result of the policy's rule must list the numbers of the requests that are allowed"
            )
        allowed: set[int] = set()
        for number in result:
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(questions):
                raise _unreadable(
                    url, f"the list of allowed requests must have only integers from 0 to {len(questions) - 1}"
                )
            allowed.add(number)
        return {question: queried_ms if place in allowed else None for place, question in enumerate(questions)}

    async def _result(self, url: str, given: JsonObject) -> JsonValue:
        """Sends an input to the rule at a URL, and returns the result. Raises `Unavailable` if the policy can't be
        queried, does not respond completely in time, or responds with another status than 200, or with something else
        than a result in JSON."""
        try:
            response = await self._send(url, dumps({"input": given}))
        except StoreError as error:
            raise Unavailable(
                f"It is unknown whether the policy allows this request, since it could not be queried: {error}"
            ) from error
        if response.status != 200:
            raise _unreadable(url, f"the policy answered with status {response.status}")
        try:
            document = loads(response.body)
        except MalformedJson as error:
            raise _unreadable(url, "expected JSON") from error
        if not isinstance(document, dict) or "result" not in document:
            raise _unreadable(url, "the policy's rule has no result: is the policy loaded, and does it have a default?")
        return document["result"]


def _about(actor: Actor) -> JsonObject:
    """Returns the part of a rule's input that describes the actor and the realm."""
    return {"actor": actor.to_json(), "context": {"realm": actor.realm}}


def _unreadable(url: str, reason: str) -> Unavailable:
    """Returns the error for an answer of the policy at a URL that has another form than the rule must return."""
    host = urlsplit(url).netloc
    return Unavailable(
        f"The answer of the policy at {host}, whether this request is allowed, is not readable: {reason}"
    )


class WireSend:
    """Sends questions to the policy's server over connections that are kept, for one event loop at a time. No call
    takes longer than `timeout_s`, repetitions included. It follows no redirects, and uses no proxy."""

    def __init__(self, timeout_s: float, token: str | None = None, ca_bundle: str | None = None) -> None:
        self._timeout_s = timeout_s
        self._headers = {"content-type": "application/json", "accept": "application/json"}
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"
        settings = ConnectionSettings(
            ca_bundle=ca_bundle,
            connect_timeout_s=timeout_s,
            idle_timeout_s=timeout_s,
            exchange_timeout_s=timeout_s,
            max_connections=CONCURRENT_CALLS,
            max_answer_bytes=MAX_ANSWER_BYTES,
        )
        self._pools = OriginPools("policy", settings)

    async def send(self, url: str, body: bytes) -> Response:
        """Sends a JSON body to a URL, a second time if there is no complete response, and returns the response. Raises
        `StoreError` if none comes in time."""
        try:
            async with asyncio.timeout(self._timeout_s):
                try:
                    return await self._pools.exchange("POST", url, self._headers, body)
                except StoreUnavailable:
                    # A server may close an idle connection just when a question is sent, which may be sent twice.
                    return await self._pools.exchange("POST", url, self._headers, body)
        except TimeoutError as error:
            host = urlsplit(url).netloc
            raise StoreUnavailable(f"the policy's server {host} did not answer within {self._timeout_s:g} s") from error

    async def close(self) -> None:
        """Closes the connections to the policy's server that belong to this event loop, and forgets any of another
        loop."""
        await self._pools.close()


def load_policy_agent(environment: Mapping[str, str], runtime: Runtime) -> tuple[PolicyAgent, WireSend]:
    """Makes the policy that variables name, and what sends its questions, which the caller closes. Reads the file with
    a token, if a variable names one, and sends nothing. Raises `ValueError`, which names a variable, for an invalid
    configuration, and without the URL of the rule for one question."""
    urls = []
    for variable in (OPA_URL, OPA_BATCH_URL):
        url = environment.get(variable.name) or None
        try:
            urls.append(url if url is None else checked_url(url, plain_loopback=True).geturl())
        except StoreError as error:
            raise ValueError(f"{variable.name}: {error}; http is allowed only for a URL of this machine") from error
    [url, batch_url] = urls
    if url is None:
        raise ValueError(f"{OPA_BATCH_URL.name} is set, and {OPA_URL.name} is not")
    token = None
    if environment.get(OPA_TOKEN_FILE.name):
        token = _read_token(OPA_TOKEN_FILE.read(environment))
    send = WireSend(OPA_TIMEOUT.read(environment), token, environment.get(OPA_CA.name) or None)
    return PolicyAgent(url, batch_url, send.send, runtime.now_ms, OPA_CACHE.read(environment) * 1_000), send


def _read_token(path: str) -> str:
    """Reads the bearer token in a file. Raises `ValueError`, which names the variable, if it can't be read, or is not
    one line of printable ASCII without blanks, of at most `MAX_TOKEN_BYTES`."""
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_TOKEN_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{OPA_TOKEN_FILE.name}: {error}") from error
    token = text.strip().decode("ascii", "replace")
    if not token or len(text) > MAX_TOKEN_BYTES or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError(
            f"{OPA_TOKEN_FILE.name}: {path} holds no token: expected one line of printable ASCII without blanks, at "
            f"most {MAX_TOKEN_BYTES:,} bytes"
        )
    return token
