"""Events at a real broker of Kafka: they arrive in the order of each table, though the broker is killed; over TLS with
a login; and a message that it refuses is not confused with a topic that it lacks."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from json import loads
from pathlib import Path

import pytest

from arco_catalog.operations.events import event_of
from arco_catalog.operations.feed import read_feed
from arco_catalog.operations.open import build_catalog
from arco_catalog.state.subscription import Subscription, dead_letters
from arco_catalog.upkeep.delivery.kafka import KafkaTopic
from arco_catalog.upkeep.delivery.sink import EventRefused, Message, ReceiverUnreachable
from arco_catalog.upkeep.delivery.sinks import sinks_from
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import ANY
from tests.engines.kafka_connect.kafka import JARS, Kafka, broker_starts
from tests.support.certificates import write_certificate
from tests.support.kafka_cluster import messages_in
from tests.upkeep.delivery.test_killed_deliverers import NAME, Feeds

pytestmark = [pytest.mark.slow, pytest.mark.optional(f"{JARS}/complete")]

TOPIC = "changes"
USER, PASSWORD = "arco", "a-password"
HOURS_MS = 2 * 3_600_000
Starts = Callable[[], AbstractContextManager[Kafka]]


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """The broker's certificate; the key is in the same folder."""
    write_certificate(tmp_path / "broker.crt", tmp_path / "broker.key", "127.0.0.1")
    return tmp_path / "broker.crt"


@pytest.fixture
def starts(tmp_path: Path, certificate: Path) -> Iterator[Starts]:
    both = tmp_path / "both.pem"
    both.write_text(certificate.with_suffix(".key").read_text() + certificate.read_text())
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    secured = {
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{module} required user_{USER}="{PASSWORD}";',
        "listener.name.sasl_ssl.ssl.keystore.type": "PEM",
        "listener.name.sasl_ssl.ssl.keystore.location": str(both),
    }
    with broker_starts(tmp_path, secured) as start:
        yield start


def environment_of(kafka: Kafka, *properties: str, address: str | None = None) -> dict[str, str]:
    """The environment of a worker that sends to a broker, with more properties."""
    file = kafka.scratch / "client.properties"
    file.write_text("\n".join([f"bootstrap.servers={address or kafka.address}", *properties]))
    return {"ARCO_KAFKA_PROPERTIES": str(file)}


async def work(feeds: Feeds, environment: dict[str, str]) -> None:
    """Lets a worker of a new process run until it is idle, and two hours pass."""
    service = feeds.service
    catalog = build_catalog(service.settings, service.store, "memory:///", (), service.clock)
    await task_worker(catalog, sinks=sinks_from(environment, service.clock.now_ms)).run_until_idle()
    service.clock.ms += HOURS_MS


async def subscribed(feeds: Feeds) -> Subscription:
    """Makes the topic the receiver of the subscription."""
    state, before = feeds.service.session().state, await feeds.subscription()
    made = Subscription(NAME, before.id, f"kafka:{TOPIC}", 0, None, before.created_ms)
    await feeds.service.store.put(state.paths.subscription(NAME), made.body, ANY)
    return made


async def test_all_events_arrive_in_order_though_the_broker_is_killed(starts: Starts) -> None:
    feeds = await Feeds().start()
    subscription = await subscribed(feeds)
    with starts() as kafka:
        kafka.create_topics(TOPIC)
        environment = environment_of(kafka)
    page = await read_feed(feeds.service.session().state, None, 10_000)
    first_number = next(each.number for each in page.records if event_of(each) is not None)
    await work(feeds, environment)
    down = await feeds.subscription()
    assert down.cursor < first_number
    assert "Connection refused" in (down.problem or "")
    assert down.tries == 0, "an outage does not count"

    with starts() as kafka:
        await work(feeds, environment)
        received = messages_in(TOPIC, {"bootstrap.servers": kafka.address})

    assert await feeds.is_done()
    ids = [str(loads(each.value() or b"{}")["id"]) for each in received]
    assert sorted(ids) == sorted(await feeds.expected())
    for key in {each.key() for each in received}:
        of_key = [each for each in received if each.key() == key]
        assert len({each.partition() for each in of_key}) == 1
        sequences = [str(loads(each.value() or b"{}")["sequence"]) for each in of_key]
        assert sequences == sorted(sequences)
    letters = dead_letters(feeds.service.session().state, subscription.id)
    assert [letter async for _, letter in letters] == []


async def test_a_login_over_tls_decides_who_may_send(starts: Starts, certificate: Path) -> None:
    secure = ("security.protocol=SASL_SSL", f"ssl.ca.location={certificate}", "sasl.mechanisms=PLAIN")
    login = (f"sasl.username={USER}", f"sasl.password={PASSWORD}")
    message = Message("1", "an-entity", b"{}")
    with starts() as kafka:
        kafka.create_topics(TOPIC)

        async def send(*properties: str) -> None:
            environment = environment_of(kafka, *properties, address=kafka.secure_address)
            topic = KafkaTopic(f"kafka:{TOPIC}", environment)
            try:
                await topic.send(message)
            finally:
                await topic.close()

        await send(*secure, *login)
        with pytest.raises(ReceiverUnreachable, match="Authentication failed") as wrong:
            await send(*secure, login[0], "sasl.password=another")
        with pytest.raises(ReceiverUnreachable, match="certificate verify failed"):
            await send(secure[0], secure[2], *login)

        assert "another" not in str(wrong.value)
        [received] = messages_in(TOPIC, {"bootstrap.servers": kafka.address})
    assert (received.key(), received.value()) == (b"an-entity", b"{}")


async def test_a_message_that_is_refused_is_not_a_topic_that_is_missing(starts: Starts) -> None:
    with starts() as kafka:
        kafka.create_topics("small", max_message_bytes="2000")
        environment = environment_of(kafka)
        small, missing = KafkaTopic("kafka:small", environment), KafkaTopic("kafka:missing", environment)
        with pytest.raises(EventRefused, match="too large"):
            await small.send(Message("1", None, bytes(3000)))
        await small.send(Message("2", None, bytes(1000)))
        with pytest.raises(ReceiverUnreachable, match="Unknown topic"):
            await missing.send(Message("1", None, b"{}"))
        await small.close()
        await missing.close()
