"""The options of the command line and of the environment."""

import argparse
from pathlib import Path

import pytest

from arco_catalog.cli.parser import Parser, parse
from arco_catalog.cli.program import COMMANDS as PROGRAM
from arco_catalog.cli.program import SERVE, build_parser, main
from arco_catalog.cli.serve_options import ServeOptions
from arco_catalog.config.durations import parse_duration
from arco_catalog.config.parsing import parse_body_size, parse_separator
from arco_catalog.operations.environment import settings_from_env
from arco_catalog.planning.upkeep_settings import PurgeMode, PurgeSettings
from arco_catalog.state.key_settings import Dialect

COMMANDS = [[], *([command.name] for command in PROGRAM)]


def parsed(*arguments: str, **environment: str) -> ServeOptions:
    return ServeOptions.of(build_parser(environment).parse_args(["serve", *arguments]))


def test_the_defaults_serve_this_machine_only() -> None:
    assert parsed("--store", "memory:") == ServeOptions(
        store="memory:",
        host="127.0.0.1",
        port=8181,
        warehouse="arco",
        allowed_locations=(),
        allow_location_overlap=False,
        allowed_hosts=(),
        allowed_origins=(),
        dialect=Dialect.ICEBERG,
        gzip=False,
        log_format="text",
        metrics_namespace=None,
        log_level="warning",
        quiet=False,
        max_connections=512,
        request_memory=256 << 20,
        cache_memory=100 << 20,
        max_body=8 << 20,
        max_metadata=64 << 20,
    )


ENVIRONMENT = {
    "ARCO_STORE": "s3://bucket/x",
    "ARCO_HOST": "::1",
    "ARCO_PORT": "1",
    "ARCO_WAREHOUSE": "lake",
    "ARCO_ALLOWED_LOCATIONS": "s3://a/b, s3://c ,",
    "ARCO_ALLOWED_HOSTS": "lake.example, *",
    "ARCO_ALLOWED_ORIGINS": "https://a.example,https://b.example",
    "ARCO_ALLOW_LOCATION_OVERLAP": "true",
    "ARCO_ALLOW_TABLE_LOCATION_OVERLAP": "false",
    "ARCO_ALLOW_CATALOG_LOCATION_OVERLAP": "false",
    "ARCO_IDEMPOTENCY_DIALECT": "polaris",
    "ARCO_IDEMPOTENCY_ENABLED": "false",
    "ARCO_IDEMPOTENCY_LIFETIME": "PT1H",
    "ARCO_METRICS": "store",
    "ARCO_SCAN_PLANNING": "Server",
    "ARCO_GZIP": "true",
    "ARCO_NO_CONSOLE": "true",
    "ARCO_CONSOLE_CLIENTS": "https://id.example.com arco openid email,https://b.example x",
    "ARCO_CONSOLE_ORIGINS": "https://tokens.example.com",
    "ARCO_LOG_FORMAT": "JSON",
    "ARCO_METRICS_NAMESPACE": "Lake",
    "ARCO_LOG_LEVEL": "DEBUG",
    "ARCO_WORKERS": "2",
    "ARCO_QUIET": "1",
    "ARCO_MAX_CONNECTIONS": "7",
    "ARCO_REQUESTS_PER_SECOND": "50",
    "ARCO_AUDIT_LOG": "/var/log/arco/audit",
    "ARCO_METRICS_PORT": "9464",
    "ARCO_METRICS_HOST": "::1",
    "ARCO_REQUEST_MEMORY": "2GB",
    "ARCO_CACHE_MEMORY": "64mb",
    "ARCO_MAX_BODY": "2048KB",
    "ARCO_MAX_METADATA": "1048577",
    "ARCO_FILE_CONFIRMED": "PT5S",
    "ARCO_PURGE_MODE": "sync",
    "ARCO_PURGE_UNDROP_WINDOW": "P2D",
    "ARCO_PURGE_TRUST_LOCATIONS": "true",
    "ARCO_PURGE_WHOLE_LOCATION": "true",
    "ARCO_TASKS": "false",
    "ARCO_EVENTS": "true",
    "ARCO_TASK_PROPERTIES": "delegation.retry.default.max-attempts=3, a=b",
    "ARCO_REALM": "acme,umbrella",
    "ARCO_AUTH": "internal,oidc",
    "ARCO_TOKEN_KEY_FILE": "/etc/arco/token.key",
    "ARCO_VENDING_LIFETIME": "60",
    "ARCO_VENDING_KEYS_FILE": "/etc/arco/keys.json",
    "ARCO_BASE_PATH": "/iceberg/",
    "ARCO_NAMESPACE_SEPARATOR": "%2E",
    "ARCO_TLS_CERT": "/etc/arco/tls.crt",
    "ARCO_TLS_KEY": "/etc/arco/tls.key",
    "ARCO_TLS_CLIENT_CA": "/etc/arco/clients.crt",
}


def test_every_option_has_a_variable() -> None:
    assert {option.variable.name for option in SERVE} == set(ENVIRONMENT)
    assert build_parser(ENVIRONMENT).parse_args(["serve"]).workers == 2
    assert parsed(**ENVIRONMENT) == ServeOptions(
        store="s3://bucket/x",
        host="::1",
        port=1,
        warehouse="lake",
        allowed_locations=("s3://a/b", "s3://c"),
        allow_location_overlap=True,
        allow_catalog_overlap=True,
        allowed_hosts=("lake.example", "*"),
        allowed_origins=("https://a.example", "https://b.example"),
        dialect=Dialect.POLARIS,
        keys_enabled=False,
        key_lifetime_ms=3_600_000,
        metrics="store",
        scan_planning="server",
        gzip=True,
        no_console=True,
        console_clients=("https://id.example.com arco openid email", "https://b.example x"),
        console_origins=("https://tokens.example.com",),
        log_format="json",
        metrics_namespace="Lake",
        log_level="debug",
        quiet=True,
        max_connections=7,
        requests_per_second=50,
        audit_log="/var/log/arco/audit",
        metrics_port=9464,
        metrics_host="::1",
        request_memory=2 << 30,
        cache_memory=64 << 20,
        max_body=2048 << 10,
        max_metadata=1048577,
        file_confirmed_ms=5_000,
        purge=PurgeSettings(PurgeMode.SYNC, 2 * 86_400_000, True, True, 900_000),
        tasks=False,
        events=True,
        task_properties=("delegation.retry.default.max-attempts=3", "a=b"),
        realm=("acme", "umbrella"),
        auth=("internal", "oidc"),
        token_key_file="/etc/arco/token.key",
        vending_lifetime=60,
        vending_keys_file="/etc/arco/keys.json",
        base_path="/iceberg",
        namespace_separator=".",
        tls_cert="/etc/arco/tls.crt",
        tls_key="/etc/arco/tls.key",
        tls_client_ca="/etc/arco/clients.crt",
    )


def test_flags_win_over_variables() -> None:
    arguments = [
        *("--console-client", "https://c.example z", "https://d.example z", "--console-origin", "https://e.example"),
        *("--store", "memory:", "--host", "0.0.0.0", "--port", "2", "--warehouse", "w", "--log-level", "error"),
        *("--allowed-location", "file:///a", "file:///b", "--allowed-location", "file:///c"),
        *("--allowed-host", "a.example", "b"),
        *("--allowed-origin", "https://a.example", "http://b:1"),
        *("--allow-location-overlap", "false", "--idempotency-dialect", "iceberg", "--quiet", "no"),
        *("--idempotency-enabled", "true", "--idempotency-lifetime", "90s", "--metrics", "count"),
        *("--scan-planning", "client"),
        *("--no-console", "false"),
        *("--gzip", "false", "--log-format", "text", "--metrics-namespace", "Sea"),
        *("--max-connections", "9", "--request-memory", "3MB", "--cache-memory", "4MB", "--max-body", "5MB"),
        *("--purge-mode", "off", "--purge-undrop-window", "1h", "--purge-trust-locations", "no", "--tasks", "true"),
        *("--events", "false"),
        *("--purge-whole-location", "no"),
        *("--requests-per-second", "60", "--audit-log", "audit", "--metrics-port", "0", "--metrics-host", "0.0.0.0"),
        *("--task-property", "c=d"),
        *(
            "--max-metadata",
            "6GB",
            "--file-confirmed",
            "0s",
            "--realm",
            "other",
            "--auth",
            "gateway",
            "--token-key-file",
            "key",
        ),
        *("--vending-lifetime", "43200", "--vending-keys-file", "keys"),
        *(
            "--base-path",
            "/",
            "--namespace-separator",
            "%1F",
            "--tls-cert",
            "crt",
            "--tls-key",
            "tls.key",
            "--tls-client-ca",
            "ca",
        ),
    ]
    assert parsed(*arguments, **ENVIRONMENT) == ServeOptions(
        store="memory:",
        host="0.0.0.0",
        port=2,
        warehouse="w",
        allowed_locations=("file:///a", "file:///b", "file:///c"),
        allow_location_overlap=False,
        allowed_hosts=("a.example", "b"),
        allowed_origins=("https://a.example", "http://b:1"),
        dialect=Dialect.ICEBERG,
        keys_enabled=True,
        key_lifetime_ms=90_000,
        scan_planning="client",
        gzip=False,
        log_format="text",
        metrics_namespace="Sea",
        log_level="error",
        quiet=False,
        max_connections=9,
        requests_per_second=60,
        audit_log="audit",
        metrics_port=0,
        metrics_host="0.0.0.0",
        request_memory=3 << 20,
        cache_memory=4 << 20,
        max_body=5 << 20,
        max_metadata=6 << 30,
        file_confirmed_ms=0,
        purge=PurgeSettings(PurgeMode.OFF, 3_600_000, vended_ms=43_200_000),
        task_properties=("c=d",),
        realm=("other",),
        auth=("gateway",),
        token_key_file="key",
        vending_lifetime=43_200,
        vending_keys_file="keys",
        base_path="",
        console_clients=("https://c.example z", "https://d.example z"),
        console_origins=("https://e.example",),
        tls_cert="crt",
        tls_key="tls.key",
        tls_client_ca="ca",
    )


def test_a_switch_alone_is_on() -> None:
    options = parsed("--store", "memory:", "--quiet", "--allow-location-overlap")

    assert (options.quiet, options.allow_location_overlap) == (True, True)


def test_an_empty_variable_is_none() -> None:
    assert parsed("--store", "memory:", **dict.fromkeys(ENVIRONMENT, "")) == parsed("--store", "memory:")


@pytest.mark.parametrize(
    ("arguments", "environment", "why"),
    [
        ([], {}, "--store or ARCO_STORE is required: file:/absolute/path"),
        (["--port", "http"], {}, "argument --port: expected a port from 0 to 65535, got 'http'"),
        (["--port", "65536"], {}, "argument --port: expected a port"),
        (["--port", "-1"], {}, "argument --port"),
        ([], {"ARCO_PORT": "x"}, "argument --port: ARCO_PORT: expected a port"),
        (["--workers", "0"], {}, "argument --workers: expected a number of workers from 1 to 64, got '0'"),
        (["--warehouse", "a/b"], {}, "argument --warehouse: a warehouse's name may have letters"),
        (["--warehouse", ".."], {}, "argument --warehouse: "),
        (["--warehouse", "_probe"], {}, "argument --warehouse: invalid warehouse's name '_probe'"),
        (
            [],
            {"ARCO_IDEMPOTENCY_DIALECT": "dutch"},
            "ARCO_IDEMPOTENCY_DIALECT: expected iceberg or polaris, got 'dutch'",
        ),
        (["--idempotency-lifetime", "P2D"], {}, "expected a length of time from PT1S to P1D, got 'P2D'"),
        (["--log-level", "loud"], {}, "unknown log level 'loud': expected one of debug, info, warning, error"),
        (["--log-format", "xml"], {}, "unknown log format 'xml': expected text or json"),
        ([], {"ARCO_QUIET": "maybe"}, "expected true or false (or 1 or 0, yes or no), got 'maybe'"),
        (
            ["--max-connections", "0"],
            {},
            "argument --max-connections: expected a whole number from 1 to 1,000,000,000, got '0'",
        ),
        (
            ["--requests-per-second", "1000001"],
            {},
            "argument --requests-per-second: expected requests per second from 1 to 1,000,000, got '1000001'",
        ),
        (
            ["--max-body", "many"],
            {},
            "argument --max-body: expected a size of 1KB or more, such as 512KB or 8MB, got 'many'",
        ),
        (
            [],
            {"ARCO_REQUEST_MEMORY": "1000KB"},
            "argument --request-memory: ARCO_REQUEST_MEMORY: expected a size of 1MB or more",
        ),
        (["--unknown"], {}, "unrecognized arguments: --unknown"),
    ],
)
def test_wrong_usage_is_reported_with_exit_code_2(
    arguments: list[str], environment: dict[str, str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["serve", *arguments], environment)

    assert ended.value.code == 2
    printed = capsys.readouterr().err
    assert why in printed
    assert printed.splitlines()[1:] == ["`arco serve --help` describes it"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["serve", "--stoer", "file:/x"], "unrecognized arguments: --stoer file:/x (did you mean --store?)"),
        (["recepits"], "argument COMMAND: there is no 'recepits' (did you mean receipts?)"),
        (["serve", "--key-file", "x"], "unrecognized arguments: --key-file x (did you mean --token-key-file?)"),
        (["tasks", "--bad"], "unrecognized arguments: --bad\n"),
        (["fsck", "--code", "x"], "unrecognized arguments: --code x\n"),
        (["serve", "--log-level", "debgu"], "expected one of debug, info, warning, error\n"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_nearest_one(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments, {})
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (["import"], "kind (folder, list, catalog, realm)"),
        (["completion"], "shell (bash, zsh, fish)"),
        (["rename", "a.b"], "NEW_NAMESPACE.TABLE"),
    ],
)
def test_a_missing_argument_is_named_with_the_words_that_it_takes(
    arguments: list[str], missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments, {})
    assert f"the following arguments are required: {missing}\n" in capsys.readouterr().err


def test_for_a_folder_as_a_store_its_url_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", "--store", str(tmp_path)], {}) == 1
    assert capsys.readouterr().err.endswith(f"for a folder, write file:{tmp_path}\n")


def test_a_store_below_a_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("x")
    assert main(["init", "--store", f"file:{tmp_path}/file/store"], {}) == 1
    assert (
        f"Not a directory (a file is in the place of a folder of the path {tmp_path}/file/store)\n"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("arguments", "field", "value"),
    [
        (["tasks", "show", "--store", "memory:", "ID"], "task", "ID"),
        (["tasks", "show", "--follow", "ID", "--store", "memory:"], "task", "ID"),
        (["catalogs", "show", "--store", "memory:", "lake"], "name", "lake"),
        (
            ["governance", "set", "a.t", "--store", "memory:", "arco.owner=ann", "arco.tag.x=y"],
            "change",
            ["arco.owner=ann", "arco.tag.x=y"],
        ),
        (["ls", "--store", "memory:", "sales"], "namespace", "sales"),
    ],
)
def test_options_may_stand_before_any_argument(arguments: list[str], field: str, value: object) -> None:
    assert vars(parse(build_parser({}), arguments))[field] == value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tasks", "list", "ID", "--store", "memory:", "ID2"], "unrecognized arguments: ID2"),
        (["tasks", "show", "--store", "memory:", "ID", "ID2"], "unrecognized arguments: ID ID2"),
        (["ls", "--all", "--store", "memory:"], "unrecognized arguments: --all"),
        (["ls", "--stor", "memory:"], "unrecognized arguments: --stor (did you mean --store?)"),
    ],
)
def test_what_is_no_argument_is_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(arguments, {})
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", ["ls", "delegation-service"])
@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("nonsense", "Not a valid location: 'nonsense': expected an absolute URI such as s3://bucket/path"),
        ("/srv/old", "Not a valid location: '/srv/old': expected an absolute URI such as file:///srv/old"),
        ("s3:/bucket/tables", "it names no bucket: write s3://bucket/path"),
        ("gs:///tables", "it names no bucket: write gs://bucket/path"),
    ],
)
def test_a_mistyped_location_is_named_and_not_the_store(
    command: str, location: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--store", f"file:{tmp_path}", "--allowed-location", location], {}) == 1
    assert capsys.readouterr().err.startswith(f"arco: --allowed-location or ARCO_ALLOWED_LOCATIONS, {location}: {why}")
    assert not any(tmp_path.iterdir())


def test_a_variable_that_the_catalog_does_not_have_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", "--store", f"file:{tmp_path}"], {"ARCO_WAREHUOSE": "x", "OTHER": "x"}) == 2
    first = capsys.readouterr().err.splitlines()[0]
    assert first == "arco: unknown variable ARCO_WAREHUOSE is ignored: did you mean ARCO_WAREHOUSE?"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_reads_well(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main([*command, "--help"], {})

    text = capsys.readouterr().out
    assert ended.value.code == 0
    assert text.startswith("usage: arco")
    assert max(map(len, text.splitlines())) <= 80
    assert not [line for line in text.splitlines() if line.endswith(" ")]


def actions(parser: Parser) -> list[argparse.Action]:
    """All options and arguments, with those of the subcommands."""
    return [*parser.declared, *(action for _, inner in parser.commands.values() for action in actions(inner))]


def test_everything_that_can_be_stated_is_explained() -> None:
    assert [action.dest for action in actions(build_parser({})) if not action.help] == []


def test_help_names_variables_and_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"], {})

    text = " ".join(capsys.readouterr().out.split())
    for option in SERVE:
        assert f"[env {option.variable.name}" in text
        assert option.flag in text
    assert "[env ARCO_PORT, default 8181]" in text


def test_no_command_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([], {}) == 0
    assert "serve a catalog over a store" in capsys.readouterr().out


def test_the_version_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"], {})

    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("arco 0.")


@pytest.mark.parametrize(
    ("named", "tables", "catalogs"),
    [("", False, False), ("table-", True, False), ("catalog-", False, True), ("both", True, True)],
)
def test_overlaps_of_tables_and_of_catalogs_are_allowed_apart(named: str, tables: bool, catalogs: bool) -> None:
    flag = f"--allow-{'' if named == 'both' else named}location-overlap"
    options = parsed("--store", "memory:", *([flag] if named else []))
    variable = {flag.removeprefix("--").replace("-", "_").upper(): "true"} if named else {}
    settings = settings_from_env({"ARCO_WAREHOUSE": "w", **{f"ARCO_{name}": text for name, text in variable.items()}})

    assert (options.allow_location_overlap, options.allow_catalog_overlap) == (tables, catalogs)
    assert (settings.allow_location_overlap, settings.allow_catalog_overlap) == (tables, catalogs)


def test_a_body_may_be_limited_to_less_than_a_megabyte() -> None:
    assert parsed("--store", "memory:", "--max-body", "512KB").max_body == 512 << 10
    with pytest.raises(ValueError, match="1KB or more, such as 512KB or 8MB, got '1000'"):
        parse_body_size("1000")


def test_a_limit_may_be_given_in_bytes_and_a_time_in_milliseconds() -> None:
    assert parse_body_size(str(1 << 30)) == parse_body_size("1GB")
    assert parse_duration("2592000000ms") == parse_duration("P30D")


@pytest.mark.parametrize("text", ["", "%", "a", "7", "_", "-", "+", "%20", "..", "%00", "ü", "%1F%1F"])
def test_a_character_that_names_have_separates_no_levels(text: str) -> None:
    with pytest.raises(ValueError, match="expected one ASCII punctuation mark"):
        parse_separator(text)
