"""Deletions in batches: retries, the outcome of each key, and stores without batches."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from storage_backends import Applied, Deleted, StoreDenied, StoreError, StoreUnavailable, Unknown, Version
from storage_backends.azure.answers import AzureDialect
from storage_backends.s3.deletion import keys_in, md5_of, read_deletion, write_deletion
from storage_backends.wire.bulk import BatchAnswer, Batches
from storage_backends.wire.client import Client, Pauses
from storage_backends.wire.exchange import Ambiguous, Answer
from storage_backends.wire.http1 import Response
from storage_backends.wire.multipart import decode, encode, judge_parts

BUSY = StoreUnavailable("slow down")
Step = Mapping[str, StoreError] | Unknown | StoreError


class Server:
    """Answers batches with the given answers, then that all was deleted."""

    def __init__(self, *script: Step) -> None:
        self.script = [*script]
        self.batches: list[list[str]] = []
        self.alone: list[str] = []
        self.pauses: list[float] = []

    async def send(self, keys: Sequence[str]) -> BatchAnswer | Unknown:
        self.batches.append([*keys])
        step: Step = self.script.pop(0) if self.script else {}
        if isinstance(step, Unknown):
            return step
        if isinstance(step, StoreError):
            raise step
        return BatchAnswer(step, 7)

    async def delete(self, key: str) -> Applied:
        self.alone.append(key)
        return Applied(Version(""), 8)

    async def run(self, keys: Sequence[str], size: int = 1_000) -> Deleted:
        async def sleep(seconds: float) -> None:
            self.pauses.append(seconds)

        client = Client(lambda: asyncio.Future(), AzureDialect("container"), Pauses(sleep, lambda: 1.0))
        return await Batches(client, size, self.send, self.delete).run(keys)


async def test_keys_go_in_batches() -> None:
    server = Server()

    assert await server.run(["a", "b", "c"], size=2) == Deleted({}, 7)
    assert server.batches == [["a", "b"], ["c"]]


async def test_keys_that_the_store_was_too_busy_for_are_sent_again_after_a_pause() -> None:
    server = Server({"b": BUSY, "c": BUSY}, {"c": BUSY})

    assert await server.run(["a", "b", "c"]) == Deleted({}, 7)
    assert server.batches == [["a", "b", "c"], ["b", "c"], ["c"]]
    assert server.pauses == [0.05, 0.1]


async def test_a_key_that_stays_busy_is_left_in_the_end() -> None:
    server = Server(*[{"b": BUSY}] * 100)

    deleted = await server.run(["a", "b"])

    assert deleted.left == {"b": BUSY}
    assert len(server.batches) < 20


async def test_the_outcome_of_a_key_is_not_given_to_another() -> None:
    denied = StoreDenied("not yours")
    server = Server({"a": denied, "b": Ambiguous("a 500"), "c": BUSY})

    deleted = await server.run(["a", "b", "c", "d"])

    assert deleted.left == {"a": denied, "b": Unknown("a 500")}
    assert server.batches[1:] == [["c"]]


@pytest.mark.parametrize("failure", [StoreUnavailable("down"), StoreDenied("not yours"), Unknown("lost")])
async def test_a_batch_that_fails_leaves_its_keys_and_the_next_is_sent(failure: Step) -> None:
    server = Server(failure)

    deleted = await server.run(["a", "b", "c"], size=2)

    assert deleted.left == {"a": failure, "b": failure}
    assert (server.batches, server.alone) == ([["a", "b"], ["c"]], [])


async def test_where_no_batches_are_known_each_key_goes_by_itself() -> None:
    server = Server(StoreError("status 501 NotImplemented"))

    assert await server.run(["a", "b"]) == Deleted({}, 8)
    assert server.alone == ["a", "b"]


def test_the_keys_of_a_deletion_are_escaped() -> None:
    keys = ["a&b<c>.parquet", "naïve/日本語", "a b"]

    body = write_deletion(keys)

    assert b"a&amp;b&lt;c&gt;.parquet" in body
    assert keys_in(body) == keys
    assert md5_of(b"") == "1B2M2Y8AsgTpgAmY7PhCfg=="


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        ("AccessDenied", StoreDenied),
        ("SlowDown", StoreUnavailable),
        ("InternalError", Ambiguous),
        ("ServiceUnavailable", Ambiguous),
        ("InvalidObjectState", StoreError),
    ],
)
def test_the_error_codes_of_s3_for_a_key(code: str, meaning: type[StoreError]) -> None:
    errors = f"<Error><Key>a&amp;b</Key><Code>{code}</Code><Message>why</Message></Error>"
    gone = "<Deleted><Key>c</Key></Deleted><Error><Key>d</Key><Code>NoSuchKey</Code></Error>"

    failures = read_deletion(f'<DeleteResult xmlns="urn:x">{gone}{errors}</DeleteResult>'.encode())

    assert [*failures] == ["a&b"]
    assert type(failures["a&b"]) is meaning


@pytest.mark.parametrize("body", [b"", b"<DeleteResult>", b"<Error><Code>InternalError</Code></Error>"])
def test_an_incomplete_answer_proves_no_deletion(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"XML|root"):
        read_deletion(body)


def part(number: int, text: str) -> str:
    return f"--x\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n{text}\r\n"


def multipart(*parts: str) -> Answer:
    body = "".join(parts) + "--x--\r\n"
    return Answer(202, Response(202, {"content-type": "multipart/mixed; boundary=x"}, body.encode()), 7)


def test_answers_in_an_answer_are_known_by_their_numbers() -> None:
    answer = multipart(
        part(2, "HTTP/1.1 403 No\r\nx-ms-error-code: AuthorizationFailure\r\n\r\n<Error/>"),
        part(0, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"),
        part(1, "HTTP/1.1 404 Gone\r\nx-ms-error-code: BlobNotFound\r\n\r\n"),
        part(3, "HTTP/1.1 503 Busy\r\nx-ms-error-code: ServerBusy\r\n\r\n"),
        part(4, "HTTP/1.1 500 Oh\r\nx-ms-error-code: InternalError\r\n\r\n"),
        part(5, "no HTTP"),
    )

    judged = judge_parts([*"abcdefg"], answer, AzureDialect("container"))

    assert isinstance(judged, BatchAnswer)
    assert {key: type(error) for key, error in judged.failures.items()} == {
        "c": StoreDenied,
        "d": StoreUnavailable,
        "e": Ambiguous,
        "f": Ambiguous,
        "g": Ambiguous,
    }


def test_an_answer_in_one_part_has_no_outcomes_of_keys() -> None:
    answer = Answer(200, Response(200, {"content-type": "text/html"}, b"<html>"), 7)

    assert isinstance(judge_parts(["a"], answer, AzureDialect("container")), Unknown)


def test_requests_in_a_request_are_read_as_they_were_written() -> None:
    heads = [b"DELETE /a HTTP/1.1\r\n\r\n", b"DELETE /b HTTP/1.1\r\n\r\n"]

    body = encode(heads)

    assert body.count(b"Content-ID") == 2
    assert all(head in body for head in heads)
    assert decode(Response(200, {"content-type": "multipart/mixed; boundary=batch-of-requests"}, body), "GET") == {}
