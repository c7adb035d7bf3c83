"""Brokers of Kafka in this process: the ones that librdkafka has for tests, which speak Kafka's protocol on loopback.
They keep messages in memory, create each topic that is written to, and authenticate no client."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

BROKERS = 3
WAIT_S = 60.0


@dataclass(frozen=True)
class Cluster:
    """Running brokers, by their addresses, and a file of properties with them."""

    addresses: str
    properties: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a worker that sends to these brokers."""
        return {"ARCO_KAFKA_PROPERTIES": str(self.properties)}

    def messages(self, topic: str, **settings: str) -> Sequence[Message]:
        """All messages in a topic, partition after partition. Consumers may need more `settings` to log in."""
        return messages_in(topic, {"bootstrap.servers": self.addresses, **settings})


def messages_in(topic: str, settings: dict[str, str]) -> Sequence[Message]:
    """All messages in a topic at the brokers that the settings name, partition after partition."""
    consumer = Consumer({**settings, "group.id": "tests", "log_level": 0, "enable.partition.eof": True})
    try:
        partitions = consumer.list_topics(topic, WAIT_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        found: list[Message] = []
        ended = 0
        while ended < len(partitions):
            message = consumer.poll(WAIT_S)
            if message is None:
                raise TimeoutError(f"no end of {topic} came")
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                ended += 1
        return sorted(found, key=lambda each: (each.partition() or 0, each.offset() or 0))
    finally:
        consumer.close()


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Runs brokers until the context ends."""
    holder = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": BROKERS, "log_level": 0})
    brokers = holder.list_topics(timeout=WAIT_S).brokers.values()
    addresses = ",".join(f"{each.host}:{each.port}" for each in brokers)
    properties = folder / "client.properties"
    properties.write_text(f"# the brokers\nbootstrap.servers = {addresses}\n\nclient.id=arco\n")
    yield Cluster(addresses, properties)
    holder.close()
