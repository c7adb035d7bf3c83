"""Starts Spark on this machine, in this process: two cores, loopback only, no UI, its log in a file."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkConf, SparkContext

from tools.demo.java import java_home, stderr_in
from tools.support.environment import PROJECT, exported


def environment() -> dict[str, str]:
    """What Spark has to find in the environment before it starts."""
    return {
        "JAVA_HOME": str(java_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


def settings(scratch: Path) -> dict[str, str]:
    """Spark's own settings; everything it keeps lies in `scratch`, its log in `scratch/spark.log`."""
    log4j = PROJECT / "tools" / "demo" / "log4j2.properties"
    logging = f"-Dlog4j2.configurationFile={log4j} -Ddemo.log={scratch / 'spark.log'}"
    return {
        "spark.master": "local[2]",
        "spark.app.name": "arco-reconcile",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": logging,
        "spark.local.dir": str(scratch),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def submit_arguments(scratch: Path) -> str:
    """The value of PYSPARK_SUBMIT_ARGS by which a program that starts Spark itself gets these settings."""
    conf = [text for name, value in settings(scratch).items() for text in ("--conf", f"{name}={value}")]
    return shlex.join([*conf, "pyspark-shell"])


@contextmanager
def local_spark(scratch: Path) -> Iterator[SparkContext]:
    """A running Spark. The environment is as it was afterwards."""
    conf = SparkConf().setAll([*settings(scratch).items(), ("spark.executorEnv.PYTHONPATH", str(PROJECT))])
    with exported(environment()), stderr_in(scratch / "spark.stderr"):
        spark = SparkContext(conf=conf)
    try:
        yield spark
    finally:
        spark.stop()
