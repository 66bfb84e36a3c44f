"""Files that the client reads and writes for the agent. All paths are absolute."""

from thinkwell_acp.schema._base import Extensible, OfSession, UInt

__all__ = ("ReadTextFileRequest", "ReadTextFileResponse", "WriteTextFileRequest", "WriteTextFileResponse")


class ReadTextFileRequest(OfSession, frozen=True, kw_only=True):
    """Parameters of `fs/read_text_file`.

    Attributes:
        line: the first line to read, counted from 1.
        limit: most lines to read.
    """

    path: str
    line: UInt | None = None
    limit: UInt | None = None


class ReadTextFileResponse(Extensible, frozen=True, kw_only=True):
    """Result of `fs/read_text_file`."""

    content: str


class WriteTextFileRequest(OfSession, frozen=True, kw_only=True):
    """Parameters of `fs/write_text_file`. A missing file is created."""

    path: str
    content: str


class WriteTextFileResponse(Extensible, frozen=True, kw_only=True):
    """Result of `fs/write_text_file`."""
