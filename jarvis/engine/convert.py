"""Makes a GGUF of a BERT sentence-embedding model (``model.safetensors`` and ``vocab.txt``).

Weights become Q8_0: blocks of 32 numbers with one scale, which keeps the cosine with the
original above 0.999 and is several times faster on a processor than F16. Norms, biases,
positions and token types stay F32, as the loader expects. Needs ``gguf`` and ``numpy``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jarvis.errors import JarvisError

# The shape of all-MiniLM-L6-v2 (its config.json and sentence_bert_config.json).
_LAYERS, _WIDTH, _FEED_FORWARD, _HEADS, _POSITIONS = 6, 384, 1536, 12, 512
_EPSILON = 1e-12

_NAMES = {
    "embeddings.word_embeddings.weight": "token_embd.weight",
    "embeddings.position_embeddings.weight": "position_embd.weight",
    "embeddings.token_type_embeddings.weight": "token_types.weight",
    "embeddings.LayerNorm": "token_embd_norm",
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
_FULL_PRECISION = {"position_embd.weight", "token_types.weight"}
# Not used for embeddings: the index of positions and BERT's pooler.
_SKIPPED = ("embeddings.position_ids", "pooler.")


def bert_to_gguf(weights: Path, vocabulary: Path, target: Path, *, name: str, licence: str) -> None:
    """Writes ``target`` from the safetensors file and the WordPiece vocabulary.

    Raises:
        JarvisError: a tensor has a name or type that this model does not have.
    """
    import gguf
    import numpy as np

    writer = gguf.GGUFWriter(target, "bert")
    writer.add_name(name)
    writer.add_license(licence)
    writer.add_block_count(_LAYERS)
    writer.add_context_length(_POSITIONS)
    writer.add_embedding_length(_WIDTH)
    writer.add_feed_forward_length(_FEED_FORWARD)
    writer.add_head_count(_HEADS)
    writer.add_layer_norm_eps(_EPSILON)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    _add_vocabulary(writer, vocabulary.read_text(encoding="utf-8").splitlines())
    for theirs, tensor in _tensors(weights):
        if theirs.startswith(_SKIPPED):
            continue
        ours = _tensor_name(theirs)
        if tensor.ndim == 2 and ours not in _FULL_PRECISION:
            quantised = gguf.quants.quantize(tensor, gguf.GGMLQuantizationType.Q8_0)
            writer.add_tensor(ours, quantised, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else:
            writer.add_tensor(ours, np.ascontiguousarray(tensor, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_vocabulary(writer: Any, tokens: list[str]) -> None:
    """WordPiece as the loader wants it: word starts carry ``▁``, continuations lose ``##``."""
    import gguf

    pieces, kinds = [], []
    for token in tokens:
        if token.startswith("[") and token.endswith("]"):
            special = token in {"[PAD]", "[CLS]", "[SEP]", "[MASK]"}
            kinds.append(gguf.TokenType.CONTROL if special else gguf.TokenType.NORMAL)
            if token == "[UNK]":  # noqa: S105 -- a word piece
                kinds[-1] = gguf.TokenType.UNKNOWN
            pieces.append(token)
        else:
            kinds.append(gguf.TokenType.NORMAL)
            pieces.append(token[2:] if token.startswith("##") else "\u2581" + token)
    index = {token: position for position, token in enumerate(tokens)}
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(pieces)
    writer.add_token_types(kinds)
    writer.add_token_type_count(2)
    writer.add_unk_token_id(index["[UNK]"])
    writer.add_sep_token_id(index["[SEP]"])
    writer.add_pad_token_id(index["[PAD]"])
    writer.add_mask_token_id(index["[MASK]"])
    writer.add_bos_token_id(index["[CLS]"])
    writer.add_eos_token_id(index["[SEP]"])
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(True)


def _tensor_name(theirs: str) -> str:
    if theirs in _NAMES:
        return _NAMES[theirs]
    stem, _, kind = theirs.rpartition(".")
    if stem in _NAMES:
        return f"{_NAMES[stem]}.{kind}"
    parts = stem.split(".", 3)
    if parts[:2] == ["encoder", "layer"] and len(parts) == 4 and parts[3] in _NAMES:
        return f"blk.{int(parts[2])}.{_NAMES[parts[3]]}.{kind}"
    raise JarvisError(f"unexpected tensor {theirs}", "the file is not all-MiniLM-L6-v2")


def _tensors(path: Path) -> Iterator[tuple[str, Any]]:
    """The F32 tensors of a safetensors file: length of the header, JSON header, raw data."""
    import numpy as np

    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        header: Mapping[str, Any] = json.loads(stream.read(length))
    data = np.memmap(path, dtype=np.uint8, mode="r", offset=8 + length)
    for name, info in sorted(header.items()):
        if name == "__metadata__" or name.startswith(_SKIPPED):
            continue
        if info["dtype"] != "F32":
            raise JarvisError(f"tensor {name} is {info['dtype']} instead of F32")
        start, end = info["data_offsets"]
        yield name, data[start:end].view(np.float32).reshape(info["shape"])
