"""Shows runs while they go on: in a terminal, as plain lines, as JSON, in a notebook.

::

    review = await show(agent.think(Review).text("Review this module.").stream())

Whatever is drawn comes from `ThoughtStream.view`, and so can displays of your own.
"""

from thinkwell.progress._live import Live, Style, show

__all__ = ("Live", "Style", "show")
