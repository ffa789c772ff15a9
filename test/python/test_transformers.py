#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Small models of transformers with random weights: attn_implementation="attn" beside
"eager", forward and backward, on the CPU."""

import warnings

import pytest

torch = pytest.importorskip("torch", reason="transformers needs PyTorch")
transformers = pytest.importorskip("transformers", reason="models are those of transformers")

import attn.transformers  # noqa: E402
from transformers import masking_utils  # noqa: E402

attn.transformers.register()

SIZES = dict(vocab_size=50, hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
             max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
GROUPS = dict(num_key_value_heads=2, head_dim=16)
MODELS = {
    "llama": lambda: ("Llama", dict(**SIZES, **GROUPS)),
    "gpt2": lambda: ("GPT2", dict(vocab_size=50, n_embd=64, n_layer=2, n_head=4, n_positions=64, n_inner=64,
                                  attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0)),
    "bert": lambda: ("Bert", dict(**SIZES, attention_probs_dropout_prob=0.0, hidden_dropout_prob=0.0)),
    "mistral": lambda: ("Mistral", dict(**SIZES, **GROUPS, sliding_window=5)),
    "gemma2": lambda: ("Gemma2", dict(**SIZES, **GROUPS, sliding_window=5, query_pre_attn_scalar=16,
                                      attn_logit_softcapping=2.0)),
    "gpt_oss": lambda: ("GptOss", dict(**SIZES, **GROUPS, sliding_window=5, num_local_experts=2,
                                       num_experts_per_tok=1)),
}


def make(name, **changes):
    torch.manual_seed(5)
    prefix, sizes = MODELS[name]()
    head = "ForMaskedLM" if name == "bert" else "LMHeadModel" if name == "gpt2" else "ForCausalLM"
    config = getattr(transformers, prefix + "Config")(**{**sizes, **changes})
    model = getattr(transformers, prefix + head)(config)
    for parameter in model.parameters():  # scores that matter
        torch.nn.init.normal_(parameter, std=0.3 if parameter.dim() > 1 else 1.0)
    return model


def step(model, implementation, ids, **inputs):
    """(logits, gradients of all parameters) of one step."""
    model.set_attn_implementation(implementation)
    model.zero_grad()
    logits = model(ids, **inputs).logits
    shown = inputs.get("attention_mask")
    logits = logits if shown is None else logits[shown.bool()]
    logits.square().mean().backward()
    return logits.detach(), {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def check(model, ids, **inputs):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="attn.transformers")
        ours = step(model, "attn", ids, **inputs)
    theirs = step(model, "eager", ids, **inputs)
    torch.testing.assert_close(ours[0], theirs[0], rtol=1e-4, atol=1e-4)
    assert ours[1].keys() == theirs[1].keys()
    for name, gradient in theirs[1].items():
        largest = gradient.abs().max().item()
        torch.testing.assert_close(ours[1][name], gradient, rtol=1e-3, atol=1e-4 * largest + 1e-6, msg=name)


def padding(*lengths, left=False):
    mask = torch.arange(max(lengths))[None, :] < torch.tensor(lengths)[:, None]
    return (mask.flip(1) if left else mask).long()


IDS = torch.randint(3, 50, (2, 14), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", MODELS)
def test_a_step(name):
    check(make(name), IDS)


@pytest.mark.parametrize("name", ["llama", "bert"])
@pytest.mark.parametrize("left", [False, True])
def test_padding(name, left):
    check(make(name), IDS, attention_mask=padding(9, 14, left=left))


def test_masks_are_not_tensors(monkeypatch):
    """No layer makes one of a mask."""
    monkeypatch.setattr(attn.transformers.Mask, "tensor", property(lambda mask: 1 / 0))
    model = make("mistral")
    with torch.no_grad():
        model.set_attn_implementation("attn")
        model(IDS)
        model(IDS, attention_mask=padding(9, 14))


def test_packed_sequences():
    """Known by positions that begin again."""
    model = make("mistral")
    check(model, IDS[:1], position_ids=torch.tensor([[*range(6), *range(3), *range(5)]]))


@pytest.mark.parametrize("name, cache", [("llama", "dynamic"), ("llama", "static"), ("gpt_oss", "dynamic")])
def test_generation(name, cache):
    model, made = make(name).eval(), {}
    for implementation in ("attn", "eager"):
        model.set_attn_implementation(implementation)
        more = {} if cache == "dynamic" else dict(cache_implementation="static", disable_compile=True)
        made[implementation] = model.generate(
            IDS, attention_mask=padding(9, 14, left=True), max_new_tokens=8, do_sample=False, **more)
    assert torch.equal(made["attn"], made["eager"])


def test_a_mask_of_four_dimensions():
    """A tensor that the caller made."""
    mask = torch.rand(2, 1, 14, 14, generator=torch.Generator().manual_seed(2)) > 0.4
    mask |= torch.eye(14, dtype=torch.bool)
    model = make("llama").eval()
    with torch.no_grad():
        made = {}
        for implementation in ("attn", "eager"):
            model.set_attn_implementation(implementation)
            own = mask if implementation == "attn" else torch.zeros(mask.shape).masked_fill(~mask, -1e30)
            made[implementation] = model(IDS, attention_mask=own).logits
        model.set_attn_implementation("attn")
        by_floats = model(IDS, attention_mask=own).logits
    torch.testing.assert_close(made["attn"], made["eager"], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(by_floats, made["eager"], rtol=1e-4, atol=1e-4)


def test_dropout():
    model = make("llama", attention_dropout=0.5).train()
    model.set_attn_implementation("attn")
    with torch.no_grad():
        one, other = model(IDS).logits, model(IDS).logits
        assert not torch.equal(one, other)
        model.eval()
        assert torch.equal(model(IDS).logits, model(IDS).logits)


def test_a_mask_is_a_tensor_for_who_wants_one():
    function = masking_utils.sliding_window_causal_mask_function(3)
    shown = padding(5, 8).bool()
    mask = attn.transformers.make_mask(2, 8, 8, mask_function=function, attention_mask=shown)
    wanted = masking_utils.sdpa_mask(2, 8, 8, mask_function=function, attention_mask=shown,
                                     allow_is_causal_skip=False)
    assert torch.equal(mask.tensor, wanted) and mask.shape == wanted.shape
    assert torch.equal(mask[:, :, 2:], wanted[:, :, 2:])
    assert torch.equal(torch.cat([mask, mask]), torch.cat([wanted, wanted]))
    assert torch.equal(torch.where(mask, 1, 0), wanted.long())


def test_a_mask_that_is_added_is_that_of_eager():
    """By layers that know no other attention than their own, in any form."""
    shown = padding(5, 8).bool()
    mask = attn.transformers.make_mask(2, 8, 8, attention_mask=shown)
    seen = masking_utils.sdpa_mask(2, 8, 8, attention_mask=shown, allow_is_causal_skip=False)
    for dtype in (torch.float32, torch.bfloat16):
        lowest = torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, torch.finfo(dtype).min)
        scores = torch.randn(2, 4, 8, 8).to(dtype)
        assert torch.equal(scores + mask, scores + lowest) and torch.equal(mask + scores, scores + lowest)
        assert torch.equal(scores + mask[:, :, :, :8].to(scores.device), scores + lowest)
        assert torch.equal(scores + mask.to(scores.dtype), scores + lowest)
        assert torch.equal(scores[:, 0] + mask.squeeze(1), scores[:, 0] + lowest[:, 0])
        added = scores.clone()
        added += mask
        assert torch.equal(added, scores + lowest)
    flipped = ~mask
    assert torch.equal(scores.masked_fill(flipped, 0), scores.masked_fill(~seen, 0))
    assert type(flipped) is torch.Tensor and type(mask & seen) is torch.Tensor and type(scores + mask) is torch.Tensor


@pytest.mark.parametrize("compiled", [False, True])
def test_layers_that_add_their_masks(compiled):
    """The encoder of BigBird-Pegasus has attention of its own, its decoder the interface's."""
    torch.manual_seed(5)
    config = transformers.BigBirdPegasusConfig(
        vocab_size=50, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=32, decoder_ffn_dim=32, attention_type="original_full")
    model = transformers.BigBirdPegasusModel(config).eval()
    shown = padding(5, IDS.shape[1])
    results = {}
    for name in ("eager", "attn"):
        model.set_attn_implementation(name)
        torch._dynamo.reset()
        call = torch.compile(model, backend="eager") if compiled and name == "attn" else model
        with torch.no_grad():
            results[name] = call(input_ids=IDS, attention_mask=shown, decoder_input_ids=IDS).last_hidden_state
    torch.testing.assert_close(results["attn"], results["eager"], rtol=1e-4, atol=1e-5)


def test_a_mask_for_a_compiled_forward_pass_is_a_tensor():
    mask = attn.transformers.make_mask(2, 1, 8, q_offset=4, allow_is_causal_skip=False)
    assert torch.equal(mask[:, 0, 0], (torch.arange(8) <= 4).expand(2, 8)) and isinstance(mask, torch.Tensor)
    model = make("llama").eval()
    model.set_attn_implementation("attn")
    with torch.no_grad():
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(IDS).logits, model(IDS).logits, rtol=1e-4, atol=1e-4)


def layer(dtype=torch.float32, **more):
    torch.manual_seed(3)
    q, k, v = (torch.randn(shape).to(dtype) for shape in ((2, 4, 7, 16), (2, 2, 9, 16), (2, 2, 9, 16)))
    attn.transformers._say.cache_clear()
    return attn.transformers.attention(torch.nn.Identity(), q, k, v, more.pop("mask", None), **more)[0]


def test_what_has_no_kernel_is_computed_and_said_once():
    sink, mask = torch.randn(4, dtype=torch.float64), torch.rand(2, 1, 7, 9) > 0.3
    q, k, v = (torch.randn(2, heads, length, 16, dtype=torch.float64)
               for heads, length in ((4, 7), (2, 9), (2, 9)))
    given = dict(softcap=2.0, s_aux=sink, scaling=0.3, is_causal=False)
    attn.transformers._say.cache_clear()
    with pytest.warns(UserWarning, match="by PyTorch's operations: no kernel for torch.float64"):
        out, _ = attn.transformers.attention(None, q, k, v, mask, **given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attn.transformers.attention(None, q, k, v, mask, **given)
    floats = [x.float() for x in (q, k, v)]
    near, _ = attn.transformers.attention(None, *floats, mask, **{**given, "s_aux": sink.float()})
    torch.testing.assert_close(near.double(), out, rtol=1e-4, atol=1e-5)


def test_a_mask_that_no_kernel_can_hold():
    """It waits for data: a tensor does."""
    def function(b, h, q, k):
        return k <= q if bool((torch.ones(()) > 0) & (q >= 0).any()) else k < q
    mask = attn.transformers.make_mask(2, 7, 9, mask_function=function, q_offset=2)
    with pytest.warns(UserWarning, match="a mask is passed as a tensor"):
        out = layer(mask=mask)
    causal = attn.transformers.make_mask(2, 7, 9, q_offset=2)
    torch.testing.assert_close(out, layer(mask=causal), rtol=1e-5, atol=1e-5)


def test_biases_of_positions():
    bias = torch.randn(1, 4, 7, 9)
    mask = torch.rand(2, 1, 7, 9) > 0.3
    with_both = layer(mask=mask, position_bias=bias, is_causal=False)
    as_one = layer(mask=bias.masked_fill(~mask, -1e30), is_causal=False)
    torch.testing.assert_close(with_both, as_one, rtol=1e-5, atol=1e-5)


def test_no_mask():
    """Causal where the layer is, with its window."""
    seen = torch.ones(7, 9, dtype=torch.bool).tril()
    for more, wanted in (({}, seen), (dict(sliding_window=3), seen.triu(-2)),
                         (dict(is_causal=False), torch.ones_like(seen))):
        out = layer(mask=wanted[None, None])
        torch.testing.assert_close(layer(**more), out, rtol=1e-5, atol=1e-5)
        with pytest.warns(UserWarning, match="by PyTorch's operations"):
            exact = layer(dtype=torch.float64, **more)
        torch.testing.assert_close(exact.float(), out, rtol=1e-5, atol=1e-5)


def test_caches_of_continuous_batching_are_refused():
    with pytest.raises(NotImplementedError, match="continuous batching"):
        layer(cache=object())
