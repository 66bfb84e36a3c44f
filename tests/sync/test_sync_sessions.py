"""Sessions of the blocking API."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from login.terminal import PROGRAMS
from sync.playing import playing

from thinkwell import (
    AgentClosed,
    CapabilityMissing,
    LoginRequired,
    Message,
    ModelNotOffered,
    SessionClosed,
    ThoughtCancelled,
)
from thinkwell.events import QuestionAsked
from thinkwell.sync import login, open_agent
from thinkwell.testing import script

QUIET = {"THINKWELL_BUILTIN_PACE": "0"}


def test_turns_of_a_session() -> None:
    with playing(script.says("one").stops().says("two")) as agent:
        with agent.session() as session:
            assert session.think().text("First.").run() == "one"
            assert session.think().text("Second.").run() == "two"
            assert [message.role for message in session.history()] == ["user", "assistant"] * 2
            assert session.id in repr(session)
            assert Path(session.cwd) == Path.cwd()
            assert (session.title, session.commands, session.usage) == (None, (), None)
            assert (session.modes, session.mode, session.options) == ((), None, ())
            with pytest.raises(CapabilityMissing):
                session.set_mode("plan")
            with pytest.raises(CapabilityMissing):
                session.set_option("model", "big")
        with pytest.raises(SessionClosed):
            session.think().text("Third.").stream()
        assert list(session.events()) == []


def test_models_of_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKWELL_BUILTIN_MODELS", "swift,large")
    with open_agent("builtin", env=QUIET, model="large") as agent:
        with agent.session() as session:
            assert (session.model, [model.value for model in session.models]) == ("large", ["swift", "large"])
            session.set_model("swift")
            assert session.model == "swift"
            with pytest.raises(CapabilityMissing, match="fork"):
                session.fork(model="large").start()
        with agent.session(model="swift") as session:
            assert session.model == "swift"
        with pytest.raises(ModelNotOffered, match="It offers 'swift', 'large'"):
            agent.session(model="huge").start()


def test_a_session_without_a_block_is_closed_with_its_agent() -> None:
    with playing(script.says("a").hangs()) as agent:
        session = agent.session(output=int).start()
        with pytest.raises(TypeError):
            session.think(str | int)
        stream = session.think(int).text("Go.").stream()
        assert isinstance(next(iter(stream)), Message)
    with pytest.raises(ThoughtCancelled):
        stream.result()
    session.close()
    with pytest.raises(AgentClosed):
        session.set_mode("plan")
    with pytest.raises(AgentClosed):
        agent.session().start()


def test_a_session_that_cannot_be_opened() -> None:
    with playing(script.says("a")) as agent:
        with pytest.raises(ValueError, match="give only one"):
            agent.session(load="a", resume="b").start()
        with pytest.raises(CapabilityMissing):
            agent.session(resume="a").start()
        with agent.session() as session, pytest.raises(CapabilityMissing):
            session.fork().start()


def test_old_sessions() -> None:
    with open_agent("builtin", env=QUIET) as agent, agent.session() as session:
        with pytest.raises(CapabilityMissing):
            agent.list_sessions()
        with pytest.raises(CapabilityMissing):
            agent.delete_session(session.id)
        with pytest.raises(CapabilityMissing):
            agent.authenticate("browser")


def test_the_session_of_an_agent_that_is_closed_while_others_are_open() -> None:
    with playing(script.says("a")):
        with playing(script.says("b")) as agent:
            pass
        with pytest.raises(AgentClosed):
            agent.session().start()
        with pytest.raises(AgentClosed):
            agent.list_sessions()


def test_a_question_of_a_session() -> None:
    told = script.asks("May I?", expect="allow_once").says("Done.")
    with playing(told, permissions="ask") as agent, agent.session() as session:
        stream = session.think().text("Go.").stream(include={"question"})
        event = next(iter(stream))
        assert isinstance(event, QuestionAsked)
        session.answer(event.id, answer=True)
        assert stream.result() == "Done."


def test_a_login(tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAMS / "login_agent.py"), "browser"]
    login(command=command, env={"LOGIN_TOKEN": str(tmp_path / "token")})
    assert (tmp_path / "token").read_text() == "by browser"
    with pytest.raises(LoginRequired, match="there is none"):
        login("builtin", "browser")
