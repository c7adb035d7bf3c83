"""Dashboard, alerts and Prometheus's configuration name what the page of metrics has, and Prometheus accepts them."""

import asyncio
import json
import re
import subprocess
import urllib.parse
import urllib.request
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

import pytest
import yaml

from arco_catalog.telemetry.metrics import METRICS, Series
from tests.cli.process import serving
from tests.packaging.dockerfile import PROJECT
from tests.packaging.test_deploy import services
from tools import dashboard
from tools.support.ports import free_port

DEPLOY = PROJECT / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yaml"
CONFIGURATION = DEPLOY / "prometheus" / "prometheus.yaml"
TESTS = PROJECT / "tests" / "packaging" / "prometheus" / "alerts_test.yaml"
SERIES: Mapping[str, Series] = {metric.series.name: metric.series for metric in METRICS if metric.series is not None}
FIELDS = {metric.field for metric in METRICS}
TIMEOUT_SECONDS = 30.0


def rules() -> list[Mapping[str, Any]]:
    [group] = yaml.safe_load(ALERTS.read_text())["groups"]
    found: list[Mapping[str, Any]] = group["rules"]
    return found


def panels() -> list[Mapping[str, Any]]:
    """The graphs of the dashboard, without the titles of its rows."""
    document = json.loads(dashboard.FILE.read_text())
    return [panel for panel in document["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[str]:
    for panel in panels():
        for target in panel["targets"]:
            yield target["expr"]


def series_in(expression: str) -> set[str]:
    """The names of ours in an expression, without the endings of a histogram's samples."""
    named = set(re.findall(r"\barco_\w+", expression))
    return {name if name in SERIES else re.sub(r"_(bucket|sum|count)$", "", name) for name in named}


def labels_in(expression: str) -> set[str]:
    grouped = re.findall(r"by \(([^)]*)\)", expression)
    chosen = re.findall(r"[{,](\w+)(?:=~|!~|=|!=)", expression)
    return {label.strip() for labels in grouped for label in labels.split(",")} | set(chosen)


def test_the_dashboard_is_what_the_program_makes(capsys: pytest.CaptureFixture[str]) -> None:
    assert dashboard.main(["--check"]) == 0, capsys.readouterr().err


def test_a_dashboard_that_is_not_current_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = dashboard.FILE.read_text()
    monkeypatch.setattr(dashboard, "FILE", tmp_path / "made" / "arco.json")
    assert dashboard.main(["--check"]) == 1
    assert dashboard.main([]) == 0
    assert dashboard.FILE.read_text() == text


def test_each_metric_is_on_the_dashboard_and_nothing_else_is() -> None:
    assert {name for expression in expressions() for name in series_in(expression)} == set(SERIES)


@pytest.mark.parametrize("expression", [*expressions(), *(rule["expr"] for rule in rules())])
def test_each_label_in_an_expression_is_one_of_its_metrics(expression: str) -> None:
    known = {label for name in series_in(expression) for label in SERIES.get(name, Series(name, "gauge")).labels}
    assert labels_in(expression) <= known | {"job", "instance", "le"}


def test_graphs_do_not_overlap_and_each_line_has_its_own_letter() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels()]
    assert len(places) == len(set(places))
    for panel in panels():
        letters = [target["refId"] for target in panel["targets"]]
        assert len(letters) == len(set(letters)), panel["title"]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_names_metrics_that_there_are_and_how_bad_it_is(rule: Mapping[str, Any]) -> None:
    assert series_in(rule["expr"]) <= set(SERIES)
    assert series_in(rule["expr"]) or "up{" in rule["expr"]
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert rule["annotations"]["summary"]


def test_the_docs_have_each_alert_with_the_alarm_that_it_mirrors() -> None:
    rows = re.findall(
        r"(?m)^\| `(Arco\w+)` \| (?:`([\w-]+)`)? ?\|", (PROJECT / "docs" / "observability.md").read_text()
    )
    assert rows == [(rule["alert"], rule["labels"].get("alarm", "")) for rule in rules()]


def test_alerts_mirror_the_alarms_of_terraform() -> None:
    text = (PROJECT / "infra" / "alarms.tf").read_text()
    catalog = text[
        text.index("catalog_alarms = ") : text.index('resource "aws_cloudwatch_metric_alarm" "server_errors"')
    ]
    alarms = {*re.findall(r'(?m)^    "([\w-]+)" = {', catalog), "5xx"}
    mirrored = {rule["labels"]["alarm"]: rule["expr"] for rule in rules() if "alarm" in rule["labels"]}

    assert set(mirrored) == alarms
    for name, series in (
        ("tasks-due", "arco_tasks_due_age_seconds"),
        ("tasks-failed", "arco_tasks_failed_total"),
        ("leases-lost", "arco_leases_lost_total"),
        ("reconcile-age", "arco_reconcile_completed_timestamp_seconds"),
        ("collect-age", "arco_collection_completed_timestamp_seconds"),
        ("state-size", "arco_state_objects"),
    ):
        [field] = re.findall(rf'"{name}" = {{[^}}]*?metric = "(\w+)"', catalog)
        assert [metric.field for metric in METRICS if metric.series and metric.series.name == series] == [field]
        assert series in mirrored[name]
    assert re.findall(r'"tasks-due" = {[^}]*?threshold = (\d+)', catalog) == ["3600"]
    assert "> 3600" in mirrored["tasks-due"]
    for name in ("reconcile-age", "collect-age"):
        [(seconds, periods)] = re.findall(rf'"{name}" = {{[^}}]*?seconds = (\d+), periods = (\d+)', catalog)
        assert f"> {int(seconds) * int(periods)}" in mirrored[name]
    variables = (PROJECT / "infra" / "setting_variables.tf").read_text()
    [objects] = re.findall(r'"max_state_objects" {[^}]*?default\s*= (\d+)', variables)
    assert f"> {objects}" in mirrored["state-size"]
    threshold = text.partition('"aws_cloudwatch_metric_alarm" "server_errors"')[2].partition("threshold")[2].split()[1]
    assert f">= {threshold}" in mirrored["5xx"]


def test_graphs_and_alarms_of_terraform_name_metrics_that_there_are() -> None:
    infra = PROJECT / "infra"
    amazon = (infra / "alarms.tf").read_text() + (infra / "dashboard.tf").read_text()
    named = set(re.findall(r'metric = "(\w+)", of_any', amazon))
    for listed in re.findall(r"title = .*metrics = \[(\"[^\]]*)\]", amazon):
        named.update(re.findall(r'"(\w+)"', listed))
    others = "".join((infra / cloud / f"{file}.tf").read_text() for cloud, file in CLOUDS)
    named.update(re.findall(r"\b(?:jsonPayload|line)\.([A-Z]\w+)", others))
    [request] = re.findall(r"request_metric = {(.*?)}", others)
    named.update(re.findall(r'"(\w+)"', request))

    assert len(named) > 15
    assert named - {"Operation", "Warehouse"} <= FIELDS


CLOUDS = (("google", "queries"), ("google", "watching"), ("azure", "monitoring"))


def test_prometheus_scrapes_the_port_that_the_compose_file_gives_the_catalog() -> None:
    [job] = yaml.safe_load(CONFIGURATION.read_text())["scrape_configs"]
    [target] = job["static_configs"][0]["targets"]
    given = services(DEPLOY / "compose" / "compose.yaml")["catalog"]["environment"]
    assert target == f"catalog:{given['ARCO_METRICS_PORT']}"
    assert given["ARCO_METRICS_HOST"] == "0.0.0.0"
    assert job["job_name"] == "arco", "the alert on a server that is down names it"


@pytest.mark.optional("promtool")
@pytest.mark.parametrize(
    "arguments",
    [("check", "rules", ALERTS), ("check", "config", CONFIGURATION), ("test", "rules", TESTS)],
    ids=lambda arguments: " ".join(map(str, arguments[:2])),
)
def test_promtool_accepts(arguments: tuple[str | Path, ...]) -> None:
    checked = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_each_alert_is_tested_where_it_fires_and_where_it_does_not() -> None:
    tried = [each for test in yaml.safe_load(TESTS.read_text())["tests"] for each in test["alert_rule_test"]]
    for fires in (True, False):
        assert {each["alertname"] for each in tried if bool(each.get("exp_alerts")) is fires} == {
            rule["alert"] for rule in rules()
        }


async def ask(port: int, path: str, **query: str) -> Any:
    """What Prometheus's API answers; None while it starts."""
    url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}"

    def read() -> Any:
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
                return json.load(answer)["data"]
        except HTTPError as error:
            if error.code == 503:
                return None
            raise
        except URLError as error:
            if isinstance(error.reason, ConnectionError):
                return None
            raise

    return await asyncio.to_thread(read)


@pytest.mark.optional("prometheus", "promtool")
async def test_a_real_prometheus_scrapes_workers_and_answers_each_expression(tmp_path: Path) -> None:
    ours, its = free_port(), free_port()
    configuration = CONFIGURATION.read_text().replace("15s", "1s").replace("catalog:9464", f"127.0.0.1:{ours}")
    (tmp_path / "prometheus.yaml").write_text(configuration)
    (tmp_path / "alerts.yaml").write_text(ALERTS.read_text())
    async with serving(f"file:{tmp_path}/store", "--workers", "2", "--metrics-port", str(ours)) as server:
        for _ in range(5):
            await server.call("GET", "/v1/config")
        lint = await asyncio.to_thread(_lint, ours)
        prometheus = await asyncio.create_subprocess_exec(
            "prometheus",
            f"--config.file={tmp_path}/prometheus.yaml",
            f"--storage.tsdb.path={tmp_path}/data",
            f"--web.listen-address=127.0.0.1:{its}",
            stdout=DEVNULL,
            stderr=PIPE,
        )
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                while not (found := await ask(its, "query", query="sum(arco_requests_total)")) or not found["result"]:
                    assert prometheus.returncode is None
            answers = {
                expression: await ask(its, "query", query=_without_variables(expression))
                for expression in expressions()
            }
            targets = await ask(its, "targets")
            loaded = await ask(its, "rules")
        finally:
            if prometheus.returncode is None:
                prometheus.kill()
            await prometheus.communicate()

    assert lint == (0, b"")
    assert found["result"][0]["value"][1] == "5"
    assert [(target["health"], target["lastError"]) for target in targets["activeTargets"]] == [("up", "")]
    assert [rule["name"] for rule in loaded["groups"][0]["rules"]] == [rule["alert"] for rule in rules()]
    assert all(answer["resultType"] == "vector" for answer in answers.values())


def _lint(port: int) -> tuple[int, bytes]:
    """What promtool has against the page."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=TIMEOUT_SECONDS) as answer:
        page = answer.read()
    command = ["promtool", "check", "metrics"]
    checked = subprocess.run(command, input=page, capture_output=True, timeout=60, check=False)
    return checked.returncode, checked.stdout + checked.stderr


def _without_variables(expression: str) -> str:
    """The expression as Grafana sends it for all jobs."""
    return expression.replace("$job", ".*").replace("$__rate_interval", "1m")
