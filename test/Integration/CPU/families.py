#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Families of models of transformers, two layers of random weights each: outputs and
gradients with attn_implementation="attn", or with torch.compile(backend="attn") of the
eager attention, against eager.

    families.py --lib build/lib/libattn.so
    families.py --lib ... --backend --only llama,bert     what the backend raises, too

Tensors are f32 on the CPU. An output may differ by 1e-4 of the largest, a gradient by
1e-3 of its parameter's largest. A family that this transformers does not have, or that
its eager attention does not run, is named and not counted. Exit code 0: all agree; 1:
some do not; 77: no PyTorch or transformers.
"""

import argparse
import os
import pathlib
import sys
import time
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python"))

SKIP = 77
COMMON = dict(hidden_size=32, num_attention_heads=4, num_hidden_layers=2, intermediate_size=48, vocab_size=64,
              max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
GROUPED = dict(num_key_value_heads=2)
WIDE = dict(GROUPED, head_dim=8)
SLIDING = dict(GROUPED, sliding_window=8)
EXPERTS = dict(num_experts=2, num_experts_per_tok=1, moe_intermediate_size=16)
GPT = dict(n_embd=32, n_head=4, n_layer=2)
IMAGES = dict(image_size=16, patch_size=4)
BOTH = dict(d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
            encoder_ffn_dim=48, decoder_ffn_dim=48)
FAMILIES = {
    **{name: GROUPED for name in ("llama", "qwen2", "phi", "phi3", "olmo", "olmo2", "cohere", "granite",
                                  "starcoder2", "stablelm", "nemotron", "smollm3", "arcee", "diffllama")},
    **{name: WIDE for name in ("qwen3", "gemma", "helium", "glm", "glm4", "ernie4_5", "hunyuan_v1_dense",
                               "seed_oss")},
    **{name: SLIDING for name in ("mistral", "olmo3", "cohere2", "exaone4")},
    "gemma2": dict(WIDE, sliding_window=8), "gemma3_text": dict(WIDE, sliding_window=8),
    "gpt_oss": dict(WIDE, sliding_window=8, num_local_experts=2, num_experts_per_tok=1),
    "mixtral": dict(GROUPED, num_local_experts=2),
    "qwen2_moe": dict(GROUPED, shared_expert_intermediate_size=16, **EXPERTS),
    "qwen3_moe": dict(WIDE, **EXPERTS),
    "gpt_neox": {}, "biogpt": {}, "gpt2": GPT, "gpt_bigcode": GPT,
    "opt": dict(ffn_dim=48, word_embed_proj_dim=32),
    **{name: {} for name in ("bert", "roberta", "xlm-roberta", "camembert", "data2vec-text", "mobilebert")},
    "electra": dict(embedding_size=32), "albert": dict(embedding_size=32),
    "distilbert": dict(dim=32, n_heads=4, n_layers=2, hidden_dim=48),
    "modernbert": dict(sliding_window=8, local_attention=8),
    **{name: IMAGES for name in ("vit", "deit", "dinov2", "dinov2_with_registers", "siglip_vision_model",
                                 "clip_vision_model", "ijepa")},
    "vit_mae": dict(IMAGES, decoder_hidden_size=32, decoder_num_attention_heads=4, decoder_num_hidden_layers=1,
                    decoder_intermediate_size=32),
    "bart": BOTH, "mbart": BOTH, "pegasus": BOTH,
    "t5": dict(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4),
}
DROPOUTS = ("attention_dropout", "attention_probs_dropout_prob", "hidden_dropout_prob", "dropout", "attn_pdrop",
            "embd_pdrop", "resid_pdrop", "activation_dropout")


def make_config(transformers, name):
    config = transformers.AutoConfig.for_model(name, **{**COMMON, **FAMILIES[name]})
    for dropout in DROPOUTS:
        if hasattr(config, dropout):
            setattr(config, dropout, 0.0)
    return config


def make_inputs(torch, name, config):
    """(inputs, the places of the output that count or None): one text is padded."""
    if "image_size" in FAMILIES[name]:
        inputs = dict(pixel_values=torch.randn(2, 3, 16, 16))
        if name == "vit_mae":
            inputs["noise"] = torch.rand(2, 16)
        return inputs, None
    shown = torch.ones(2, 21, dtype=torch.long)
    shown[0, 15:] = 0
    inputs = dict(input_ids=torch.randint(3, 60, (2, 21)), attention_mask=shown)
    if config.is_encoder_decoder:
        inputs["decoder_input_ids"] = torch.randint(3, 60, (2, 13))
        return inputs, None
    return inputs, shown.bool()


def run(torch, model, call, inputs, places):
    model.zero_grad()
    output = call(**inputs).last_hidden_state
    output = output if places is None else output[places]
    torch.manual_seed(5)
    (output * torch.randn_like(output)).sum().backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return output.detach(), gradients


def compare(torch, transformers, attn, name, options):
    """A line, and whether it agrees; None: eager does not run."""
    try:
        config = make_config(transformers, name)
        torch.manual_seed(0)
        model = transformers.AutoModel.from_config(config, attn_implementation="eager").float().eval()
        inputs, places = make_inputs(torch, name, config)
        wanted, exact = run(torch, model, model, inputs, places)
    except Exception as problem:
        return f"not here: {type(problem).__name__}: {str(problem)[:100]}", None
    start, call, raised = time.perf_counter(), model, ""
    if options.backend:
        torch._dynamo.reset()
        found = attn.torch.explain(model, **inputs)
        raised = f", {found.raised} of {len(found)} raised"
        call = torch.compile(model, backend="attn", dynamic=True, options={"inner": "eager"})
    else:
        model.set_attn_implementation("attn")
    got, gradients = run(torch, model, call, inputs, places)
    error = float((got - wanted).abs().max() / wanted.abs().max())
    largest = max(float(g.abs().max()) for g in exact.values())
    worst = max(float((gradients[key] - g).abs().max()) / max(float(g.abs().max()), 1e-3 * largest)
                for key, g in exact.items())
    agrees = error <= 1e-4 and worst <= 1e-3
    seconds = time.perf_counter() - start
    return f"output {error:.1e}, gradients {worst:.1e}{raised}, {seconds:.1f} s", agrees


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", help="path of libattn.so")
    parser.add_argument("--backend", action="store_true", help='torch.compile(backend="attn") instead')
    parser.add_argument("--only", help="families, with commas between them")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    try:
        import torch
        import transformers
    except ImportError as missing:
        print(f"skipped: {missing}")
        return SKIP
    import attn.torch
    import attn.transformers

    if options.lib:
        attn.use_library(options.lib)
    attn.transformers.register()
    counts = {True: 0, False: 0, None: 0}
    for name in options.only.split(",") if options.only else FAMILIES:
        try:
            line, agrees = compare(torch, transformers, attn, name, options)
        except Exception as problem:
            line, agrees = f"{type(problem).__name__}: {str(problem)[:300]}", False
        counts[agrees] += 1
        print(f"{name}: {'ok' if agrees else 'FAILED' if agrees is False else 'skipped'}: {line}", flush=True)
    print(f"{counts[True]} passed, {counts[False]} failed, {counts[None]} skipped")
    return 1 if counts[False] or not counts[True] else 0


if __name__ == "__main__":
    sys.exit(main())
