"""A program that is interrupted, or that ends, while it uses an agent.

    python caller.py WHAT COMMAND...

It says ``ready`` when it is about to wait.
"""

import sys
import threading
import time

import thinkwell
from thinkwell.listen import Handlers
from thinkwell.sync import Agent, ThoughtStream, open_agent

WHAT, *COMMAND = sys.argv[1:]


def say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


def ready() -> None:
    say("ready")


def begun(agent: Agent) -> ThoughtStream[str]:
    stream = agent.think().text("Go.").stream()
    for _ in stream:
        break
    return stream


def block() -> None:
    """Wait in the way that was asked for."""
    if WHAT == "opening":
        ready()
    with open_agent(command=COMMAND) as agent:
        match WHAT:
            case "result":
                stream = begun(agent)
                ready()
                stream.result()
            case "run":
                ready()
                agent.think().text("Go.").run()
            case "listen":
                ready()
                agent.think().text("Go.").listen(Handlers())
            case "iterate":
                for _ in agent.think().text("Go.").stream():
                    ready()
            case "session":
                with agent.session() as session:
                    ready()
                    session.think().text("Go.").run()
            case "leave":
                begun(agent)
                ready()
            case "sleep":
                begun(agent)
                ready()
                while True:  # Ctrl-C does not end one that it comes just before
                    time.sleep(0.1)
            case _:
                raise AssertionError(WHAT)


def work(agent: Agent) -> None:
    """Use an agent for a while after the main thread has ended."""
    threading.main_thread().join()
    assert agent.think().text("Go.").run() == "Done."
    say("worked")


def open_and_work(opened: threading.Event) -> None:
    with open_agent(command=COMMAND) as agent:
        opened.set()
        work(agent)


def end() -> None:
    """End in the way that was asked for, with an agent left open."""
    if WHAT == "open in a thread":
        opened = threading.Event()
        threading.Thread(target=open_and_work, args=(opened,)).start()
        opened.wait()  # before 3.12.2, Python starts no thread when the main one has ended
        return
    agent = open_agent(command=COMMAND).start()
    kept.append(agent)
    match WHAT:
        case "left in a thread":
            used_tool(agent)
            threading.Thread(target=lambda: kept.append(open_agent(command=COMMAND).start())).start()
        case "left open":
            kept.append(begun(agent))
        case "left by a tool":
            used_tool(agent)
        case "left session":
            kept.append(agent.session().start())
        case "left and raised":
            begun(agent)
            raise thinkwell.ToolError("the program fails")
        case "left and exited":
            begun(agent)
            sys.exit(3)
        case _:
            raise AssertionError(WHAT)
    ready()


def used_tool(agent: Agent) -> None:
    """Let the agent call a tool, which leaves an idle thread."""
    assert agent.think().text("Go.").tool(greet).run() == "Done."


def greet() -> str:
    """Greet."""
    return "hello"


kept: list[object] = []
if "left" in WHAT or "thread" in WHAT:
    end()
else:
    block()
