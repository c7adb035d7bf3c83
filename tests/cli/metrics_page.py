"""The page of metrics of a server, as a scrape gets it."""

import asyncio
import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.cli.process import TIMEOUT_SECONDS


async def scrape(port: int) -> dict[str, dict[tuple[str, ...], float]]:
    """The values of each sample, by name and values of labels."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0"}
    )

    def read() -> str:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            return str(answer.read().decode())

    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(await asyncio.to_thread(read)):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found
