"""Two of ``thinkwell serve`` with one Redis."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import httpx
import pytest
from cli.serve_process import ADA, serving_web, started, watched, watching
from cli.typing_in import LIMIT, home, scripted

from thinkwell.testing import script

if TYPE_CHECKING:
    from pathlib import Path

if sys.platform == "win32":
    pytest.skip("Redis is on POSIX systems", allow_module_level=True)

from redis_servers import running_redis

__all__ = ("home",)


def test_each_server_has_what_the_other_one_has(home: Path) -> None:
    asks = script.asks("make test", kind="execute", input={"command": "make test"})
    played = asks.says("Done.").stops().hangs()
    agent = ("--journal", "redis", "--command", scripted(home, played))
    with running_redis() as redis:
        env = {"THINKWELL_SERVE_TOKEN": ADA, "THINKWELL_SERVE_REDIS": redis.url}
        with serving_web(*agent, env=env) as first, serving_web(*agent, env=env) as second:
            assert "Runs are kept in Redis." in first.told[0]
            assert str(redis.socket) not in "".join((*first.told, *second.told))
            with first.client(ADA) as ada, httpx.Client(base_url=second.url, timeout=LIMIT) as browser:
                # A browser behind one address, whose requests go now here and now there.
                address = {"host": "localhost:80", "origin": "http://localhost"}
                given = ada.post("/api/session", json={"secret": ADA}, headers=address)
                cookie = given.headers["set-cookie"].partition(";")[0]
                browser.headers.update({**address, "cookie": cookie})
                run_id = started(ada)
                with watching(browser, run_id) as one:
                    question = one.until("question")
                    answer = {"question": question["id"], "answer": "allow"}
                    assert browser.post(f"/api/runs/{run_id}/answer", json=answer).status_code == 204
                    assert one.until("end")["result"] == "Done."
                assert watched(ada, run_id) == watched(browser, run_id)
                hangs = started(ada)
                assert browser.post(f"/api/runs/{hangs}/cancel").status_code == 202
                assert watched(browser, hangs)[-1]["status"] == "cancelled"
                assert browser.delete("/api/session").status_code == 204
                again = httpx.get(f"{first.url}api", headers={"cookie": cookie, **address})
                assert again.status_code == 401, "nor does the other one know him any more"


@pytest.mark.long
def test_a_redis_that_is_not_there(home: Path) -> None:
    env = {"THINKWELL_SERVE_REDIS": f"unix://{home}/nowhere.sock"}
    with serving_web("--journal", "redis", env=env, ready=False) as web:
        assert web.end() == 1
        assert web.told[0].startswith("Error: ")
