"""The page's files, as they are served."""

from __future__ import annotations

import re
from base64 import b64encode
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hatchling.builders.wheel import WheelBuilder
from page.staging import PageStage, served_page
from starlette.applications import Starlette
from starlette.routing import Mount
from web_stage import Client, served

from thinkwell.web import Access, web_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from page.browsing import Browser
    from scripted import Turn

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "thinkwell" / "thinkwell" / "web" / "page"
MODULES = sorted(file.name for file in FOLDER.glob("*.js"))
FILES = {"/": ("page.html", "text/html"), **{f"/{name}": (name, "text/javascript") for name in MODULES}}
"""The page's files and their types, by where they are served."""

PRELOAD = b'rel="modulepreload"'

HEADERS = {
    "cache-control": "no-cache",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


async def ends(turn: Turn) -> None:
    turn.say("Yes.")


@asynccontextmanager
async def clients(*, page: bool = True, guarded: bool = False) -> AsyncGenerator[Client]:
    access = Access({"a-secret-of-sixteen-or-more": "ada"}) if guarded else None
    async with served(ends) as stage:
        yield Client(web_app(stage.server, access=access, page=page))


@pytest.mark.parametrize("guarded", [False, True])
async def test_the_page_needs_no_token(guarded: bool) -> None:
    async with clients(guarded=guarded) as client:
        for path, (name, kind) in FILES.items():
            answered = await client.get(path)
            assert answered.status == 200, path
            served_lines = (await answered.body()).splitlines()
            assert [each for each in served_lines if PRELOAD not in each] == (
                FOLDER / name
            ).read_bytes().splitlines()
            assert answered.headers["content-type"] == f"{kind}; charset=utf-8"
            assert HEADERS.items() <= answered.headers.items()


async def test_nothing_else_beside_it_is_served() -> None:
    async with clients() as client:
        for path in ("/page.html", "/other.js", "/page", "/page/page.js", "/page.js/", "/../_page.py"):
            assert (await client.get(path)).status == 404, path


async def test_the_browser_is_told_at_once_which_modules_it_needs() -> None:
    """Else it would find them one import after another, and wait for each round."""
    async with clients() as client:
        html = (await (await client.get("/")).body()).decode()
    lines = re.findall(r'^<link rel="modulepreload" href="(.*)">$', html, re.MULTILINE)
    assert lines == MODULES
    assert html.index('<script type="module" src="page.js"></script>') > html.rfind('rel="modulepreload"')


async def test_the_page_may_do_little() -> None:
    async with clients() as client:
        answered = await client.get("/")
        policy = dict(rule.split(" ", 1) for rule in answered.headers["content-security-policy"].split("; "))
        styles = re.findall(rb"<style>(.*?)</style>", await answered.body(), re.DOTALL)
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": " ".join(f"'sha256-{b64encode(sha256(style).digest()).decode()}'" for style in styles),
        "connect-src": "'self'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    assert len(styles) == 1


@pytest.mark.parametrize("path", ["/", "/page.js", "/server.js"])
async def test_who_has_it_is_not_sent_it_again(path: str) -> None:
    async with clients() as client:
        tag = (await client.get(path)).headers["etag"]
        for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            answered = await client.get(path, headers={"if-none-match": known})
            assert (answered.status, await answered.body()) == (304, b"")
            assert answered.headers["etag"] == tag
        for unknown in ('"other"', "nonsense", ""):
            assert (await client.get(path, headers={"if-none-match": unknown})).status == 200


async def test_each_file_has_a_tag_of_its_own() -> None:
    async with clients() as client:
        tags = [(await client.get(path)).headers["etag"] for path in FILES]
    assert len(set(tags)) == len(FILES)


async def test_other_methods_get_nothing() -> None:
    async with clients() as client:
        head = await client.ask("HEAD", "/")
        assert (head.status, await head.body()) == (200, b"")
        assert head.headers["content-length"] == (await client.get("/")).headers["content-length"]
        assert (await client.post("/")).status == 405


async def test_a_server_without_it_has_none() -> None:
    async with clients(page=False) as client:
        for path in FILES:
            assert (await client.get(path)).status == 404, path


def test_it_is_in_the_wheel() -> None:
    files = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    folder = "thinkwell/web/page"
    assert {file for file in files if Path(file).parent.as_posix() == folder} == {
        f"{folder}/{name}" for name in ("page.html", *MODULES)
    }


def test_it_works_below_any_path(browser: Browser) -> None:
    def around(app: Starlette) -> Starlette:
        return Starlette(routes=[Mount("/tools/agents", app)], lifespan=app.router.lifespan_context)

    with served_page(ends, around=around) as stage:
        stage = PageStage(f"{stage.url}/tools/agents", stage.server, stage.agent, stage.portal)
        with browser.tab() as tab:
            tab.go(f"{stage.url}/")
            tab.type("#prompt", "Go.")
            tab.click("#go")
            tab.see(".final")
            assert tab.value("location.href").startswith(f"{stage.url}/#run=")
