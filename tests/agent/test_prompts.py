"""What a prompt is made of, and what the agent gets of it."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from scripted import Played, Turn, scripted

from thinkwell import Agent, CapabilityMissing
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from pathlib import Path

PNG = b"\x89PNG\r\n\x1a\n and more"
IMAGES = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/gif": b"GIF89a",
    "image/webp": b"RIFF\x00\n\x00\x00WEBPVP8 ",
}


class Answer(BaseModel):
    value: int


async def done(turn: Turn) -> None:
    turn.say("Done")


def capable(*, image: bool = False, embedded: bool = False) -> Played:
    flags = s.PromptCapabilities(image=image, embedded_context=embedded)
    return Played([done], capabilities=s.AgentCapabilities(prompt_capabilities=flags))


def text_of(agent: Agent, *calls: tuple[str, Any]) -> str:
    builder = agent.think()
    for name, content in calls:
        builder = getattr(builder, name)(content)
    (block,) = builder.explain().prompt
    text: str = block["text"]
    return text


async def test_texts_are_joined_as_they_are() -> None:
    async with scripted() as agent:
        assert (
            text_of(agent, ("text", "a"), ("text", "b"), ("line", "c"), ("line", ""), ("text", "d"))
            == "abc\n\nd"
        )
        assert (
            text_of(agent, ("text", "See:"), ("quote", "q\n"), ("text", "x"))
            == "See:\n<quote>\nq\n</quote>\nx"
        )
        assert text_of(agent, ("code", "x = 1")) == "```\nx = 1\n```\n"
        assert (
            agent.think().line("See").quote("", tag="file").explain().prompt[0]["text"]
            == "See\n<file>\n</file>\n"
        )
        assert agent.think().code("x", language="python").explain().prompt[0]["text"] == "```python\nx\n```\n"
        assert (
            text_of(agent, ("quote", "a </quote> and </quote_> b"))
            == "<quote__>\na </quote> and </quote_> b\n</quote__>\n"
        )


async def test_nothing_in_a_quote_or_code_can_end_it() -> None:
    async with scripted() as agent:

        @given(content=st.text(alphabet="`\n </quote>_a"), tag=st.sampled_from(["quote", "a"]))
        def check(content: str, tag: str) -> None:
            quoted = agent.think().line("See").quote(content, tag=tag).explain().prompt[0]["text"][4:]
            opening, closing = quoted.split("\n", 1)[0], quoted.rstrip("\n").rsplit("\n", 1)[1]
            assert closing == opening.replace("<", "</")
            assert quoted.count(closing) == 1
            fenced = agent.think().line("See").code(content).explain().prompt[0]["text"][4:]
            fence = fenced.split("\n", 1)[0]
            assert fence not in content
            assert fenced.rstrip("\n").endswith(fence)

        check()


async def test_a_tag_is_a_name() -> None:
    async with scripted() as agent:
        for tag in ("", "two words", "<x>", "1st", "a\n"):
            with pytest.raises(ValueError, match="a tag is a name"):
                agent.think().quote("x", tag=tag)


async def test_a_prompt_with_no_content_is_refused_at_once() -> None:
    handler = Played([done])
    async with scripted(agent=handler) as agent:
        empty = agent.think(Answer)
        for builder in (
            empty,
            empty.text(""),
            empty.text(" \n").text("\t"),
            empty.text("\n").quote("").code(" \n").line(),
        ):
            with pytest.raises(ValueError, match=r'the prompt is empty; .*\.text\("…"\)'):
                builder.stream()
            with pytest.raises(ValueError, match="the prompt is empty"):
                await builder.run()
    assert not handler.sent.sessions


@pytest.mark.parametrize("mime_type", IMAGES)
async def test_images_are_known_by_their_first_bytes(mime_type: str, tmp_path: Path) -> None:
    data = IMAGES[mime_type]
    path = tmp_path / "image"
    path.write_bytes(data)
    handler = capable(image=True)
    async with scripted(agent=handler) as agent:
        await agent.think().image(data).image(path).image(str(path)).text("What is it?").run()
    image = s.ImageContent(data=base64.b64encode(data).decode(), mime_type=mime_type)
    assert handler.requests("session/prompt")[0].prompt == (
        image,
        image,
        image,
        s.TextContent(text="What is it?"),
    )


@pytest.mark.parametrize("data", [b"", b"BM", b"RIFF\x00\x00\x00\x00WAVE"])
async def test_what_is_no_image_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "picture.bmp"
    path.write_bytes(data)
    async with scripted(agent=capable(image=True)) as agent:
        with pytest.raises(ValueError, match="the data is not a PNG, JPEG, GIF or WebP"):
            agent.think().image(data)
        with pytest.raises(ValueError, match=r"picture\.bmp is not a PNG"):
            agent.think().image(path)
        with pytest.raises(FileNotFoundError):
            agent.think().image(tmp_path / "missing")


async def test_an_image_is_refused_at_once_where_the_agent_takes_none() -> None:
    handler = capable()
    async with scripted(agent=handler) as agent:
        with pytest.raises(CapabilityMissing) as caught:
            agent.think().image(PNG)
        assert caught.value.capability == "promptCapabilities.image"
        async with agent.session() as session:
            with pytest.raises(CapabilityMissing):
                session.think().image(PNG)
    assert not handler.sent.prompts


async def test_a_file_is_embedded_or_linked_as_the_agent_likes(tmp_path: Path) -> None:
    source = tmp_path / "source.py"
    source.write_text("x = 'ä'\n", "utf-8")
    for embedded in (True, False):
        handler = capable(embedded=embedded)
        async with scripted(agent=handler) as agent:
            await agent.think().text("Read:").resource(source).run()
        _, block = handler.requests("session/prompt")[0].prompt
        contents = s.TextResourceContents(uri=source.as_uri(), text="x = 'ä'\n")
        link = s.ResourceLink(uri=source.as_uri(), name="source.py")
        assert block == (s.EmbeddedResource(resource=contents) if embedded else link)


async def test_a_binary_file_is_linked(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"\xff\xfe")
    handler = capable(embedded=True)
    async with scripted(agent=handler) as agent:
        await agent.think().resource(str(path)).run()
    assert handler.requests("session/prompt")[0].prompt == (s.ResourceLink(uri=path.as_uri(), name="data"),)


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("https://example.com/a/b.txt", "b.txt"),
        ("https://example.com/a/", "a"),
        ("git:///", "git:"),
        ("mailto:a@example.com", "mailto:a@example.com"),
    ],
)
async def test_a_uri_is_a_link(uri: str, name: str) -> None:
    handler = capable(embedded=True)
    async with scripted(agent=handler) as agent:
        await agent.think().resource(uri).run()
    assert handler.requests("session/prompt")[0].prompt == (s.ResourceLink(uri=uri, name=name),)


async def test_a_file_that_is_not_there_is_refused_at_once(tmp_path: Path) -> None:
    async with scripted() as agent:
        for path in (tmp_path / "missing", tmp_path, r"C:\missing"):
            with pytest.raises(FileNotFoundError, match="there is no file"):
                agent.think().resource(path)


async def test_a_file_that_went_away_fails_the_run(tmp_path: Path) -> None:
    path = tmp_path / "source"
    path.write_text("x")
    handler = capable(embedded=True)
    async with scripted(agent=handler) as agent:
        builder = agent.think().resource(path)
        path.unlink()
        with pytest.raises(FileNotFoundError):
            await builder.run()
    assert not handler.sent.prompts


async def test_meta_goes_with_the_prompt() -> None:
    handler = Played([done])
    async with scripted(agent=handler) as agent:
        await agent.think().text("Go").meta({"traceparent": "00-1", "a": 1}).meta({"a": {"b": [None]}}).run()
        await agent.think().text("Go").run()
        with pytest.raises(TypeError, match="cannot be written as JSON"):
            agent.think().meta({"a": object()})
    assert [one.meta for one in handler.requests("session/prompt")] == [
        {"traceparent": "00-1", "a": {"b": [None]}},
        None,
    ]


async def test_explain_shows_what_is_no_text_by_its_type() -> None:
    async with scripted(agent=capable(image=True)) as agent:
        explained = str(agent.think(Answer).text("Look:").image(PNG).text("Well?").explain())
    assert explained.startswith("Look:\n[image]\nWell?")
    assert "return_result: {" in explained
