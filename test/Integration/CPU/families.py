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
    families.py --lib ... --device cuda --dtype bf16 --time-limit 500

In f32 an output may differ by 1e-4 of the largest, a gradient by 1e-3 of its parameter's
largest. In bf16 and f16 errors against eager in float64 count (in float32 where a model's
code does not run in float64): that of the output may be twice that of eager in the same
type, those of gradients three times (or one unit in the last place of the largest), as the
numerics contract has it; a gradient of which eager errs by a quarter says nothing
(differences of numbers that are alike; there are few). Both errors are of one draw each, of
sums of many roundings: a family that misses is drawn thrice more with other weights, and
agrees where these three do. A family that this transformers does not have, or that its
eager attention does not run, is skipped. They run in --jobs processes (case_pool.py).
Exit code 0: all agree; 1: some do not; 77: no PyTorch, no transformers or no GPU.
"""

import argparse
import copy
import importlib.util
import os
import pathlib
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[3]
for place in ("python", "test/Integration/GPU"):
    sys.path.insert(0, str(ROOT / place))
import case_pool  # noqa: E402
from gpu import SKIP  # noqa: E402
from model_errors import judge, largest  # noqa: E402

AGAIN = 3  # draws of weights after one that misses in bf16 or f16
WHAT = "Models of transformers with the attention of attn, beside eager"
COMMON = dict(hidden_size=32, num_attention_heads=4, num_hidden_layers=2, intermediate_size=48, vocab_size=64,
              max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
GROUPED = dict(num_key_value_heads=2)
WIDE = dict(GROUPED, head_dim=8)
SLIDING = dict(GROUPED, sliding_window=8)
# Of all experts: which one it is that gets a token is a matter of rounding.
EXPERTS = dict(num_experts=2, num_experts_per_tok=2, moe_intermediate_size=16)
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
    "gpt_oss": dict(WIDE, sliding_window=8, num_local_experts=2, num_experts_per_tok=2),
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
    **{name: dict(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4) for name in ("t5", "mt5", "umt5", "longt5")},
    # Those whose own attention is what runs with "attn", too: --backend is what finds it.
    **{name: dict(GPT, rotary_dim=4, n_positions=64) for name in ("gptj", "codegen")},
    "gpt_neo": dict(num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], window_size=8),
    "bloom": dict(n_layer=2, n_head=4), "mpt": dict(d_model=32, n_heads=4, n_layers=2, max_seq_len=64),
    "falcon": dict(multi_query=True, alibi=False), "persimmon": {}, "openai-gpt": dict(GPT, n_positions=64),
    "xglm": dict(d_model=32, ffn_dim=48, num_layers=2, attention_heads=4),
    "ctrl": dict(n_embd=32, n_head=4, n_layer=2, dff=48, n_positions=64),
    **{name: WIDE for name in ("doge", "nanochat")}, **{name: GROUPED for name in ("bitnet", "jais2", "eurobert")},
    "vaultgemma": dict(WIDE, sliding_window=8), "granite_swa": dict(GROUPED, sliding_window=8),
    **{name: {} for name in ("mpnet", "megatron-bert", "ernie", "nomic_bert")}, "roformer": dict(embedding_size=32),
    **{name: BOTH for name in ("blenderbot", "m2m_100", "plbart", "bigbird_pegasus")},
}
DROPOUTS = ("attention_dropout", "attention_probs_dropout_prob", "hidden_dropout_prob", "dropout", "attn_pdrop",
            "embd_pdrop", "resid_pdrop", "activation_dropout")

ACTIVATIONS = ("hidden_act", "activation_function", "dense_act_fn", "activation")
DTYPES = {"f32": lambda torch: torch.float32, "bf16": lambda torch: torch.bfloat16,
          "f16": lambda torch: torch.float16}


def make_config(transformers, name):
    config = transformers.AutoConfig.for_model(name, **{**COMMON, **FAMILIES[name]})
    for dropout in DROPOUTS:
        if hasattr(config, dropout):
            setattr(config, dropout, 0.0)
    for activation in ACTIVATIONS:  # where its argument is rounded to 0, relu changes all gradients
        if getattr(config, activation, None) == "relu":
            setattr(config, activation, "gelu")
    return config


def make_inputs(torch, name, config, device):
    """(inputs, the places of the output that count or None): one text is padded."""
    if "image_size" in FAMILIES[name]:
        inputs = dict(pixel_values=torch.randn(2, 3, 16, 16))
        if name == "vit_mae":
            inputs["noise"] = torch.rand(2, 16)
        return move(inputs, device), None
    shown = torch.ones(2, 21, dtype=torch.long)
    shown[0, 15:] = 0
    inputs = dict(input_ids=torch.randint(3, 60, (2, 21)), attention_mask=shown)
    if config.is_encoder_decoder:
        inputs["decoder_input_ids"] = torch.randint(3, 60, (2, 13))
        return move(inputs, device), None
    return move(inputs, device), shown.bool().to(device)


def move(inputs, where):
    """Inputs on a device; in a type, those that are images."""
    return {name: x.to(where) if isinstance(where, str) or name == "pixel_values" else x
            for name, x in inputs.items()}


def run(torch, model, call, inputs, places):
    """(output, gradients), in float64 where they are of a narrow type."""
    model.zero_grad()
    output = call(**inputs).last_hidden_state
    output = output if places is None else output[places]
    torch.manual_seed(5)
    output.backward(torch.randn(output.shape).bfloat16().to(output))
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return output.detach(), gradients


def run_exact(torch, model, inputs, places):
    """The same in float64; in float32 where code of the model cannot hold numbers of that."""
    for dtype in (torch.float64, torch.float32):
        wide = copy.deepcopy(model).to(dtype)
        try:
            return run(torch, wide, wide, move(inputs, dtype), places)
        except RuntimeError:
            if dtype == torch.float32:
                raise


def judge_f32(got, wanted):
    """(what to say, whether it agrees)"""
    (got, gradients), (wanted, exact) = got, wanted
    error = largest(got - wanted) / largest(wanted)
    floor = 1e-3 * max(map(largest, exact.values()))
    worst = max(largest(gradients[key] - g) / max(largest(g), floor) for key, g in exact.items())
    return f"output {error:.1e}, gradients {worst:.1e}", error <= 1e-4 and worst <= 1e-3


def draw(torch, transformers, attn, name, options, seed):
    """A line, and whether a model of these random weights agrees; None: eager does not run."""
    dtype = DTYPES[options.dtype](torch)
    try:
        config = make_config(transformers, name)
        torch.manual_seed(seed)
        model = transformers.AutoModel.from_config(config, attn_implementation="eager",
                                                       experts_implementation="eager").to(dtype).eval()
        inputs, places = make_inputs(torch, name, config, options.device)
        model, inputs = model.to(options.device), move(inputs, dtype)
        wanted = run(torch, model, model, inputs, places)
        exact = None if options.dtype == "f32" else run_exact(torch, model, inputs, places)
    except Exception as problem:
        return f"not here: {type(problem).__name__}: {str(problem)[:100]}", None
    call, raised = model, ""
    if options.backend:
        torch._dynamo.reset()
        found = attn.torch.explain(model, **inputs)
        raised = f", {found.raised} of {len(found)} raised"
        call = torch.compile(model, backend="attn", dynamic=True, options={"inner": options.inner})
    else:
        model.set_attn_implementation("attn")
    got = run(torch, model, call, inputs, places)
    line, agrees = judge_f32(got, wanted) if options.dtype == "f32" \
        else judge(options.dtype, got, wanted, exact)
    return f"{line}{raised}", agrees


def compare(torch, transformers, attn, name, options):
    """The same of one draw of weights, or of AGAIN others where that misses in a narrow type."""
    line, agrees = draw(torch, transformers, attn, name, options, 0)
    if agrees is not False or options.dtype == "f32":
        return line, agrees
    others = [draw(torch, transformers, attn, name, options, seed) for seed in range(1, AGAIN + 1)]
    return "; other weights: ".join([line, *(other for other, _ in others)]), all(agrees for _, agrees in others)


def check(torch, name, options):
    import transformers

    import attn.torch
    import attn.transformers

    warnings.simplefilter("ignore")
    attn.transformers.register()
    return case_pool.Verdict(*compare(torch, transformers, attn, name, options))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    case_pool.add_arguments(parser, lib_required=False, device="cpu")
    parser.add_argument("--backend", action="store_true", help='torch.compile(backend="attn") instead')
    parser.add_argument("--inner", default="eager", help="what the backend gives the rest of a graph to")
    parser.add_argument("--dtype", default="f32", choices=tuple(DTYPES))
    options = case_pool.parse(parser)
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    if importlib.util.find_spec("transformers") is None:
        print("skipped: no transformers")
        return SKIP
    return case_pool.main(options, case_pool.chosen(options, FAMILIES), check, WHAT)


if __name__ == "__main__":
    sys.exit(main())
