"""Tools that the model may call: the protocol, the registry, the policy, the built-in ones.

This package imports no service: what tools need comes in through ``ToolContext``.
"""

from jarvis.tools.protocol import Effect, Tool, ToolContext, tool
from jarvis.tools.schema import BadTool, ToolError

__all__ = ["BadTool", "Effect", "Tool", "ToolContext", "ToolError", "tool"]
