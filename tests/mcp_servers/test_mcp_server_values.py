"""What an MCP server of the user's may be made of, and what of it is shown."""

from __future__ import annotations

import copy
import pickle
import pprint
from typing import TYPE_CHECKING, Any

import pytest

from thinkwell import McpHttp, McpSse, McpStdio
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = "s3cr3t-value"
FILES = McpStdio("files", ["npx", "-y", "--key", SECRET], env={"TOKEN": SECRET})
WEB = McpHttp("web", f"https://me:{SECRET}@h.example/{SECRET}?k={SECRET}", headers={"Authorization": SECRET})


def test_values() -> None:
    assert (FILES.name, FILES.command, FILES.env) == (
        "files",
        ("npx", "-y", "--key", SECRET),
        {"TOKEN": SECRET},
    )
    old = McpSse(name="old", url="http://[::1]:8000")
    assert (old.name, old.url, old.headers) == ("old", "http://[::1]:8000", {})
    others: list[object] = [McpHttp("old", "http://[::1]:8000")]
    assert old not in others
    for server in (FILES, WEB, old):
        assert pickle.loads(pickle.dumps(server)) == copy.deepcopy(server) == server


def test_values_do_not_change_with_what_they_were_made_of() -> None:
    env, command = {"A": "b"}, ["server"]
    server = McpStdio("files", command, env=env)
    env["A"] = command[0] = "other"
    assert (server.command, server.env) == (("server",), {"A": "b"})
    with pytest.raises(AttributeError):
        server.name = "other"  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue]


def test_what_may_be_a_key_is_not_shown() -> None:
    assert repr(FILES) == "McpStdio('files', ['npx', …], env={'TOKEN': …})"
    assert repr(WEB) == "McpHttp('web', 'https://h.example/…', headers={'Authorization': …})"
    assert repr(McpSse("old", "http://h:80")) == "McpSse('old', 'http://h:80')"
    assert repr(McpStdio("files", ["server"])) == "McpStdio('files', ['server'])"
    header = s.HttpHeader(name="Authorization", value=SECRET)
    wire = s.McpServerHttp(name="web", url="https://h.example", headers=(header,))
    for shown in (str(FILES), pprint.pformat([FILES, WEB]), repr(wire), str(header.__rich_repr__())):
        assert SECRET not in shown
    assert SECRET not in repr(s.EnvVariable(name="TOKEN", value=SECRET))


WRONG: list[tuple[Callable[[Any], object], object, type[Exception], str]] = [
    (lambda name: McpStdio(name, ["x"]), "", ValueError, r"McpStdio\(''\): the name is empty"),
    (lambda name: McpHttp(name, "http://h"), " ", ValueError, r"McpHttp\(' '\): the name is empty"),
    (lambda name: McpSse(name, "http://h"), "a\nb", ValueError, r"McpSse\('a\\nb'\): .* cannot be printed"),
    (lambda name: McpStdio(name, ["x"]), 3, TypeError, "the name is a int; give a text"),
    (lambda name: McpStdio(name, ["x"]), "\ud800", ValueError, "the name has a byte in it that is no text"),
    (lambda command: McpStdio("n", command), "npx -y", TypeError, "the program and its arguments as a list"),
    (lambda command: McpStdio("n", command), None, TypeError, "the program and its arguments as a list"),
    (lambda command: McpStdio("n", command), [], ValueError, "the command is empty: name a program"),
    (lambda command: McpStdio("n", command), [" "], ValueError, "the command is empty"),
    (lambda command: McpStdio("n", command), ["x", 3], TypeError, "a word of the command is a int"),
    (lambda command: McpStdio("n", command), ["x", f"{SECRET}\0"], ValueError, "zero byte in the command"),
    (lambda env: McpStdio("n", ["x"], env=env), [SECRET], TypeError, "env: it is a list; give texts by"),
    (lambda env: McpStdio("n", ["x"], env=env), {"A": 3}, TypeError, "env: the value of 'A' is a int"),
    (lambda env: McpStdio("n", ["x"], env=env), {3: "a"}, TypeError, "env: a name is a int"),
    (lambda env: McpStdio("n", ["x"], env=env), {"": SECRET}, ValueError, "env: '' is no name of a variable"),
    (lambda env: McpStdio("n", ["x"], env=env), {"A=B": SECRET}, ValueError, "'A=B' is no name"),
    (lambda env: McpStdio("n", ["x"], env=env), {"A\n": SECRET}, ValueError, r"'A\\n' is no name"),
    (lambda env: McpStdio("n", ["x"], env=env), {"A": f"{SECRET}\0"}, ValueError, "zero byte in .* 'A'"),
    (lambda env: McpStdio("n", ["x"], env=env), {"A": f"{SECRET}\udcff"}, ValueError, "'A' has a byte in it"),
    (lambda url: McpHttp("n", url), "ftp://h", ValueError, "begin with https:// or http://, and name a host"),
    (lambda url: McpHttp("n", url), f"h.example/{SECRET}", ValueError, "must begin with https"),
    (lambda url: McpHttp("n", url), "https:///mcp", ValueError, "and name a host"),
    (lambda url: McpHttp("n", url), f"https://h:{SECRET}", ValueError, "check its host and its port"),
    (lambda url: McpHttp("n", url), f"https://[{SECRET}", ValueError, "check its host and its port"),
    (lambda url: McpSse("n", url), f"https://h/\n{SECRET}", ValueError, "a blank or a control character"),
    (lambda url: McpSse("n", url), f"https://h/ {SECRET}", ValueError, "a blank or a control character"),
    (lambda url: McpSse("n", url), None, TypeError, "the url is a NoneType"),
    (lambda headers: McpHttp("n", "http://h", headers=headers), "A: b", TypeError, "headers: it is a str"),
    (lambda headers: McpHttp("n", "http://h", headers=headers), {"A B": SECRET}, ValueError, "'A B' is no"),
    (lambda headers: McpHttp("n", "http://h", headers=headers), {"": SECRET}, ValueError, "'' is no name"),
    (lambda headers: McpHttp("n", "http://h", headers=headers), {"A": f"{SECRET}\n"}, ValueError, "line end"),
    (lambda headers: McpHttp("n", "http://h", headers=headers), {"A": f"{SECRET}€"}, ValueError, "no header"),
]


@pytest.mark.parametrize(("make", "value", "error", "message"), WRONG)
def test_what_no_agent_could_use_is_refused_without_showing_it(
    make: Callable[[Any], object], value: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        make(value)
    assert SECRET not in str(caught.value)
    # A traceback shows the cause too.
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_variable_may_have_several_lines() -> None:
    assert McpStdio("n", ["x"], env={"KEY": "-----BEGIN\nEND-----\n"}).env["KEY"].endswith("\n")
