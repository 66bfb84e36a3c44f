"""Python functions as tools that an agent can call."""

from thinkwell._core.tools.tool import Ask, Report, Tool, ToolContext, ToolFunction, ToolResult, tool

__all__ = ("Ask", "Report", "Tool", "ToolContext", "ToolFunction", "ToolResult", "tool")
