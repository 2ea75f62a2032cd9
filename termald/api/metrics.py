"""Counts for Prometheus: what is counted as it happens, and what is looked at when somebody asks.

The registry is our own: a library's default one would be shared with whatever else runs in the process, tests included.
"""

import time
from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from typing import Final, get_args

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from state.records import SessionStatus
from state.views import Snapshot
from termald.api.asgi import ASGIApp, Message, Receive, Scope, Send
from termald.engine import RuntimeView
from termald.hub import HubStatistics

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """What was counted since the start."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "termald_http_requests",
            "Requests by what they asked for and how they were answered",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "termald_http_answer_seconds",
            "Time until the answer began",
            ("method", "route"),
            registry=self._registry,
            buckets=_SECONDS,
        )

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        named = method if method in _METHODS else "other"
        self._requests.labels(named, route, str(status)).inc()
        self._seconds.labels(named, route).observe(seconds)

    def exposition(self, moment: Snapshot, process: RuntimeView, events: HubStatistics) -> bytes:
        """Return all of it in Prometheus's text format."""
        now = CollectorRegistry()
        now.register(_Now(_families(moment, process, events)))
        return generate_latest(self._registry) + generate_latest(now)


class _Now(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


def _families(moment: Snapshot, process: RuntimeView, events: HubStatistics) -> Iterator[Metric]:
    sessions = GaugeMetricFamily("termald_sessions", "Sessions by status", labels=("status",))
    tally = Tally(view.record.status for view in moment.sessions)
    for status in get_args(SessionStatus):
        sessions.add_metric((status,), tally[status])
    yield sessions
    yield GaugeMetricFamily(
        "termald_prompts_queued",
        "Prompts that wait in any session",
        value=sum(view.queued_prompts for view in moment.sessions),
    )
    yield GaugeMetricFamily(
        "termald_requests_open",
        "Requests of Codex's that nobody has answered",
        value=sum(view.pending_requests for view in moment.sessions),
    )
    yield GaugeMetricFamily("termald_ignored_threads", "Threads in the ignore set", value=len(moment.ignored))
    yield GaugeMetricFamily("termald_runtime_up", "Whether Codex is ready", value=float(process.status == "ready"))
    yield CounterMetricFamily("termald_runtime_restarts", "Starts of Codex after the first", value=process.restarts)
    yield CounterMetricFamily("termald_events", "Events in the log, ever", value=events.last)
    yield GaugeMetricFamily("termald_event_readers", "Open event streams", value=events.readers)
    yield CounterMetricFamily(
        "termald_event_store_reads", "Reads for readers behind the ring", value=events.store_reads
    )
    yield CounterMetricFamily("termald_event_resets", "Readers that had to begin anew", value=events.resets)


class Measured:
    """ASGI: `app`, with its requests counted. The route is the address's pattern, so that ids are no labels."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method, begun = scope["method"], time.perf_counter()

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = scope.get("path_template", "none")
                self._metrics.count(method, route, message["status"], time.perf_counter() - begun)
            await send(message)

        await self._app(scope, receive, send_counted)
