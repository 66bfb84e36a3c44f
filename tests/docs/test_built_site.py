"""The site builds without a warning, shows every name, finds names, and follows old addresses."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from docs.building import build_site
from docs.test_site import entries
from page.browsing import browsing

if TYPE_CHECKING:
    from collections.abc import Generator

    from page.browsing import Tab

pytestmark = pytest.mark.long

SITE = pytest.mark.xdist_group("site")
"""One worker builds it, for all cases."""

OLD = Path(__file__).with_name("old_addresses.txt").read_text("utf-8").split()
"""Addresses that the site has had: its pages, and parts of pages that now stand elsewhere."""

SEARCHED = (
    "PermissionPolicy",
    "ThoughtStream.cancel",
    "open_agent",
    "ThinkBuilder",
    "ThoughtStream",
    "Agent.session",
    "Session.think",
    "Budget",
    "ToolDone",
    "RunView",
    "AgentExited",
    "supervise",
    "load_skill",
    "Handlers",
    "deliver",
    "MessageRouter",
    "TelegramChannel",
    "SqliteJournal",
    "RunServer",
    "ScriptedAgent",
)

FOUND = "[...document.querySelectorAll('*')].map(e => e.shadowRoot?.querySelector('a')?.href).find(Boolean)"
"""The first that the search lists, which is in a root of its own."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without a warning."""
    folder = tmp_path_factory.mktemp("site")
    build_site(folder)
    return folder


class Quiet(SimpleHTTPRequestHandler):
    """Serves files."""

    timeout = 1.0
    """Seconds for a request to come: Chromium opens connections on which it may never ask for anything."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Generator[str]:
    """Serve a folder for the time of a block."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def visited(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, Tab]]:
    """The address of the site, and a tab of a browser."""
    with (
        served(site) as address,
        browsing(tmp_path_factory.mktemp("browser")) as browser,
        browser.tab() as tab,
    ):
        yield address, tab


def titled(name: str) -> str:
    """The end of the address of a name in ``thinkwell`` or in a module of it, but the blocking API."""
    return rf"#thinkwell\.((?!sync\.)\w+\.)*{re.escape(name)}$"


@SITE
def test_each_name_is_found_first(visited: tuple[str, Tab]) -> None:
    address, tab = visited
    tab.go(address)
    tab.press("/")
    for name in SEARCHED:
        tab.type("input[role=combobox]", name)
        tab.until(f"new RegExp({json.dumps(titled(name))}).test({FOUND})")


@SITE
@pytest.mark.parametrize("page", [old for old in OLD if "#" not in old] + [""])
def test_an_old_page_is_there(site: Path, page: str) -> None:
    assert (site / page / "index.html").is_file()


PARTS = sorted({old.split("#")[0] for old in OLD if "#" in old})
"""The pages of which parts stand elsewhere."""


@SITE
@pytest.mark.parametrize("page", PARTS)
def test_a_part_is_found_by_its_old_address(site: Path, visited: tuple[str, Tab], page: str) -> None:
    address, tab = visited
    tab.go(address + page)
    ids = [old.split("#")[1] for old in OLD if old.startswith(f"{page}#")]
    places: list[str | None] = tab.value(f"{json.dumps(ids)}.map(movedTo)")
    lost = [
        id_ for id_, place in zip(ids, places, strict=True) if not place or not is_there(site, address, place)
    ]
    assert lost == []


def is_there(site: Path, address: str, place: str) -> bool:
    """Whether the site has a page, and on it the part that its address names."""
    page, _, id_ = place.removeprefix(address).partition("#")
    text = (site / page / "index.html").read_text("utf-8")
    return not id_ or f' id="{id_}"' in text


@SITE
def test_an_old_address_is_followed(visited: tuple[str, Tab]) -> None:
    address, tab = visited
    tab.go(f"{address}reference/thinkwell/#thinkwell.ThoughtStream.cancel")
    tab.until("location.pathname === '/reference/thinkwell/streams/'")
    tab.see("[id='thinkwell.ThoughtStream.cancel']")


@SITE
def test_nothing_is_loaded_from_elsewhere(visited: tuple[str, Tab]) -> None:
    address, tab = visited
    tab.go(address)
    assert [request for request in tab.requests if not request.startswith(f"GET {address}")] == []


def field_names(thing: object) -> set[str]:
    """What the values of a class are made of, if it is one of values."""
    if not isinstance(thing, type):
        return set()
    names: set[str] = {*getattr(thing, "__struct_fields__", ()), *getattr(thing, "__required_keys__", ())}
    names |= set(getattr(thing, "__optional_keys__", ()))
    if is_dataclass(thing):
        names |= {field.name for field in fields(thing)}
    return {name for name in names if not name.startswith("_")}


@SITE
def test_the_site_has_a_place_for_each_name_and_each_field(site: Path) -> None:
    pages = {page.parent: page.read_text("utf-8") for page in site.glob("reference/**/index.html")}
    found = {id_ for text in pages.values() for id_ in re.findall(r'\bid="([\w.]+)"', text)}
    wanted = {path for path, thing in entries() if not isinstance(thing, ModuleType)}
    for path, thing in entries():
        if not path.startswith("thinkwell.errors."):  # their docstrings have tables of what they carry
            wanted |= {f"{path}.{name}" for name in field_names(thing)}
    for agent in ("ScriptedAgent", "RecordedAgent"):  # what they inherit
        wanted |= {f"thinkwell.testing.{agent}.{name}" for name in ("open", "connect", "sent")}
    assert wanted - found == set()
    assert [page for page, text in pages.items() if "<p>::</p>" in text] == []
    signature = re.sub(r"<[^>]+>|\s", "", pages[site / "reference" / "thinkwell" / "agents"])
    assert "open_agent(agent:AgentName|str|AgentProfile|None=None,/,*,command:" in signature
