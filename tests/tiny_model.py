"""Makes a model of a few hundred kilobytes with random weights: it loads in milliseconds.

What it says is noise, and the same noise every time; how it is served is what tests look at.
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

WIDTH, LAYERS, HEADS, FEED_FORWARD = 64, 2, 4, 128
CHARACTERS = 95
PLAIN_TEMPLATE = (
    "{% for message in messages %}<{{ message.role }}>{{ message.content }}\n{% endfor %}"
    "{% if tools %}tools{% endif %}<assistant>"
)
STRICT_TEMPLATE = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system messages') }}{% endif %}"
    "{% for message in messages %}"
    "{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "<{{ message.role }}>{{ message.content }}\n{% endfor %}<assistant>"
)
"""Takes users and assistants in turns, and nothing else."""
THINKING_TEMPLATE = PLAIN_TEMPLATE + "{% if enable_thinking %}PONDER{% endif %}"


def write(path: Path, *, template: str = PLAIN_TEMPLATE, context: int = 2048) -> Path:
    """Writes the model to ``path`` and returns it."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(context)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    tokens = _vocabulary(writer)
    writer.add_chat_template(template)
    random = np.random.default_rng(7)

    def tensor(name: str, *shape: int) -> None:
        values = random.standard_normal(shape) * 0.2 if len(shape) > 1 else np.ones(shape)
        writer.add_tensor(name, values.astype(np.float32))

    tensor("token_embd.weight", tokens, WIDTH)
    tensor("output_norm.weight", WIDTH)
    # Only characters are ever likely: no end, no half of a UTF-8 sequence.
    output = random.standard_normal((tokens, WIDTH)) * 2
    output[: tokens - CHARACTERS] = 0
    writer.add_tensor("output.weight", output.astype(np.float32))
    for layer in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensor(f"blk.{layer}.{name}.weight", WIDTH, WIDTH)
        tensor(f"blk.{layer}.attn_norm.weight", WIDTH)
        tensor(f"blk.{layer}.ffn_norm.weight", WIDTH)
        tensor(f"blk.{layer}.ffn_gate.weight", FEED_FORWARD, WIDTH)
        tensor(f"blk.{layer}.ffn_up.weight", FEED_FORWARD, WIDTH)
        tensor(f"blk.{layer}.ffn_down.weight", WIDTH, FEED_FORWARD)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _vocabulary(writer: gguf.GGUFWriter) -> int:
    """Every byte is a token, and every printable character one of its own."""
    pieces = ["<unk>", "<s>", "</s>"]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    pieces += [f"<0x{byte:02X}>" for byte in range(256)]
    kinds += [gguf.TokenType.BYTE] * 256
    characters = ["\u2581", *map(chr, range(33, 127))]
    pieces += characters
    kinds += [gguf.TokenType.NORMAL] * len(characters)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(pieces)
    writer.add_token_scores([0.0] * len(pieces))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    return len(pieces)
