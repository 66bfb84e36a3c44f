"""A chat in a terminal with Textual: `python examples/frameworks/textual_app.py`."""

import asyncio

from textual.app import App, ComposeResult
from textual.widgets import Input, RichLog

from thinkwell import ThinkwellError, ToolStart, open_agent


class Chat(App[None]):
    """Asks an agent what is typed, and shows what it says."""

    def __init__(self) -> None:
        super().__init__()
        self.questions: asyncio.Queue[str] = asyncio.Queue()

    def compose(self) -> ComposeResult:
        yield RichLog(wrap=True)
        yield Input(placeholder="Ask the agent")

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self.run_worker(self.talk())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.input.clear()
        self.questions.put_nowait(event.value)

    async def talk(self) -> None:
        """Hold the agent: a worker is one task, and Textual cancels it when the application ends."""
        log = self.query_one(RichLog)
        async with open_agent() as agent, agent.session() as session:
            while True:
                question = await self.questions.get()
                log.write(f"> {question}")
                stream = session.think().text(question).stream(timeout=600)
                async for event in stream:
                    if isinstance(event, ToolStart):
                        log.write(f"  {event.title}")
                try:
                    log.write(await stream.result)
                except ThinkwellError as error:
                    log.write(f"Error: {error}")


if __name__ == "__main__":
    Chat().run()
