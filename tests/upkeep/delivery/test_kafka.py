"""Topics of Kafka take events: from brokers in this process, which speak Kafka's protocol. The test of a real broker is
tests/engines/kafka_connect/test_events.py."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer

from arco_catalog.iceberg.json import JsonObject, dumps, loads
from arco_catalog.planning.cloud_events import encode
from arco_catalog.upkeep.delivery import kafka
from arco_catalog.upkeep.delivery.kafka import KafkaTopic, read_properties
from arco_catalog.upkeep.delivery.queues import queue_of
from arco_catalog.upkeep.delivery.sink import DeliveryError, EventRefused, Message, ReceiverUnreachable
from storage_backends.clock import system_now_ms
from tests.support.kafka_cluster import Cluster, cluster
from tools.support.ports import free_port

NAME, TOPIC = "kafka:changes", "changes"
MESSAGE = Message("1", None, b"{}")
ENTITIES = ("01KDVDNA000000000000000006", "01KDVDNA000000000000000007", "01KDVDNA000000000000000008")


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path) as running:
        yield running


def properties_in(folder: Path, text: str) -> dict[str, str]:
    """The environment of a worker whose file of properties has this text."""
    file = folder / "kafka.properties"
    file.write_text(text)
    return {"ARCO_KAFKA_PROPERTIES": str(file)}


async def send(environment: Mapping[str, str], *messages: Message) -> None:
    """Sends messages to the topic by one receiver, which is closed after that."""
    topic = queue_of(NAME, environment, system_now_ms)
    assert topic is not None
    try:
        for message in messages:
            await topic.send(message)
    finally:
        await topic.close()


async def problem_of(environment: Mapping[str, str], message: Message = MESSAGE) -> DeliveryError:
    """The error of a message that is not accepted."""
    with pytest.raises(DeliveryError) as failed:
        await send(environment, message)
    return failed.value


async def test_a_topic_takes_a_cloud_event_in_structured_mode(brokers: Cluster) -> None:
    event: JsonObject = {"id": "1", "subject": "ü", "partitionkey": ENTITIES[0]}

    await send(brokers.environment, Message.of(event))

    [received] = brokers.messages(TOPIC)
    assert loads(received.value() or b"") == event
    assert received.value() == encode(event)
    assert received.key() == ENTITIES[0].encode()
    assert received.headers() == [("content-type", b"application/cloudevents+json; charset=utf-8")]


async def test_the_messages_of_an_entity_have_one_partition_and_their_order(brokers: Cluster) -> None:
    keys = (*ENTITIES, None)
    sent = [Message(str(number), keys[number % len(keys)], dumps({"id": number})) for number in range(40)]

    await send(brokers.environment, *sent)

    received = brokers.messages(TOPIC)
    assert len(received) == len(sent)
    for key in keys:
        of_key = [each for each in received if each.key() == (key or "catalog").encode()]
        assert [each.value() for each in of_key] == [each.body for each in sent if each.entity == key]
        assert len({each.partition() for each in of_key}) == 1
    assert len({each.partition() for each in received}) > 1, "keys are spread over partitions"


async def test_a_message_that_is_too_large_is_refused(brokers: Cluster) -> None:
    refused = await problem_of(brokers.environment, Message("1", None, b"x" * 1_000_001))

    assert type(refused) is EventRefused
    assert "too large" in str(refused)
    assert brokers.messages(TOPIC) == []


async def test_a_topic_takes_messages_after_one_that_failed(brokers: Cluster) -> None:
    topic = KafkaTopic(NAME, brokers.environment)
    with pytest.raises(EventRefused):
        await topic.send(Message("1", None, b"x" * 1_000_001))
    await topic.send(Message("2", None, b"{}"))
    await topic.close()
    await topic.send(Message("3", None, b"{}"))
    await topic.close()

    assert [each.value() for each in brokers.messages(TOPIC)] == [b"{}", b"{}"]


async def test_a_producer_that_failed_is_replaced(brokers: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Producer] = []

    def produce(settings: dict[str, object]) -> Producer:
        made.append(Producer(settings))
        return made[-1]

    monkeypatch.setattr(kafka, "Producer", produce)
    topic = KafkaTopic(NAME, brokers.environment)
    await topic.send(MESSAGE)
    await topic.send(MESSAGE)
    assert len(made) == 1
    with pytest.raises(EventRefused):
        await topic.send(Message("1", None, b"x" * 1_000_001))
    await topic.send(MESSAGE)
    await topic.close()

    assert len(made) == 2, "after a fatal error, a producer sends nothing more"


async def test_an_outage_is_not_the_event_s_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "SETTINGS", {**kafka.SETTINGS, "message.timeout.ms": 300})

    problem = await problem_of(properties_in(tmp_path, f"bootstrap.servers=127.0.0.1:{free_port()}"))

    assert type(problem) is ReceiverUnreachable
    assert "timed out" in str(problem)


async def test_a_message_that_timed_out_has_the_reason_with_it(
    brokers: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    class TimedOutProducer(Producer):
        def __init__(self, settings: dict[str, Callable[[KafkaError], None]]) -> None:
            super().__init__(settings)
            self.report = settings["error_cb"]

        def produce(self, *args: object, **named: object) -> None:
            on_delivery = named["on_delivery"]
            assert callable(on_delivery)
            self.report(KafkaError(KafkaError._AUTHENTICATION, "the login failed"))
            self.report(KafkaError(KafkaError._ALL_BROKERS_DOWN, "3/3 brokers are down"))
            on_delivery(KafkaError(KafkaError._MSG_TIMED_OUT), None)

    monkeypatch.setattr(kafka, "Producer", TimedOutProducer)

    assert str(await problem_of(brokers.environment)).endswith("Message timed out (the login failed)")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, EventRefused),
        (KafkaError.INVALID_RECORD, EventRefused),
        (KafkaError.NOT_ENOUGH_REPLICAS, ReceiverUnreachable),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ReceiverUnreachable),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, ReceiverUnreachable),
        (KafkaError._AUTHENTICATION, ReceiverUnreachable),
    ],
)
async def test_a_code_of_kafka_decides_what_comes_next(
    brokers: Cluster, monkeypatch: pytest.MonkeyPatch, code: int, error: type[DeliveryError]
) -> None:
    class FailingProducer(Producer):
        def produce(self, *args: object, **named: object) -> None:
            on_delivery = named["on_delivery"]
            assert callable(on_delivery)
            on_delivery(KafkaError(code), None)

    monkeypatch.setattr(kafka, "Producer", FailingProducer)

    assert type(await problem_of(brokers.environment)) is error


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("client.id=a", "no bootstrap.servers"),
        ("bootstrap.servers=127.0.0.1:1\nsasl.password secret", "line 2 is not NAME=VALUE"),
        (
            "bootstrap.servers=127.0.0.1:1\nno.such=secret",
            'No such configuration property: "no.such"',
        ),
        ("#" * 70_000, "more than 65,536 bytes"),
    ],
)
async def test_a_file_that_can_t_be_used_is_a_problem_of_the_subscription(
    tmp_path: Path, text: str, problem: str
) -> None:
    raised = await problem_of(properties_in(tmp_path, text))

    assert type(raised) is ReceiverUnreachable
    assert problem in str(raised)
    assert "secret" not in str(raised)


async def test_without_a_file_the_variable_is_named() -> None:
    assert "ARCO_KAFKA_PROPERTIES names no file" in str(await problem_of({}))
    assert "No such file" in str(await problem_of({"ARCO_KAFKA_PROPERTIES": "/none"}))


async def test_properties_of_the_file_never_weaken_a_delivery(brokers: Cluster) -> None:
    with brokers.properties.open("a") as file:
        file.write("acks=0\nenable.idempotence=false\nmessage.timeout.ms=0\n")

    settings = KafkaTopic(NAME, brokers.environment)._settings()

    assert (settings["acks"], settings["enable.idempotence"], settings["message.timeout.ms"]) == ("all", True, 15_000)
    assert settings["client.id"] == "arco"


def test_properties_have_names_values_and_comments(tmp_path: Path) -> None:
    file = tmp_path / "p"
    file.write_text("# a = b\n\n  bootstrap.servers = h:1,i:2 \nsasl.password=a=b#c\n")
    assert read_properties(str(file)) == {"bootstrap.servers": "h:1,i:2", "sasl.password": "a=b#c"}


@pytest.mark.parametrize(
    "name", ["kafka:", "kafka:a/b", "kafka:.", "kafka:..", "kafka://host:9092/t", f"kafka:{'x' * 250}"]
)
def test_what_is_no_topic_is_refused_with_the_form_of_one(name: str) -> None:
    with pytest.raises(ValueError, match="a topic of Kafka is kafka:TOPIC"):
        queue_of(name, {}, system_now_ms)
    with pytest.raises(ValueError, match="not a topic of Kafka"):
        KafkaTopic(name, {})


def test_the_library_is_imported_for_topics_of_kafka_alone(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from arco_catalog.upkeep.delivery import executor, sinks, webhook\n"
        "from arco_catalog.upkeep.delivery.queues import queue_of\n"
        "queue_of('arn:aws:sqs:eu-west-1:123456789012:x', {}, int)\n"
        "assert 'confluent_kafka' not in sys.modules\n"
        "sys.modules['confluent_kafka'] = None\n"
        "try:\n    queue_of('kafka:x', {}, int)\n"
        "except ValueError as error:\n    assert \"install the extra 'kafka'\" in str(error), error\n"
        "else:\n    raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ}, timeout=60)
