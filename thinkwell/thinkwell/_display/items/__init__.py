"""The contents of a run as nodes: made once, drawn by the page, notebooks and reports."""
