"""Cells of a notebook, for VS Code, Spyder, or JupyterLab with Jupytext: run them one by one."""

# %% The agent lives from this cell to the last one.
from pydantic import BaseModel

from thinkwell import open_agent
from thinkwell.progress import show


class Review(BaseModel):
    """What the agent returns."""

    summary: str
    score: int


agent = await open_agent().start()

# %% A run, which is drawn while it goes on.
task = agent.think(Review).text("Review the files of this folder.")
found = await show(task.stream(timeout=600), result=False)
print(f"{found.score}: {found.summary}")

# %%
await agent.close()
