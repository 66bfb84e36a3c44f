"""One turn of the built-in agent: plan, read, report, call the tools, return the result."""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio.to_thread

from thinkwell.builtin._calls import RESULT_TOOL, Offer, ask_tools, return_result
from thinkwell.builtin._facts import FileFacts, examine
from thinkwell.builtin._files import MAX_BYTES, MAX_FILES, Folder, UnreadError
from thinkwell.builtin._findings import Findings
from thinkwell.builtin._speech import Plan, Speaker
from thinkwell.builtin._subjects import subject_of
from thinkwell.builtin._words import listed, number
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.builtin._request import Request
    from thinkwell.builtin._servers import Server, SessionServers

CONFESSION: Final = "I am thinkwell's built-in agent. I have no model: all this is computed from files."

_SHOWN: Final = 4
"""Most names that a sentence lists."""


class Turn:
    """A turn, with its findings so far.

    Args:
        request: The prompt.
        folder: Where files may be read.
        speaker: Takes the updates.
        remembered: Files that earlier turns have read.
        first: Whether it is the first turn of its session.
    """

    def __init__(
        self,
        request: Request,
        folder: Folder,
        speaker: Speaker,
        *,
        remembered: tuple[FileFacts, ...],
        first: bool,
    ) -> None:
        self._request = request
        self._folder = folder
        self._speaker = speaker
        self._remembered = remembered
        self._first = first
        self.files: list[FileFacts] = []
        """The files that were read."""

    async def run(self, servers: SessionServers) -> None:
        """Run it with the tools of these servers."""
        offered = offers(servers.reached)
        returns = _for_result(offered, servers.reached)
        others = [offer for offer in offered if offer is not returns]
        if RESULT_TOOL not in self._request.text:
            returns = None  # for another turn of the session
        steps = ["Find out what to read", "Read it"]
        steps += [f"Ask {listed([offer.said for offer in others[:_SHOWN]])}"] if others else []
        steps += ["Return the result" if returns else "Answer"]
        plan = Plan(self._speaker, steps)
        plan.next()
        if self._first:
            await self._speaker.think(CONFESSION)
        for trouble in servers.troubles:
            await self._speaker.think(f"I do without the MCP server {trouble}.")
        paths = await self._find()
        plan.next()
        await self._read(paths)
        about = self._request.about([offer.tool.name for offer in offered])
        findings = Findings(self._folder.root.name, self.files or self._remembered, about)
        plan.next()
        if others:
            answers = await ask_tools(others, findings, self._speaker)
            findings = findings.with_answers(answers)
            plan.next()
        if returns is None:
            await self._answer(findings)
        else:
            await return_result(returns, findings, self._request.schema, self._speaker)
        plan.next()

    async def _find(self) -> list[Path]:
        """Return the files to read: the linked ones; without any, none if the prompt has another subject."""
        request, found = self._request, dict[Path, None]()
        for name in request.elsewhere:
            await self._speaker.think(f"I cannot look at {name}: I read files only.")
        for name in request.paths:
            try:
                found[self._folder.inside(name)] = None
            except UnreadError as exc:
                await self._speaker.think(f"I do not read {name}: {exc}.")
        found |= dict.fromkeys(self._folder.named_in(request.text))
        files = [path for path in found if not path.is_dir()]
        for path in found:
            if path.is_dir():
                files += await self._search(path)
        if not (found or request.quotations or request.paths):
            if self._remembered:
                names = listed([file.path for file in self._remembered])
                await self._speaker.think(
                    f"Nothing new to read is named, so I go by what I have read before: {names}."
                )
            else:
                files = await self._search(self._folder.root)
        return list(dict.fromkeys(files))[:MAX_FILES]

    async def _search(self, folder: Path) -> list[Path]:
        shown = self._folder.shown(folder)
        title = "List the files of the project" if shown == "." else f"List the files of {shown}"
        call = self._speaker.start_tool(title, "search", arguments={"path": shown}, path=str(folder))
        files = await anyio.to_thread.run_sync(self._folder.files_in, folder, abandon_on_cancel=True)
        names = [self._folder.shown(path) for path in files]
        await self._speaker.end_tool(call, "\n".join(names) or "There are none.", output=names)
        return files

    async def _read(self, paths: Sequence[Path]) -> None:
        for quotation in self._request.quotations:
            await self._take(examine(quotation.name, quotation.text))
        for path in paths:
            shown = self._folder.shown(path)
            call = self._speaker.start_tool(
                f"Read {shown}", "read", arguments={"path": shown}, path=str(path)
            )
            try:
                source = await anyio.to_thread.run_sync(self._folder.read, path, abandon_on_cancel=True)
            except UnreadError as exc:
                await self._speaker.end_tool(call, f"I do not read it: {exc}.", failed=True)
                continue
            cut = f" It is longer than the {MAX_BYTES} bytes that I read." if source.cut else ""
            text = f"{number(source.facts.lines, 'line')}, {number(source.facts.size, 'byte')}.{cut}"
            await self._speaker.end_tool(call, text)
            await self._take(source.facts)

    async def _take(self, facts: FileFacts) -> None:
        self.files.append(facts)
        size = sum(file.size for file in self.files)
        # Without a model there are no tokens: bytes are counted, relative to what a turn may read.
        self._speaker.update(s.UsageUpdate(used=size, size=max(size, MAX_FILES * MAX_BYTES)))
        for sentence in told(facts):
            await self._speaker.think(sentence)

    async def _answer(self, findings: Findings) -> None:
        """Answer in one message: the last message is the result if a text is wanted."""
        lines = [findings.project.text]
        lines += [f"{answer.tool} answers: {answer.text}" for answer in findings.answers]
        issues = findings.issues[:_SHOWN]
        if issues:
            lines += ["What I would look at first:", *(f"- {issue.text}" for issue in issues)]
        await self._speaker.say("\n".join(lines))


def offers(servers: Sequence[Server]) -> list[Offer]:
    """Return the tools of all servers, one of each in turn.

    So a server with many does not hide the others. The last server comes first: a client's own tools follow
    those of its user.
    """
    names = Counter(tool.name for server in servers for tool in server.tools)
    turns = zip_longest(*([(server, tool) for tool in server.tools] for server in reversed(servers)))
    return [
        Offer(server, tool, tool.name if names[tool.name] == 1 else server.title(tool))
        for turn in turns
        for server, tool in filter(None, turn)
    ]


def _for_result(offered: Sequence[Offer], servers: Sequence[Server]) -> Offer | None:
    """Return the tool that accepts the result: that of the last server if there are several."""
    found = {offer.server: offer for offer in offered if offer.tool.name == RESULT_TOOL}
    return next((found[server] for server in reversed(servers) if server in found), None)


def told(facts: FileFacts) -> list[str]:
    """Return sentences about a file."""
    sentences = [subject_of(facts).text]
    if facts.title:
        sentences[0] += f" It says of itself: {facts.title}"
    if facts.broken:
        sentences.append(f"It does not parse; at line {facts.broken_line}: {facts.broken}.")
    if facts.functions:
        longest = max(facts.functions, key=lambda function: function.lines)
        size = number(longest.lines, "line")
        text = f"Its longest function is {longest.name} at line {longest.line} with {size}"
        bare = [function.name for function in facts.functions if function.public and not function.documented]
        sentences.append(f"{text}; no docstring has {_some(bare)}." if bare else f"{text}.")
    if facts.imports:
        sentences.append(f"It imports {_some(facts.imports)}.")
    if len(facts.headings) > 1:
        sentences.append(f"Its parts are {_some(facts.headings)}.")
    if facts.marks:
        mark = facts.marks[0]
        sentences.append(f"Line {mark.line} is left open: {mark.word} {mark.text}".rstrip())
    return sentences


def _some(names: Sequence[str]) -> str:
    shown = list(names[:_SHOWN])
    return listed([*shown, f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else shown)
