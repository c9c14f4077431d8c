"""What a model can do, read from its header as Ollama does: completion, tools, thinking …"""

from __future__ import annotations

from jarvis.engine.gguf_header import Header


def of(header: Header) -> list[str]:
    """Ollama's names of what the model can do."""
    if header.is_embedding:
        return ["embedding"]
    template = header.chat_template
    found = ["completion"]
    if "tools" in template or "tool_call" in template:
        found.append("tools")
    if any(f"tokenizer.ggml.{kind}_token_id" in header.metadata for kind in _INFILL) or (
        "coder" in str(header.metadata.get("general.name", "")).lower()
    ):
        found.append("insert")
    if "enable_thinking" in template or "<think>" in template or "reasoning_effort" in template:
        found.append("thinking")
    return found


_INFILL = ("fim_pre", "prefix")
