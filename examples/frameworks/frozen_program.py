"""A frozen program, as of PyInstaller, shiv or zipapp: `pyinstaller --collect-data thinkwell FILE`."""

from pydantic import BaseModel

from thinkwell.frozen import freeze_support
from thinkwell.sync import open_agent


class Review(BaseModel):
    """What the agent returns."""

    summary: str
    score: int


def main() -> None:
    with open_agent("builtin") as agent:  # the program starts itself again, as the agent
        found = agent.think(Review).text("Review the files of this folder.").run(timeout=600)
    print(f"{found.score}: {found.summary}")


if __name__ == "__main__":
    freeze_support()  # first: where the program was started as the agent, it goes no further
    main()
