"""The routes of the console. A server that serves it has them besides those of its APIs, and lists them nowhere."""

from collections.abc import Sequence

from arco_catalog.http.route import Route


def _page(template: str, handling: str) -> Route:
    """Returns the public GET route of a page or file of the console, to which pages of other origins may link."""
    return Route("GET", template, f"console.pages.{handling}", advertised=False, public=True, linked=True)


CONSOLE: Sequence[Route] = (
    _page("/", "root"),
    _page("/ui", "index"),
    Route("GET", "/ui/config.json", "console.pages.config", advertised=False, public=True),
    _page("/ui/{file}", "static_file"),
)
"""All are public: the files hold nothing of a catalog, and the configuration what a page needs to offer a sign-in, and
the name of the usual warehouse."""
