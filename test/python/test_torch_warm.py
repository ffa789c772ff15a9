#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Calls like earlier ones: the same results, past the dispatcher, and through it where
it has something to do."""

import threading

import pytest

torch = pytest.importorskip("torch", reason="no PyTorch")

import attn.torch  # noqa: E402
from attn.torch import ops, warm  # noqa: E402
from attn.torch.flash import flash_attn_func  # noqa: E402
from torch.nn.attention.flex_attention import BlockMask, create_block_mask  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

WARM_AFTER = 4  # calls: seen, noted, prepared, and one that learned a function
BIAS = torch.linspace(-1, 1, 2 * 16 * 16).reshape(2, 16, 16)
BLOCKS = create_block_mask(lambda b, h, i, j: i >= j, None, None, 16, 16, device="cpu")


def biased(x, b, h, i, j):
    return x + BIAS[h, i, j]


CALLS = {
    "attention": lambda q, k, v: attn.torch.attention(q, k, v, causal=True),
    "bshd": lambda q, k, v: attn.torch.attention(
        *(x.transpose(1, 2).contiguous() for x in (q, k, v)), causal=True, layout="bshd").transpose(1, 2),
    "score": lambda q, k, v: attn.torch.attention(q, k, v, score=biased),
    "sink": lambda q, k, v: attn.torch.attention(q, k, v, sink=BIAS[:, 0, 0].contiguous()),
    "sdpa": lambda q, k, v: attn.torch.scaled_dot_product_attention(q, k, v, is_causal=True),
    "sdpa with a mask": lambda q, k, v: attn.torch.scaled_dot_product_attention(q, k, v, BIAS),
    "flash": lambda q, k, v: flash_attn_func(
        *(x.transpose(1, 2).contiguous() for x in (q, k, v)), causal=True).transpose(1, 2),
    "flex": lambda q, k, v: attn.torch.flex_attention(q, k, v, score_mod=biased, block_mask=BLOCKS),
}


def tensors(requires_grad=False, heads=2, length=16, dim=16, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(1, heads, length, dim, generator=generator).requires_grad_(requires_grad) for _ in range(3)]


@pytest.fixture(autouse=True)
def nothing_known():
    warm.forget()


@pytest.fixture
def dispatched(monkeypatch):
    """How often calls went to the dispatcher."""
    count, forward = [], ops.forward
    monkeypatch.setattr(ops, "forward", lambda *arguments: count.append(1) or forward(*arguments))
    return count


def warmed(call, *arguments):
    """The result of the first call; later ones are known."""
    first = call(*arguments)
    for _ in range(WARM_AFTER):
        call(*arguments)
    return first


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("state", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_same_results(name, state, dispatched):
    given, others = tensors(), tensors(seed=1)
    with state():
        first = warmed(CALLS[name], *given)
        wanted = CALLS[name](*[x.to(torch.float32, copy=True).requires_grad_(False) for x in others])
        count = len(dispatched)
        again, got = CALLS[name](*given), CALLS[name](*others)
        assert len(dispatched) == count
        assert again.is_inference() == first.is_inference()
    torch.testing.assert_close(again, first, rtol=0, atol=0)
    torch.testing.assert_close(got, wanted, rtol=0, atol=0)
    assert got.stride() == first.stride() and got.shape == first.shape


def gradients(call, given, d_o):
    return torch.autograd.grad(call(*given), given, d_o.reshape(given[0].shape))


@pytest.mark.parametrize("name", CALLS)
def test_same_gradients(name, dispatched, monkeypatch):
    d_o = torch.linspace(-1, 1, 2 * 16 * 16)
    others = tensors(True, seed=1)
    wanted = gradients(CALLS[name], others, d_o.flip(0))
    warmed(gradients, CALLS[name], tensors(True), d_o)
    backward, known = ops.backward, []
    monkeypatch.setattr(ops, "backward", lambda *arguments: known.append(1) or backward(*arguments))
    count = len(dispatched)
    got = gradients(CALLS[name], others, d_o.flip(0))
    assert len(dispatched) == count
    assert not known
    for one, other in zip(got, wanted):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
        assert one.stride() == other.stride()


def test_gradients_of_another_layout():
    """Of o, as sum() makes them, and of lse with it."""
    def call(*given):
        o, lse = attn.torch.attention(*given, return_lse=True)
        return torch.autograd.grad(o.sum() + lse.sum() * factor, given)
    given, wanted = tensors(True), []
    for factor in (0.0, 1.0, 2.0):
        wanted.append(call(*given))
    warmed(gradients, CALLS["attention"], given, torch.linspace(-1, 1, 512))
    for _ in range(4):
        for number, factor in enumerate((0.0, 1.0, 2.0)):
            for one, other in zip(call(*given), wanted[number]):
                torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_one_tensor_for_all():
    """Prepared with one tensor as query, key and value, then called with three."""
    same = tensors(True)[0]
    d_o = torch.linspace(-1, 1, 512).reshape(same.shape)
    warmed(lambda: torch.autograd.grad(CALLS["sdpa"](same, same, same), same, d_o))
    given = tensors(True, seed=2)
    got = gradients(CALLS["sdpa"], given, d_o)
    warm.forget()
    for one, other in zip(got, gradients(CALLS["sdpa"], given, d_o)):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_saved_tensors_that_come_back_otherwise():
    given, d_o = tensors(True), torch.linspace(-1, 1, 512)
    wanted = warmed(gradients, CALLS["sdpa"], given, d_o)
    with torch.autograd.graph.saved_tensors_hooks(
            lambda x: x, lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2)):
        got = gradients(CALLS["sdpa"], given, d_o)
    for one, other in zip(got, wanted):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_gradients_of_lse_alone():
    def call(*given):
        return attn.torch.attention(*given, return_lse=True)[1].sum()
    given = tensors(True)
    wanted = torch.autograd.grad(warmed(call, *given), given)
    for one, other in zip(torch.autograd.grad(call(*given), given), wanted):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_captured_gradients(dispatched):
    bias = BIAS.clone().requires_grad_()

    def call():
        given = tensors(seed=3)
        return attn.torch.attention(*given, score=lambda x, b, h, i, j: x + bias[h, i, j])
    wanted, = torch.autograd.grad(warmed(call).sum(), bias)
    count = len(dispatched)
    got, = torch.autograd.grad(call().sum(), bias)
    assert len(dispatched) == count
    torch.testing.assert_close(got, wanted, rtol=0, atol=0)
    with torch.no_grad():
        bias += torch.linspace(0, 3, 16)
    torch.testing.assert_close(call(), attn.torch.scaled_dot_product_attention(*tensors(seed=3), bias.detach()))


def test_no_gradients_of_gradients():
    given = tensors(True)
    warmed(CALLS["attention"], *given)
    out = CALLS["attention"](*given)
    gradient, = torch.autograd.grad(out.sum(), given[:1], create_graph=True)
    with pytest.raises(RuntimeError, match="no gradients of gradients"):
        gradient.sum().backward()


def test_changed_in_place_before_backward():
    given = [x * 1 for x in tensors(True)]
    out = warmed(CALLS["attention"], *given)
    out = CALLS["attention"](*given)
    with torch.no_grad():
        given[1].zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_functions_that_change(dispatched):
    """By their closures, their globals, and what they are."""
    def call(shift, table):
        return attn.torch.flex_attention(*given, score_mod=lambda x, b, h, i, j: x + table[i] + shift * j)
    given = tensors()
    table = torch.linspace(0, 1, 16)
    warmed(call, 0.5, table)
    count = len(dispatched)
    other = torch.linspace(3, -1, 16)
    got = call(0.5, other)  # other elements
    assert len(dispatched) == count
    for shift, one in ((0.5, other), (0.25, table), (0.5, torch.linspace(0, 1, 32)[::2]), (2, table.double().float())):
        positions = torch.arange(16)
        mask = one[:16, None] + shift * positions
        wanted = torch.nn.functional.scaled_dot_product_attention(*given, attn_mask=mask.expand(16, 16))
        torch.testing.assert_close(call(shift, one), wanted, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(got, call(0.5, other), rtol=0, atol=0)


def test_a_changed_global(monkeypatch):
    given = tensors()
    warmed(CALLS["flex"], *given)
    monkeypatch.setitem(globals(), "BIAS", BIAS * 2)
    wanted = torch.nn.functional.scaled_dot_product_attention(
        *given, attn_mask=(BIAS).masked_fill(~torch.ones(16, 16).tril().bool(), -torch.inf))
    torch.testing.assert_close(CALLS["flex"](*given), wanted, rtol=1e-4, atol=1e-5)
    monkeypatch.setitem(globals(), "BIAS", BIAS[:, :, 0])
    with pytest.raises(attn.AttnError):
        CALLS["flex"](*given)


def test_a_changed_block_mask():
    given, blocks = tensors(), create_block_mask(lambda b, h, i, j: i >= j, None, None, 16, 16, device="cpu")

    def call():
        return attn.torch.flex_attention(*given, block_mask=blocks)
    first = warmed(call)
    blocks.mask_mod = lambda b, h, i, j: i <= j
    blocks.full_kv_num_blocks = None
    assert not torch.equal(call(), first)


def test_tables_of_blocks_that_are_written_to():
    counts, places = torch.tensor([[[1, 2]]], dtype=torch.int32), torch.tensor([[[[0, 1], [0, 1]]]], dtype=torch.int32)
    blocks = BlockMask.from_kv_blocks(counts, places, BLOCK_SIZE=8)
    given = tensors()

    def check():
        mask = blocks.to_dense()[0, 0].bool().repeat_interleave(8, 0).repeat_interleave(8, 1)
        wanted = torch.nn.functional.scaled_dot_product_attention(*given, attn_mask=mask)
        for _ in range(3):
            torch.testing.assert_close(attn.torch.flex_attention(*given, block_mask=blocks), wanted, rtol=1e-4, atol=1e-5)
    check()
    counts[0, 0, 0] = 2
    check()
    counts[0, 0, 0] = 1
    places[0, 0, 0, 0] = 1
    check()


@pytest.mark.parametrize("change", [dict(length=24), dict(heads=4), dict(dim=32)])
def test_other_shapes(change):
    given, others = tensors(), tensors(**change)
    warmed(CALLS["sdpa"], *given)
    wanted = torch.nn.functional.scaled_dot_product_attention(*others, is_causal=True)
    torch.testing.assert_close(CALLS["sdpa"](*others), wanted, rtol=1e-4, atol=1e-5)


def test_other_elements_and_strides():
    given = tensors()
    warmed(CALLS["attention"], *given)
    assert CALLS["attention"](*(x.half() for x in given)).dtype == torch.float16
    inside = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in given]
    torch.testing.assert_close(CALLS["attention"](*inside), CALLS["attention"](*given), rtol=1e-4, atol=1e-5)


def test_addresses_that_are_not_aligned(dispatched):
    given = tensors()
    first = warmed(CALLS["attention"], *given)
    moved = [torch.cat((x.new_zeros(1), x.flatten()))[1:].view(x.shape) for x in given]
    torch.testing.assert_close(CALLS["attention"](*moved), first, rtol=0, atol=0)


def test_a_sign_that_is_not_in_memory():
    given = tensors()
    first = warmed(CALLS["attention"], *given)
    negative = torch._neg_view(-given[0])
    assert negative.is_neg() and negative.stride() == given[0].stride()
    torch.testing.assert_close(CALLS["attention"](negative, *given[1:]), first, rtol=0, atol=0)


def test_a_scale_that_changes():
    given, scale = tensors(), torch.tensor(0.25)

    def call():
        return attn.torch.attention(*given, scale=scale)
    warmed(call)
    scale.fill_(1.0)
    torch.testing.assert_close(call(), attn.torch.attention(*given, scale=1.0), rtol=0, atol=0)


def test_dropout_is_drawn_again():
    given = tensors()

    def call():
        return attn.torch.attention(*given, dropout_p=0.5)
    torch.manual_seed(7)
    wanted = [call() for _ in range(6)]
    torch.manual_seed(7)
    for one in wanted:
        torch.testing.assert_close(call(), one, rtol=0, atol=0)
    assert not torch.equal(wanted[4], wanted[5])


def test_autocast():
    given = tensors()
    warmed(CALLS["attention"], *given)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert CALLS["attention"](*given).dtype == torch.bfloat16
        cast = [x.bfloat16() for x in given]
        warmed(CALLS["attention"], *cast)
        assert CALLS["attention"](*cast).dtype == torch.bfloat16
        assert CALLS["attention"](*given).dtype == torch.bfloat16
        first = warmed(CALLS["attention"], cast[0], *given[1:])
        torch.testing.assert_close(CALLS["attention"](cast[0], *given[1:]), first, rtol=0, atol=0)
    assert CALLS["attention"](*given).dtype == torch.float32


class _Operators(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.append(function)
        return function(*args, **(kwargs or {}))


class _Functions(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.seen.append(function)
        return function(*args, **(kwargs or {}))


def test_modes_see_the_operator():
    given = tensors()
    warmed(CALLS["attention"], *given)
    with _Operators() as mode:
        CALLS["attention"](*given)
    assert torch.ops.attn.forward.default in mode.seen
    with _Functions() as mode:
        CALLS["attention"](*given)
    assert any("attn" in str(function) for function in mode.seen)


def test_profiles_show_the_operator():
    given = tensors()
    warmed(CALLS["attention"], *given)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        CALLS["attention"](*given)
    assert "attn::forward" in [event.key for event in profile.key_averages()]


def test_transforms():
    given = tensors()
    first = warmed(CALLS["attention"], *given)
    mapped = torch.func.vmap(CALLS["attention"])(*(x[None].expand(3, *x.shape) for x in given))
    torch.testing.assert_close(mapped[2], first, rtol=1e-5, atol=1e-6)
    gradient = torch.func.grad(lambda q: CALLS["attention"](q, *given[1:]).sum())(given[0])
    leaf = given[0].clone().requires_grad_()
    wanted, = torch.autograd.grad(CALLS["attention"](leaf, *given[1:]).sum(), leaf)
    torch.testing.assert_close(gradient, wanted, rtol=1e-5, atol=1e-6)


def test_forward_mode(dispatched):
    """What forward() of a dual tensor does is the dispatcher's."""
    given = tensors()
    warmed(CALLS["attention"], *given)
    count = len(dispatched)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(given[0], given[1])
        CALLS["attention"](dual, *given[1:])
    assert len(dispatched) == count + 1


def test_inside_of_an_operator():
    """Where the dispatcher is below autograd."""
    given = tensors(True)
    warmed(CALLS["attention"], *given)
    seen = []

    @torch.library.custom_op("attn_test::warm", mutates_args=())
    def operator(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        out = CALLS["attention"](q, k, v)
        seen.append(out.requires_grad)
        return out
    operator(*given)
    assert seen == [False]


def test_fake_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode

    given = tensors()
    warmed(CALLS["attention"], *given)
    with FakeTensorMode(allow_non_fake_inputs=True):
        out = CALLS["attention"](*(torch.empty(x.shape) for x in given))
        assert isinstance(out, torch._subclasses.FakeTensor)
        assert isinstance(CALLS["attention"](*given), torch._subclasses.FakeTensor)


def test_several_threads():
    sets = [tensors(seed=seed) for seed in range(4)]
    wanted = [warmed(CALLS["attention"], *given) for given in sets]
    wrong = []

    def work(number):
        for _ in range(200):
            if not torch.equal(CALLS["attention"](*sets[number]), wanted[number]):
                wrong.append(number)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_tensors_are_not_kept():
    import weakref

    given = tensors()
    warmed(CALLS["attention"], *given)
    alive = [weakref.ref(x) for x in given]
    del given
    assert [one() for one in alive] == [None] * 3


def test_few_are_kept(monkeypatch):
    monkeypatch.setattr(warm, "_MAX_KNOWN", 4)
    monkeypatch.setattr(warm, "_MAX_GRADIENTS", 4)
    for length in range(1, 8):
        given = tensors(True, length=length)
        warmed(gradients, CALLS["attention"], given, torch.ones_like(given[0]))
    assert 0 < len(warm._known) <= 4 and 0 < len(warm._known_gradients) <= 4


@pytest.mark.parametrize("name", CALLS)
def test_gradients_of_a_first_call(name, dispatched, monkeypatch):
    """Asked for again and again, as a step that is timed does: the second finds its launch."""
    given, d_o = tensors(True), torch.linspace(-1, 1, 512).reshape(1, 2, 16, 16)
    out = CALLS[name](*given)
    wanted = torch.autograd.grad(out, given, d_o, retain_graph=True)
    monkeypatch.setattr(ops, "backward", lambda *arguments: pytest.fail("went to the dispatcher"))
    for factor in (2.0, -1.0):
        got = torch.autograd.grad(out, given, d_o * factor, retain_graph=True)
        for one, other in zip(got, wanted):
            torch.testing.assert_close(one, other * factor, rtol=1e-5, atol=1e-6)
            assert one.stride() == other.stride()
    assert not dispatched


def test_gradients_of_some_captures():
    """Of those that need one, beside a number, which is written elsewhere first."""
    bias, slope = BIAS.clone().requires_grad_(), torch.tensor(0.5, requires_grad=True)
    given = tensors(seed=3)

    def call(*others):
        return attn.torch.attention(
            *given, score=lambda x, b, h, i, j: x + others[0][h, i, j] + (others[1] * j if others[1:] else 0))
    for others in ([bias], [bias, slope], [bias.detach(), slope], [bias, slope.detach()]):
        out, leaves = call(*others), [x for x in others if x.requires_grad]
        first, *rest = [torch.autograd.grad(out.sum(), leaves, retain_graph=True) for _ in range(4)]
        for again in rest:
            for one, other in zip(again, first):
                torch.testing.assert_close(one, other, rtol=0, atol=0)
        assert any(x.abs().max() > 0 for x in first)
