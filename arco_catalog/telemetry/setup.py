"""Sets up the telemetry of servers and functions, and the log of functions on Lambda, as the command line and the
environment configure them."""

import sys
from collections.abc import Mapping, Sequence

from arco_catalog.config.variables import AUDIT_LOG, LOG_LEVEL, METRICS_NAMESPACE
from arco_catalog.state.runtime import Runtime
from arco_catalog.telemetry.lines import JsonLines, TextLines, Write
from arco_catalog.telemetry.logs import configure_logging
from arco_catalog.telemetry.telemetry import Exporter, Observer, Telemetry

DEFAULT_NAMESPACE = "ArcoCatalog"
EXPORTERS = ("otlp", "console")


def function_log(environment: Mapping[str, str]) -> None:
    """Sets up the log of a function on Lambda, which goes to stdout as lines of JSON. Raises `ValueError` for an
    unknown log level."""
    configure_logging(sys.stdout, LOG_LEVEL.read(environment), json=True)


def function_telemetry(environment: Mapping[str, str], runtime: Runtime) -> Telemetry:
    """Returns the telemetry of a function on Lambda: JSON lines on stdout, with metrics unless ARCO_METRICS_NAMESPACE
    is empty; audit lines there if ARCO_AUDIT_LOG is `-`; and traces if they are configured, for which a response waits
    at most `FLUSH_SECONDS`. Raises `ValueError` for an invalid metrics namespace and for another ARCO_AUDIT_LOG, and if
    the traces that are configured are not supported or the extra `otel` is missing."""
    lines = JsonLines(to_stdout, metrics_namespace(environment))
    return Telemetry([*_spans(environment, flush=True), lines], runtime, _audit(environment, runtime, to_stdout))


def lines_telemetry(environment: Mapping[str, str], runtime: Runtime, write: Write, audit: Write) -> Telemetry:
    """Returns the telemetry of a function on another platform than Lambda: JSON lines, without metrics, by `write`;
    traces if they are configured, for which a response waits at most `FLUSH_SECONDS`; and audit lines by `audit` if
    ARCO_AUDIT_LOG is `-`. Raises `ValueError` for another ARCO_AUDIT_LOG, and if the traces that are configured are not
    supported or the extra `otel` is missing."""
    exporters = [*_spans(environment, flush=True), JsonLines(write, None)]
    return Telemetry(exporters, runtime, _audit(environment, runtime, audit))


def server_telemetry(
    environment: Mapping[str, str],
    runtime: Runtime,
    *,
    json: Write | None = None,
    text: Write | None = None,
    namespace: str | None = None,
    observers: Sequence[Observer] = (),
) -> Telemetry | None:
    """Returns the telemetry of a server: JSON lines if there is `json` to write them, with metrics if there is a
    `namespace`; lines of text if there is `text`; traces if they are configured; and the `observers`. Returns None
    without any of these. Raises `ValueError` for an invalid metrics namespace, and if the traces that are configured
    are not supported or the extra `otel` is missing."""
    exporters = _spans(environment, flush=False)
    if json is not None:
        exporters.append(JsonLines(json, namespace))
    if text is not None:
        exporters.append(TextLines(text))
    return Telemetry(exporters, runtime, observers) if exporters or observers else None


def _audit(environment: Mapping[str, str], runtime: Runtime, write: Write) -> Sequence[Observer]:
    """Returns the audit log of a function, which writes by `write`, if ARCO_AUDIT_LOG is `-`; none if that is not set
    or empty. Raises `ValueError` for any other value."""
    where = environment.get(AUDIT_LOG.name)
    if not where:
        return ()
    from arco_catalog.telemetry.audit import STANDARD_OUTPUT, AuditLog  # no cold start without it pays for it

    if where != STANDARD_OUTPUT:
        raise ValueError(
            f"{AUDIT_LOG.name} must be {STANDARD_OUTPUT} on a function, for lines in the log, got {where!r}: "
            "a file there would be lost when the function ends"
        )
    return (AuditLog(write, runtime.now_ms),)


def metrics_namespace(environment: Mapping[str, str]) -> str | None:
    """Returns the CloudWatch namespace of a function's metrics: the value of ARCO_METRICS_NAMESPACE, or `ArcoCatalog`
    if that is not set. Returns None, for no metrics, if the variable is set and empty."""
    return environment.get(METRICS_NAMESPACE.name, DEFAULT_NAMESPACE) or None


def to_stdout(line: str) -> None:
    """Writes a line to stdout, which is the log of a function, in one call, so that it is not split."""
    sys.stdout.write(f"{line}\n")


def traces_exporter(environment: Mapping[str, str]) -> str | None:
    """Returns the name of the exporter of traces, `otlp` or `console`, from the standard OTEL_* variables: `otlp` if
    they set only an OTLP endpoint. Returns None for no traces: if these disable them, or set neither an exporter nor an
    OTLP endpoint. Raises `ValueError` for an unsupported exporter, or protocol of `otlp`."""
    configured = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    endpoints = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or configured == "none":
        return None
    if not configured and not any(environment.get(name) for name in endpoints):
        return None
    exporter = configured or "otlp"
    if exporter not in EXPORTERS:
        raise ValueError(f"OTEL_TRACES_EXPORTER must be {', '.join(EXPORTERS)} or none, got {exporter!r}")
    protocols = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    protocol = next((environment[name] for name in protocols if environment.get(name)), "http/protobuf")
    if exporter == "otlp" and protocol != "http/protobuf":
        raise ValueError(f"{' or '.join(protocols)}: only http/protobuf is supported, got {protocol!r}")
    return exporter


def _spans(environment: Mapping[str, str], *, flush: bool) -> list[Exporter]:
    """Returns the exporter of traces if OTEL_* variables configure one, else an empty list. With `flush` a response
    waits until its spans are sent, at most `FLUSH_SECONDS`. Raises `ValueError` if the library is missing, and as
    `traces_exporter` does."""
    exporter = traces_exporter(environment)
    if exporter is None:
        return []
    try:
        from arco_catalog.telemetry.spans import open_spans

        return [open_spans(exporter, flush=flush)]
    except ModuleNotFoundError as error:
        raise ValueError(
            f"traces are configured by OTEL_* variables, but OpenTelemetry is not installed ({error}): install the "
            "extra 'otel' of arco-catalog, or unset the variables"
        ) from error
