"""The application: every route, with what stands in front of all of them.

    app = build_api(engine, ApiSettings(token=read_or_make_token(folder), protocol_schema=...))
    await serve(app, listeners, ...)

From the outside in: counted (`metrics`), who asks (`auth`), what holds for all routes (`edge`), the routes (Litestar).
"""

import trio
from litestar import Litestar, Response, Router, get
from litestar.di import NamedDependency, Provide
from litestar.exceptions import HTTPException
from litestar.openapi.config import OpenAPIConfig
from litestar.routes import HTTPRoute

from state.errors import StoreError
from termald.api import (
    account,
    daemon,
    events,
    history,
    operations,
    page,
    phantoms,
    prompts,
    requests,
    sessions,
    threads,
)
from termald.api.asgi import ASGIApp
from termald.api.auth import Authenticated, bearer
from termald.api.browser import Browsers, by_cookie
from termald.api.commands import Desk
from termald.api.daemon import health
from termald.api.edge import Edge
from termald.api.metrics import Measured, Metrics
from termald.api.openapi import describe, openapi_config
from termald.api.problems import (
    ProblemError,
    documented,
    on_failure,
    on_http_exception,
    on_problem,
    on_store_error,
)
from termald.api.settings import ApiSettings
from termald.api.strict import StrictBody
from termald.engine import Engine

_TAGGED = {
    "daemon": daemon.HANDLERS,
    "account": account.HANDLERS,
    "sessions": sessions.HANDLERS,
    "prompts": prompts.HANDLERS,
    "history": history.HANDLERS,
    "operations": operations.HANDLERS,
    "requests": requests.HANDLERS,
    "threads": (*threads.HANDLERS, *phantoms.HANDLERS),
    "events": events.HANDLERS,
    "browser": page.HANDLERS,
}


def build_api(engine: Engine, settings: ApiSettings) -> ASGIApp:
    """Return the application that serves `engine`. It opens nothing and keeps nothing but counts."""
    metrics = Metrics()
    browsers = Browsers(settings.token)
    routes = _routes(Desk(engine, settings), metrics, browsers)
    methods = {route.path_format: route.methods for route in routes.routes if isinstance(route, HTTPRoute)}
    return Measured(Authenticated(Edge(routes, methods), [bearer(settings.token), by_cookie(browsers)]), metrics)


def _routes(desk: Desk, metrics: Metrics, browsers: Browsers) -> Litestar:
    description: list[bytes] = []

    @get("/openapi.json", responses=documented(), media_type="application/json")
    async def openapi(desk: NamedDependency[Desk]) -> Response[bytes]:
        """Return this description."""
        if not description:
            # Made when it is first asked for, and beside the daemon's loop: it takes half a second.
            description.append(await trio.to_thread.run_sync(lambda: describe(make(openapi_config(version)))))
        return Response(description[0])

    version = desk.settings.version

    notebook = account.Notebook()

    def make(openapi_of: OpenAPIConfig | None) -> Litestar:
        return Litestar(
            route_handlers=[
                health,
                page.open_page,
                *(
                    Router("/", route_handlers=handlers, tags=[tag], security=[{"bearer": []}])
                    for tag, handlers in {**_TAGGED, "description": (openapi,)}.items()
                ),
            ],
            dependencies={
                "desk": Provide(lambda: desk, sync_to_thread=False, use_cache=True),
                "counts": Provide(lambda: metrics, sync_to_thread=False, use_cache=True),
                "browsers": Provide(lambda: browsers, sync_to_thread=False, use_cache=True),
                "notebook": Provide(lambda: notebook, sync_to_thread=False, use_cache=True),
            },
            dto=StrictBody,
            return_dto=None,
            exception_handlers={
                ProblemError: on_problem,
                HTTPException: on_http_exception,
                StoreError: on_store_error,
                Exception: on_failure,
            },
            openapi_config=openapi_of,
            request_max_body_size=None,  # the shell has capped it before a body gets here
            logging_config=None,
        )

    return make(None)
