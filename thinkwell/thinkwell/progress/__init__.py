"""Show runs while they are running: in a terminal, as plain lines, as JSON, in a notebook.

::

    review = await show(agent.think(Review).text("Review this module.").stream())

All displays draw `ThoughtStream.view`, and yours can do the same.
"""

from thinkwell.progress._board import Board, BoardStyle
from thinkwell.progress._board_state import BoardRow, BoardState, RowStatus
from thinkwell.progress._live import Live, Style, show

__all__ = ("Board", "BoardRow", "BoardState", "BoardStyle", "Live", "RowStatus", "Style", "show")
