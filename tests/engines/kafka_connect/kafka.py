"""Kafka in processes of its own, on loopback: a broker that is its own controller (KRaft), producers, and workers of
Kafka Connect with Iceberg's sink. All run with the jars of `tools/kafkaconnect/pom.xml`."""

import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.demo.java import java_home
from tools.support.environment import PROJECT
from tools.support.ports import reserved_port

JARS = ".jars/kafka-connect"
JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
COMMAND_S = 300.0
START_S = 300.0
PARTITIONS = 2

BROKER = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
}
WORKER = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter.schemas.enable": "false",
    "offset.flush.interval.ms": "1000",
    "listeners": "http://127.0.0.1:0",
}
SINK = {
    "name": "sink",
    "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
    "tasks.max": str(PARTITIONS),
    "topics": "rows",
    "iceberg.catalog.type": "rest",
    "iceberg.control.topic": "control-iceberg",
    "iceberg.control.commit.interval-ms": "1000",
    "iceberg.control.commit.timeout-ms": "10000",
    "consumer.override.auto.offset.reset": "earliest",
}
"""The settings of docs/engines/kafka-connect.md, with commits as often as once a second."""


@dataclass(frozen=True)
class Kafka:
    """A running broker, and the folder for the files and logs of its clients."""

    address: str
    scratch: Path
    secure_address: str

    def create_topics(self, *names: str, **settings: str) -> None:
        """Creates topics of two partitions each, with these settings."""
        configured = [
            part for name, value in settings.items() for part in ("--config", f"{name.replace('_', '.')}={value}")
        ]
        for name in names:
            command = ("--create", "--topic", name, "--partitions", str(PARTITIONS), *configured)
            _run("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", self.address, *command)

    @contextmanager
    def producer(self, topic: str) -> Iterator[Callable[[Iterable[Mapping[str, object]]], None]]:
        """Yields what sends rows as JSON to a topic. The broker has them all when the context ends."""
        command = _java("org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", self.address, "--topic", topic)
        with (
            (self.scratch / "producer.log").open("ab") as log,
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, text=True) as process,
        ):

            def send(rows: Iterable[Mapping[str, object]]) -> None:
                assert process.stdin is not None
                process.stdin.writelines(f"{json.dumps(row)}\n" for row in rows)
                process.stdin.flush()

            try:
                yield send
                process.communicate(timeout=COMMAND_S)
            finally:
                process.kill()
        if process.returncode != 0:
            raise RuntimeError(f"the producer ended with {process.returncode}")

    @contextmanager
    def connect(self, catalog: Mapping[str, str], table: str) -> Iterator[subprocess.Popen[bytes]]:
        """Runs a worker whose sink writes the topic `rows` to a table, until the context ends or the process is killed.

        Its log is `connect.log` in the folder, to which each worker appends."""
        worker = self.scratch / "worker.properties"
        offsets = str(self.scratch / "offsets")
        _write(worker, {**WORKER, "bootstrap.servers": self.address, "offset.storage.file.filename": offsets})
        sink = self.scratch / "sink.properties"
        _write(sink, {**SINK, "iceberg.tables": table, **{f"iceberg.catalog.{k}": v for k, v in catalog.items()}})
        command = _java("org.apache.kafka.connect.cli.ConnectStandalone", str(worker), str(sink))
        with self.log.open("ab") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
            try:
                yield process
            finally:
                process.kill()

    @property
    def log(self) -> Path:
        """What all workers have logged."""
        return self.scratch / "connect.log"


@contextmanager
def broker(scratch: Path) -> Iterator[Kafka]:
    """Runs a broker. Its log is `scratch/broker.log`. Raises `RuntimeError` if it does not start."""
    with broker_starts(scratch, {}) as start, start() as running:
        yield running


@contextmanager
def broker_starts(scratch: Path, secured: Mapping[str, str]) -> Iterator[Callable[[], AbstractContextManager[Kafka]]]:
    """Yields what runs a broker, each time with the same addresses and data; `secured` are the properties of a listener
    with TLS and logins. Raises `RuntimeError` if it does not start."""
    with ExitStack() as stack:
        port, controller, secure = (stack.enter_context(reserved_port()) for _ in range(3))
        address, secure_address = f"127.0.0.1:{port}", f"127.0.0.1:{secure}"
        properties = scratch / "broker.properties"
        listeners = f"PLAINTEXT://{address},CONTROLLER://127.0.0.1:{controller}"
        if secured:
            listeners += f",SASL_SSL://{secure_address}"
        here = {"listeners": listeners, "controller.quorum.voters": f"1@127.0.0.1:{controller}"}
        _write(properties, {**BROKER, **here, **secured, "log.dirs": str(scratch / "data")})
        _run("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(properties))

        @contextmanager
        def start() -> Iterator[Kafka]:
            with (
                (scratch / "broker.log").open("wb") as log,
                subprocess.Popen(_java("kafka.Kafka", str(properties)), stdout=log, stderr=log) as process,
            ):
                try:
                    _await_start(process, port, scratch / "broker.log")
                    yield Kafka(address, scratch, secure_address)
                finally:
                    process.kill()

        yield start


def _await_start(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.perf_counter() + START_S
    while time.perf_counter() < deadline:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError(f"the broker did not start:\n{log.read_text()[-4000:]}")


def _java(program: str, *arguments: str) -> list[str]:
    return [str(java_home() / "bin" / "java"), *JVM, "-cp", f"{PROJECT / JARS}/*", program, *arguments]


def _run(program: str, *arguments: str) -> None:
    """Runs a command to its end. Raises `RuntimeError` with what it printed if it fails."""
    done = subprocess.run(_java(program, *arguments), capture_output=True, text=True, timeout=COMMAND_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{program} ended with {done.returncode}: {done.stdout}{done.stderr}")


def _write(file: Path, properties: Mapping[str, str]) -> None:
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
