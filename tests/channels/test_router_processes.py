"""A router and an agent that is a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from kept_channels import Streamed, Whole

from thinkwell import AgentExited, open_agent
from thinkwell.channels import MessageRouter

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.long
async def test_twenty_chats_at_once_get_their_answers(tmp_path: Path) -> None:
    folders = [tmp_path / f"user {number}" for number in range(20)]
    for number, folder in enumerate(folders):
        folder.mkdir()
        (folder / f"module_{number}.py").write_text("def f(): ...\n" * number, "utf-8")
    chats = {folder.name: Streamed() for folder in folders}
    with anyio.fail_after(60):
        async with MessageRouter(
            lambda: open_agent("builtin", cwd=tmp_path, env={"THINKWELL_BUILTIN_PACE": "0"}),
            cwd=lambda user_id: tmp_path / user_id,
        ) as router:
            async with anyio.create_task_group() as tasks:
                for user_id, chat in chats.items():
                    tasks.start_soon(router.handle_user_message, "What is in this folder?", user_id, chat)
            assert len(router.conversations) == 20
    for number, chat in enumerate(chats.values()):
        assert len(chat.ends) == 1
        assert f"module_{number}.py" in chat.ends[0]
        assert "".join(chat.chunks) == chat.ends[0]


async def test_a_process_that_is_killed_is_started_again(tmp_path: Path) -> None:
    chat = Whole()
    with anyio.fail_after(60):
        async with MessageRouter(
            lambda: open_agent("builtin", cwd=tmp_path, env={"THINKWELL_BUILTIN_PACE": "0.1"})
        ) as router:
            async with router.streaming("What is in this folder?", user_id="ada") as stream:
                async for _ in stream:
                    stream.kill()
                with pytest.raises(AgentExited):
                    await stream.result
            delivery = await router.handle_user_message("/help", "ada", chat)
            assert delivery is not None
            assert delivery.status == "completed"
    assert chat.texts[0].startswith("The agent had to be restarted.")
