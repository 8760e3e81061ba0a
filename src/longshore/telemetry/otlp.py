"""OpenTelemetry: each request is a span, sent over OTLP (HTTP, protobuf) by the SDK's exporter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags, TraceState
from opentelemetry.trace.status import Status, StatusCode

from longshore import __version__
from longshore.telemetry.events import expand
from longshore.telemetry.records import RequestCompleted, TraceContext
from longshore.telemetry.ring import Event

TIMEOUT_SECONDS: Final = 10
"""For one export with its retries; the thread of this sink waits, and no call does."""
_FAILED: Final = ("error", "failed", "timeout", "refused")
_SCOPE: Final = InstrumentationScope("longshore", __version__)


@final
class OtlpSink:
    """Exports the spans of completed requests. Headers and certificates come from the variables of OpenTelemetry."""

    def __init__(self, endpoint: str, service: str, version: str) -> None:
        url = endpoint.rstrip("/")
        self._exporter = OTLPSpanExporter(
            endpoint=url if url.endswith("/v1/traces") else f"{url}/v1/traces", timeout=TIMEOUT_SECONDS
        )
        self._resource = Resource.create({"service.name": service, "service.version": version})

    def write(self, events: list[Event], offset: float) -> None:
        records = [record for event in events for record in expand(event, offset)]
        spans = [
            self._span(each, each.trace_context)
            for each in records
            if isinstance(each, RequestCompleted) and each.trace_context
        ]
        if spans and self._exporter.export(spans) is not SpanExportResult.SUCCESS:
            raise ConnectionError("the collector did not take the spans")

    def _span(self, record: RequestCompleted, trace: TraceContext) -> ReadableSpan:
        state = TraceState.from_header([trace.state]) if trace.state else TraceState()
        ended, failed = int(record.at * 1e9), record.outcome in _FAILED
        return ReadableSpan(
            name=f"{record.method} {record.tool}".rstrip(),
            context=_context(trace, trace.span_id, state, is_remote=False),
            parent=_context(trace, trace.parent_id, state, is_remote=True) if trace.parent_id else None,
            resource=self._resource,
            attributes=_attributes(record),
            kind=SpanKind.SERVER,
            status=Status(StatusCode.ERROR if failed else StatusCode.UNSET, record.outcome if failed else None),
            start_time=ended - int(record.seconds * 1e9),
            end_time=ended,
            instrumentation_scope=_SCOPE,
        )

    def close(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]


def _context(trace: TraceContext, span: str, state: TraceState, *, is_remote: bool) -> SpanContext:
    flags = TraceFlags(int(trace.flags, 16))
    return SpanContext(int(trace.trace_id, 16), int(span, 16), is_remote, flags, state)


def _attributes(record: RequestCompleted) -> dict[str, Any]:
    """By the semantic conventions for MCP, and our own beneath `longshore`."""
    given: Sequence[tuple[str, Any]] = (
        ("mcp.method.name", record.method),
        ("mcp.protocol.version", record.revision),
        ("mcp.session.id", record.session),
        ("jsonrpc.request.id", str(record.id)),
        ("gen_ai.tool.name", record.tool),
        ("network.transport", "pipe" if record.transport == "stdio" else "tcp"),
        ("error.type", record.outcome if record.outcome in _FAILED else ""),
        ("longshore.transport", record.transport),
        ("longshore.dialect", record.dialect),
        ("longshore.principal", record.principal),
        ("longshore.outcome", record.outcome),
        ("longshore.answer.bytes", record.bytes),
        ("longshore.answer.tokens", record.tokens),
        ("longshore.parent", "" if record.parent is None else str(record.parent)),
    )
    return {name: value for name, value in given if value != ""}
