#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Which form of the gradients a call of attn.torch gets, and that both are right."""

import contextlib
import json
import math
import pathlib

import pytest

torch = pytest.importorskip("torch", reason="attn.torch needs PyTorch")

import attn  # noqa: E402
import attn.torch  # noqa: E402
from attn.torch import forms, functional, kernels, programs, warm  # noqa: E402

torch.set_num_threads(1)
BACKWARD = pathlib.Path(__file__).resolve().parents[1] / "Benchmark" / "results" / "backward.json"


@pytest.fixture(autouse=True)
def anew():
    warm.forget()
    yield
    warm.forget()
    forms._refused.clear()


@contextlib.contextmanager
def switched_on(**options):
    torch.use_deterministic_algorithms(True, **options)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.fixture
def taken(monkeypatch):
    """The rule is that more than 40 keys pay, on the CPU; the forms that were taken."""
    monkeypatch.setattr(forms, "MOST_KEYS_IN_ORDER", {("cpu", 16): 40})
    monkeypatch.setattr(forms, "FEW_QUERIES", 0)
    found, backward = [], kernels.backward

    def noted(program, *rest):
        found.append("order" if kernels.in_order(program) == program else "any")
        return backward(program, *rest)
    monkeypatch.setattr(kernels, "backward", noted)
    return found


class Asked(Exception):
    """Instead of a kernel."""


@pytest.fixture
def asked(taken, monkeypatch):
    """A function that gives the form of a call's gradients, which are not computed."""
    def refuses(program, *rest):
        taken.append("order" if kernels.in_order(program) == program else "any")
        raise Asked
    monkeypatch.setattr(kernels, "backward", refuses)

    def form(call, x):
        with pytest.raises(Asked):
            step(call, x)
        return taken.pop()
    return form


def tensors(length, layout="bhsd"):
    shape = (1, 2, length, 16) if layout == "bhsd" else (1, length, 2, 16)
    if layout == "thd":
        shape = shape[1:]
    return [torch.randn(shape, dtype=torch.bfloat16).requires_grad_() for _ in "qkv"]


def step(call, x):
    o = call(*x)
    return [o, *torch.autograd.grad(o.float().square().sum(), x)]


# ---------------------------------------------------------------------------
# The rule
# ---------------------------------------------------------------------------


def text_of(dim=64, element="bf16", deterministic=None, **given):
    choice = dict(element=element, head_dim=dim, value_dim=dim, scale=None, causal="", window=(-1, -1), softcap=None,
                  alibi="", has_sink=False, dropout_p=None, has_lens=False, packed="", score=None, mask=None,
                  captures=(), numerics=forms.numerics(deterministic))
    return programs.text(programs.Choice(**{**choice, **given}))


def pays(queries, keys=None, target="sm_90a", small=False, **given):
    return forms.pays(target, forms._facts(text_of(**given)), queries, keys or queries, small)


def test_rule_is_what_was_measured():
    names, *rows = json.loads(BACKWARD.read_text())["cases"]
    times, same = {}, set()
    for row in (dict(zip(names, row)) for row in rows):
        case = int(row["d"]), row["causal"], row["s"]
        times[(*case, row["contestant"])] = row["ms"]
        if "scores = twice" in (row["plan"] or ""):  # there the compiler takes two programs, too
            same.add(case)
    cases = {key[:3] for key in times}
    assert len(cases) == 24
    cases -= same
    for dim, causal, length in cases:
        gain = times[dim, causal, length, "sm_90a"] / times[dim, causal, length, "sm_90a-sums"]
        got = pays(length, dim=dim, causal="bottom_right" if causal else "")
        assert got == (gain > 1), (dim, causal, length, gain)


def test_what_was_not_measured_is_in_order():
    assert pays(8192) and pays(8192, dim=128) and pays(8192, softcap=20.0) and pays(8192, element="f16")
    assert not pays(8192, target="sm_80") and not pays(8192, target="cpu")
    assert pays(8192, dim=96) and not pays(8192, dim=256) and not pays(8192, value_dim=128)
    assert not pays(384, 8192) and pays(385, 8192) and not pays(400, dim=40) and pays(401, dim=40)
    assert pays(867, dim=56) and not pays(866, dim=56) and pays(872, dim=104) and not pays(871, dim=104)
    assert pays(78, element="f32", dim=96) and pays(8192, element="f32", target="sm_80")
    assert not pays(8192, element="f32", target="cpu") and not pays(8192, element="f32", dim=128, dropout_p=0.1)
    assert pays(8192, dim=128, softcap=20.0) and not pays(8192, dim=128, dropout_p=0.1)


def test_few_tiles_are_one_program():
    def is_small(queries, keys, heads, dim=64):
        return forms.is_small(queries, keys, heads, 132, forms._facts(text_of(dim=dim)))

    assert is_small(512, 512, 33) and is_small(512, 512, 66) and not is_small(512, 512, 67)
    assert is_small(511, 511, 33) and not is_small(511, 511, 34)
    assert is_small(256, 32768, 16) and is_small(768, 4096, 22) and not is_small(769, 4096, 22)
    assert not is_small(8, 4096, 23) and is_small(8, 4096, 44, dim=80) and not is_small(8, 4096, 45, dim=80)

    def is_side_by_side(queries, keys, heads, has_mask=False, **given):
        facts = forms._facts(text_of(causal="bottom_right" if has_mask else "", **given))
        return forms.is_side_by_side(queries, keys, heads, 132, facts)

    assert is_side_by_side(1024, 1024, 8) and not is_side_by_side(1024, 1024, 9) and not is_side_by_side(512, 513, 8)
    assert is_side_by_side(1024, 1024, 16, True) and not is_side_by_side(1024, 1024, 17, True)
    assert is_side_by_side(2112, 1056, 8) and not is_side_by_side(2113, 1056, 8)
    assert is_side_by_side(2113, 1056, 8, element="f32") and not is_side_by_side(64, 64, 1, element="f32", dim=96)
    assert pays(512, small=True) and not pays(512) and not pays(512, 192, small=True)
    assert not pays(512, small=True, causal="top_left") and pays(513, small=True, causal="bottom_right")
    assert not pays(64, 8192, dim=128) and not pays(64, 8192, dim=64) and pays(64, 8192, small=True)
    assert not pays(512, small=True, window=(64, 64)) and pays(512, small=True, dim=96)
    assert not pays(512, small=True, target="sm_80") and not pays(512, small=True, dim=128, dropout_p=0.1)


def test_keys_that_are_seen_count():
    assert not pays(8192, window=(128, 128)) and pays(8192, window=(1024, 0))
    assert not pays(8192, window=(300, 100), causal="bottom_right")
    assert pays(8192, window=(-1, 0)) and pays(2048, causal="bottom_right") and not pays(1700, causal="top_left")


def test_texts():
    free, switched, plain = (text_of(deterministic=given) for given in (False, None, True))
    assert "numerics" not in plain and forms._facts(plain) is None and kernels.in_order(plain) == plain
    assert kernels.in_order(switched).replace("deterministic = true", "deterministic = false") == switched
    both = [forms._facts(each) for each in (switched, free)]
    assert [each.is_switched for each in both] == [True, False]
    assert both[0].any_order == both[1].any_order == switched
    for text in (plain, text_of(dropout_p=0.1, deterministic=True), text_of(causal="top_left", deterministic=True)):
        marked = forms.with_numerics(text, forms.numerics(None))
        assert forms._facts(marked).is_switched and forms.with_numerics(marked, forms.numerics(False)) == marked
    assert attn.compile(marked, target="sm_90a").manifest
    with pytest.raises(TypeError, match="deterministic: wanted True, False or None, got 'no'"):
        forms.numerics("no")


# ---------------------------------------------------------------------------
# The choice
# ---------------------------------------------------------------------------


def test_lengths_choose(asked):
    def causal(*x):
        return attn.torch.attention(*x, causal=True)
    for call, length, form in ((attn.torch.attention, 30, "order"), (attn.torch.attention, 50, "any"),
                               (attn.torch.attention, 30, "order"), (causal, 50, "order"), (causal, 90, "any")):
        assert asked(call, tensors(length)) == form


@pytest.mark.parametrize("options", [{}, {"warn_only": True}])
def test_switch_is_obeyed(taken, options):
    """Where gradients are computed, in warm calls too."""
    x, o = tensors(50), []
    for _ in range(6):
        step(attn.torch.attention, x)
    assert taken and set(taken) == {"any"}
    o = attn.torch.attention(*x)
    taken.clear()
    with switched_on(**options):
        torch.autograd.grad(o.sum(), x)
        for _ in range(6):
            step(attn.torch.attention, x)
        assert taken and set(taken) == {"order"}
        o = attn.torch.attention(*x, deterministic=False)
        taken.clear()
        torch.autograd.grad(o.sum(), x)
        assert taken == ["any"]
    for _ in range(3):
        step(lambda *x: attn.torch.attention(*x, deterministic=True), x)
    assert set(taken[1:]) == {"order"}


def test_all_entry_points(asked):
    flash = attn.torch.flash_attn_func
    for layout, function in (("bhsd", attn.torch.scaled_dot_product_attention), ("bhsd", attn.torch.flex_attention),
                             ("bshd", flash)):
        assert asked(function, tensors(50, layout)) == "any"
        with switched_on():
            assert asked(function, tensors(50, layout)) == "order"
    assert asked(lambda *x: flash(*x, deterministic=True), tensors(50, "bshd")) == "order"


def test_documents_are_as_long_as_they_are(asked):
    for count, form in ((1, "any"), (2, "order")):
        offsets = torch.linspace(0, 100, count + 1).int()
        for call in (lambda *x: attn.torch.attention(*x, cu_seqlens_q=offsets),
                     lambda *x: attn.torch.flash_attn_varlen_func(*x, offsets, offsets, 100, 100)):
            assert asked(call, tensors(100, "thd")) == form


def test_programs_say_it_themselves(asked):
    for numerics, form in ((None, "order"), ("deterministic = false", "any")):
        program = attn.attention("bf16", 16, numerics=numerics)
        assert asked(lambda *x: attn.torch.run(program, *x)[0], tensors(50)) == form


def test_refused_form_is_replaced(taken, monkeypatch):
    """Where the compiler does not take sums in any order."""
    backward, calls = kernels.backward, []

    def refuses(program, *rest):
        if kernels.in_order(program) != program:
            calls.append(program)
            raise attn.AttnError("no plan fits")
        return backward(program, *rest)
    monkeypatch.setattr(kernels, "backward", refuses)
    for _ in range(2):
        step(attn.torch.attention, tensors(51))
    assert len(calls) == 1 and taken == ["order"] * 2


def test_errors_of_both_are_errors(taken, monkeypatch):
    def refuses(program, *rest):
        raise attn.AttnError("no compiler")
    monkeypatch.setattr(kernels, "backward", refuses)
    with pytest.raises(attn.AttnError, match="no compiler"):
        step(attn.torch.attention, tensors(51))
    assert not forms._refused


def test_only_what_is_needed_is_compiled(taken):
    kernels._compiled.clear()
    kernels._loaded.clear()
    step(lambda *x: attn.torch.attention(*x, softcap=7.0), tensors(90))
    assert len(kernels._compiled) == 2
    step(lambda *x: attn.torch.attention(*x, softcap=7.0, deterministic=False), tensors(90))
    step(lambda *x: attn.torch.attention(*x, softcap=7.0), tensors(30))
    assert len(kernels._compiled) == 3


def test_precompile(monkeypatch):
    asked = []
    monkeypatch.setattr(kernels, "precompile", lambda wanted, device: asked.append(wanted))
    monkeypatch.setattr(kernels, "target", lambda *place: ("sm_90a", "NVIDIA H100"))
    free, fixed = (str(attn.attention("bf16", 64, numerics=numerics)) for numerics in ("deterministic = false", None))

    def forms_of(program, **options):
        functional.precompile(program, torch.device("cuda", 0), **options)
        return ["order" if kernels.in_order(text) == text else "any" for text, _ in asked.pop()]
    assert forms_of(fixed) == ["order", "order"]
    assert forms_of(free) == ["order", "order", "any"] and forms_of(free, gradients=False) == ["order"]
    assert forms_of(free, lengths=(4096, 4096)) == ["order", "any"]
    assert forms_of(free, lengths=(150, 150)) == ["order", "order"]
    assert forms_of(free, lengths=(300, 300)) == ["order", "order", "any"]  # by the number of heads
    with switched_on():
        assert forms_of(free) == ["order", "order"]
    functional.precompile(free, "cpu")
    monkeypatch.setattr(kernels, "target", lambda *place: ("cpu", None))
    assert forms_of(free) == ["order", "order"]


# ---------------------------------------------------------------------------
# The numbers
# ---------------------------------------------------------------------------


def eager(q, k, v, *, bias=None, sink=None, causal=False):
    q, k, v = (x.double() for x in (q, k, v))
    x = q @ k.mT / math.sqrt(16)
    x = x if bias is None else x + bias.double()
    if causal:
        x = x.masked_fill(torch.ones(x.shape[-2:]).tril() == 0, -math.inf)
    if sink is not None:
        x = torch.cat([x, sink.double()[None, :, None, None].expand(*x.shape[:3], 1)], 3)
    return torch.softmax(x, 3)[..., :k.shape[2]] @ v, torch.logsumexp(x, 3)


def plain():
    return {}, {}, []


def everything():
    sink, bias = torch.randn(2, requires_grad=True), torch.randn(2, 50, 50, requires_grad=True)
    return (dict(causal=True, sink=sink, score=lambda x, b, h, i, j: x + bias[h, i, j]),
            dict(causal=True, sink=sink, bias=bias), [sink, bias])


@pytest.mark.parametrize("deterministic, form", [(True, "order"), (None, "any")])
@pytest.mark.parametrize("case", [plain, everything])
def test_gradients(taken, monkeypatch, case, deterministic, form):
    """Of o and lse, for q, k, v, the sink and what is captured."""
    monkeypatch.setattr(forms, "MOST_KEYS_IN_ORDER", {("cpu", 16): 20})
    torch.manual_seed(1)
    options, described, others = case()
    x = tensors(50) + others
    d_o, d_lse = torch.randn(1, 2, 50, 16), torch.randn(1, 2, 50)
    results = attn.torch.attention(*x[:3], return_lse=True, deterministic=deterministic, **options)
    got = torch.autograd.grad(results, x, [d_o.bfloat16(), d_lse])
    wanted = torch.autograd.grad(eager(*x[:3], **described), x, [d_o.bfloat16().double(), d_lse.double()])
    assert set(taken) == {form}
    for g, w in zip(got, wanted):
        assert torch.allclose(g.double(), w.double(), rtol=0.03, atol=0.03 * w.abs().max().item())


def test_form_of_the_compiler():
    """In any order means another program, of which there is one less."""
    made = [attn.compile(text_of(deterministic=deterministic), target="sm_90a", backward=True).manifest
            for deterministic in (True, None)]
    assert ["round_query" in str(each) for each in made] == [False, True]
    assert made[0] == attn.compile(kernels.in_order(text_of()), target="sm_90a", backward=True).manifest


# ---------------------------------------------------------------------------
# In graphs
# ---------------------------------------------------------------------------


def test_no_recompilation(taken):
    torch._dynamo.reset()

    def model(*x):
        return attn.torch.attention(*x, softcap=3.0)
    fast = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    for number, length in enumerate((30, 50, 37, 64, 20)):
        x = tensors(length)
        with torch._dynamo.config.patch(error_on_recompile=number > 0):
            got = step(fast, x)
        assert all(torch.equal(a, b) for a, b in zip(got, step(model, x)))
    assert taken == [form for form in ("order", "any", "order", "any", "order") for _ in "ab"]


def test_of_the_backend(taken):
    """attention that torch.compile(backend="attn") finds."""
    torch._dynamo.reset()

    def model(q, k, v):
        return torch.softmax(q @ k.mT / 4, -1) @ v
    fast = torch.compile(model, backend="attn", options={"inner": "aot_eager"})
    for number, length in enumerate((30, 50)):
        x = tensors(length)
        for each in x:
            torch._dynamo.mark_dynamic(each, 2)
        with torch._dynamo.config.patch(error_on_recompile=number > 0):
            step(fast, x)
    assert taken == ["order", "any"]
