"""The items of a run: its parts on the page, made by the server.

Their format is the page's own. Other programs read the events of a run.
"""

from __future__ import annotations

from thinkwell.web.items._feed import ItemFeeds
from thinkwell.web.items._saved import recording_html, run_html
from thinkwell.web.items._stream import FORMAT, item_stream

__all__ = ("FORMAT", "ItemFeeds", "item_stream", "recording_html", "run_html")
