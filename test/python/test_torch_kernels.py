#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Kernels by program and device: compiled once, whoever asks; what the texts of programs
say of their arguments."""

import re
import threading

import pytest

torch = pytest.importorskip("torch", reason="attention on tensors of PyTorch needs PyTorch")

import attn  # noqa: E402
import attn.torch  # noqa: E402
from attn.torch import forms, kernels, launches, ops  # noqa: E402

CPU = torch.device("cpu")


@pytest.fixture
def compiled(monkeypatch):
    """What was compiled, with empty tables."""
    calls = []

    def compile(program, **options):
        calls.append(options)
        return attn.compile(program, **options)
    monkeypatch.setattr(kernels, "_compile", compile)
    monkeypatch.setattr(kernels, "_compiled", kernels._Table(kernels._make_compiled))
    monkeypatch.setattr(kernels, "_loaded", kernels._Table(kernels._make_loaded))
    monkeypatch.setattr(kernels, "_rules", kernels._Table(kernels._make_rule))
    return calls


RULE = ("batch_heads * query_length <= 2 * multiprocessors -> {}; query_length <= 100 -> {}; {}".format(*[
    f"#attn.plan<target = sm_80, block_q = {rows}, block_k = 32, warps = {rows // 16}>" for rows in (32, 64, 128)]))


class OnGPU:
    """An artifact, and the kernel that it would be."""

    def __init__(self, artifact):
        self.manifest = artifact.manifest
        self.rows = [re.search(r"block_q = (\d+)", variant["plan"])[1] for variant in self.manifest["variants"]]

    def on_device(self, index):
        return self


@pytest.fixture
def gpu(compiled, monkeypatch, tmp_path):
    """A GPU that compiles by RULE; a function that gives the kernel of a call."""
    def compile(program, sizes=None, **options):
        compiled.append("gradients" if options.get("backward") else sizes)
        plan = None if options.get("backward") else rule[0]
        options.update(ptxas=None, gpu=None, plan=plan, cache=str(tmp_path))
        return OnGPU(attn.compile(program, sizes=sizes, **options))
    monkeypatch.setattr(kernels, "_compile", compile)
    monkeypatch.setattr(kernels, "place", lambda device: ("cuda", 0))
    monkeypatch.setattr(kernels, "target", lambda *place: ("sm_80", "NVIDIA A100"))
    monkeypatch.setattr(kernels, "multiprocessors", lambda index: 108)
    program, rule = str(attn.attention("bf16", 16)), [RULE]

    def find(*shape):
        q = torch.empty(*shape, 16, dtype=torch.bfloat16, device="meta")
        return kernels.forward(program, CPU, kernels.lengths(q, q))
    find.program, find.rule = program, rule
    return find


def test_the_variant_of_a_call(gpu, compiled):
    """It alone is compiled; calls of one case share it."""
    first, second, third = gpu(1, 8, 20), gpu(1, 8, 100), gpu(1, 8, 101)
    assert [kernel.rows for kernel in (first, second, third)] == [["32"], ["64"], ["128"]]
    assert compiled[0] == dict(query_length=20, key_length=20, batch_heads=8, multiprocessors=108, batch_key_heads=8)
    assert gpu(1, 1, 216) is gpu(1, 8, 27) is first
    assert gpu(4, 2, 60) is second and gpu(2, 8, 9000) is third
    assert len(compiled) == 3


def test_one_plan_is_one_kernel(gpu, compiled):
    gpu.rule[0] = RULE.split("; ")[-1]
    assert gpu(1, 8, 20) is gpu(1, 8, 9000)
    assert kernels.forward(gpu.program, CPU) is gpu(1, 8, 20)
    assert len(compiled) == 1


def test_all_variants_are_one_kernel(gpu, compiled):
    """Those that are compiled before the first call."""
    kernels.precompile([(gpu.program, None)], CPU)
    assert compiled == [None]
    assert gpu(1, 8, 20).rows == ["32", "64", "128"] and gpu(1, 8, 20) is gpu(1, 8, 9000)
    assert len(compiled) == 1
    # Another process finds them on disk.
    for table in (kernels._compiled, kernels._loaded, kernels._rules):
        table.clear()
    assert gpu(1, 8, 20).rows == ["32", "64", "128"] and gpu(1, 8, 20) is gpu(1, 8, 9000)
    assert len(compiled) == 2


def test_threads_of_several_sizes(gpu, compiled):
    """Two of each case: it is compiled once."""
    found, start = {}, threading.Barrier(6)

    def find(length):
        start.wait()
        found[length] = gpu(1, 8, length)
    threads = [threading.Thread(target=find, args=(length,)) for length in (20, 21, 50, 51, 300, 301)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(compiled) == 3
    assert all(found[length] is found[length + 1] for length in (20, 50, 300))


@pytest.fixture
def begun(monkeypatch):
    """The threads that begin_gradients() starts, on a machine of four processors."""
    monkeypatch.setattr(kernels, "_processors", lambda: 4)
    return lambda: [thread for thread in threading.enumerate() if thread.name == "attn: gradients"]


def begin(gpu, *needed, program=None):
    q, k, v = (torch.empty(1, 8, 20, 16, dtype=torch.bfloat16).requires_grad_(each) for each in needed)
    ops.begin_gradients(program or gpu.program, q, k, v, [])


@pytest.mark.parametrize("needed", [(True, False, False), (False, False, True)])
def test_gradients_beside_the_first_call(gpu, compiled, begun, needed):
    """They are compiled once, whoever asks first, and only before the first call."""
    begin(gpu, *needed)
    lengths = (20, 20, 8, 8)
    kernel = kernels.backward(gpu.program, CPU, False, False, lengths)
    for thread in begun():
        thread.join()
    assert compiled == ["gradients"] and kernels.backward(gpu.program, CPU, False, False, lengths) is kernel
    # Kernels for all launches do not share keys (split_keys).
    assert kernels.backward(gpu.program, CPU, False, False, (40, 2000, 100, 100)) is kernel
    few = kernels.backward(gpu.program, CPU, False, False, (40, 2000, 8, 8))
    assert "split_keys = 4" in str(few.manifest["variants"]) and compiled == ["gradients"] * 2
    gpu(1, 8, 20)
    kernels._compiled.clear()
    begin(gpu, *needed)
    assert not begun() and len(compiled) == 3


def test_the_variant_of_gradients(gpu, compiled, monkeypatch):
    """Sums in any order: two programs for few queries, one for many; that alone is compiled
    which a call takes."""
    monkeypatch.setattr(forms, "pays", lambda *sizes: True)
    program = str(attn.attention("bf16", 64, numerics="deterministic = false"))

    def find(length):
        q = torch.empty(100, 8, length, 64, dtype=torch.bfloat16, device="meta")
        return forms.backward(program, q, q, [], False, False)
    first, second = find(400), find(5000)
    assert [kernel.manifest["variant_of_rule"] for kernel in (first, second)] == [0, 1]
    assert find(100) is first and find(9000) is second
    few = torch.empty(1, 24, 400, 64, dtype=torch.bfloat16, device="meta")  # tiles
    assert forms.backward(program, few, few, [], False, False) is second
    assert compiled == ["gradients"] * 2
    assert kernels.backward(program, CPU, False, False).manifest["rule"].endswith(" -> 0; 1")


def test_no_gradients_beside_the_first_call(gpu, compiled, begun, monkeypatch):
    """Where no tensor requires any, or the machine has other things to do."""
    begin(gpu, False, False, False)
    assert not begun()
    monkeypatch.setattr(kernels, "_processors", lambda: 3)
    begin(gpu, True, True, True)
    assert not begun() and compiled == []


def test_errors_of_gradients_are_those_of_the_call(gpu, begun, capfd):
    program = gpu.program.replace("attn.attention", "attn.attentive")
    begin(gpu, True, True, True, program=program)
    for thread in begun():
        thread.join()
    assert "attentive" not in capfd.readouterr().err
    with pytest.raises(attn.AttnError, match="attentive"):
        kernels.backward(program, CPU, False, False)


@pytest.mark.parametrize("q", [None, torch.zeros(3)])
def test_nothing_begins_for_what_is_no_call(gpu, compiled, begun, q):
    """The operator says what is wrong with it."""
    ops.begin_gradients(gpu.program, q, q, q, [])
    assert not begun() and compiled == []


def test_calls_begin_their_gradients(begun, monkeypatch):
    seen = []
    monkeypatch.setattr(ops, "begin_gradients", lambda program, *tensors: seen.append(len(tensors)))
    q = torch.randn(1, 1, 5, 8, requires_grad=True)
    program = attn.attention("f32", 8, scale=0.25)
    attn.torch.run(program, q, q, q)
    assert seen == [4]
    with torch.no_grad():
        attn.torch.run(program, q, q, q)
    assert seen == [4]


def test_rules_in_words():
    rule = "batch_heads * query_length <= 64 * multiprocessors and key_length > 7 -> 2; query_length == 9 -> 0; 1"
    choose = kernels.chooser(rule)
    assert [choose(*each) for each in ((64, 8, 1, 1, 1), (64, 7, 1, 1, 1), (9, 1, 900, 1, 1), (65, 8, 1, 1, 1))] == [2, 1, 0, 1]
    assert [kernels.chooser("batch_key_heads == 2 -> 0; 1")(1, 1, 8, 1, heads) for heads in (2, 8)] == [0, 1]
    for wrong in ("exit() -> 0; 1", "1 < 2 -> exit(); 1", "query_length < 2 or 1 -> 0; 1"):
        with pytest.raises(attn.AttnError, match="wanted conditions on query_length, key_length, .* got "):
            kernels.chooser(wrong)


def test_parameters():
    program = attn.attention("bf16", 16, 24, sink=True, dropout_p=0.5, captures=[("ids", "tensor<?x8xi32>"), ("n", "f32")])
    assert kernels.parameters(str(program)) == [
        ("q", [None, None, None, 16], "bf16"), ("k", [None, None, None, 16], "bf16"),
        ("v", [None, None, None, 24], "bf16"), ("sink", [None], "f32"), ("seed", None, "i32"),
        ("offset", None, "i32"), ("ids", [None, 8], "i32"), ("n", None, "f32")]
    named = "!t = tensor<?x2x?x32xf16>\nfunc.func @f(%a: !t, %b : f32 {x.y = [1, 2]}) -> (!t) {}"
    assert kernels.parameters(named) == [("a", [None, 2, None, 32], "f16"), ("b", None, "f32")]
    with pytest.raises(attn.AttnError, match="wanted the text of a program with a func.func, got none"):
        kernels.parameters("module {}")


def test_threads(compiled):
    """Threads that want one kernel at once get one, and it is compiled once."""
    program, found = str(attn.attention("f32", 8)), []
    start = threading.Barrier(4)

    def find():
        start.wait()
        found.append(kernels.forward(program, CPU))
    threads = [threading.Thread(target=find) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(compiled) == 1 and len(found) == 4 and all(kernel is found[0] for kernel in found)


def test_error_is_not_kept(compiled):
    """A program that cannot be compiled says so to everybody who asks."""
    program = str(attn.attention("f32", 8)).replace("attn.attention", "attn.attentive")
    for _ in range(2):
        with pytest.raises(attn.AttnError, match="attentive"):
            kernels.forward(program, CPU)
    assert len(compiled) == 2


def test_gradients_when_needed(compiled):
    """No gradient is compiled that nobody needs, and not that of lse."""
    q = torch.randn(1, 1, 5, 8, requires_grad=True)
    o, lse = attn.torch.attention(q, q, q, return_lse=True)
    assert compiled == [dict(target="cpu")]
    o.sum().backward()
    wanted = dict(target="cpu", backward=True, lse_gradient=False, capture_gradients=False)
    assert compiled[1:] == [wanted]


def test_precompile(compiled):
    programs = [attn.attention("f32", 8), attn.attention("f32", 8, scale=0.5)]
    attn.torch.precompile(programs, "cpu")
    assert len(compiled) == 4
    q = torch.randn(1, 1, 5, 8, requires_grad=True)
    for program in programs:
        attn.torch.run(program, q, q, q)[0].sum().backward()
    assert len(compiled) == 4
    attn.torch.precompile(programs[0], "cpu", gradients=False)
    assert len(compiled) == 4


def test_progress(compiled, monkeypatch, capsys):
    """Silence, unless it takes long."""
    program = str(attn.attention("f32", 8))
    monkeypatch.setattr(kernels, "PATIENCE", 1000.0)
    kernels.forward(program, CPU)
    assert capsys.readouterr().err == ""
    kernels._compiled.clear()
    kernels._loaded.clear()
    monkeypatch.setattr(kernels, "PATIENCE", 0.0)
    kernels.forward(program, CPU)
    first, last = capsys.readouterr().err.splitlines()
    assert first == "attn: compiling attention, f32, head_dim 8, for cpu ..."
    assert last.startswith("attn: compiling attention, f32, head_dim 8, for cpu: done after ")


def test_targets(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "GPU")
    for capability, wanted in [((8, 0), "sm_80"), ((8, 9), "sm_80"), ((9, 0), "sm_90a"), ((12, 0), "sm_80")]:
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: capability)
        assert kernels.target.__wrapped__("cuda", 0) == (wanted, "GPU")
        # What ptxas makes runs on GPUs of the same generation.
        assert kernels._assembler(wanted, "GPU") == ("" if capability[0] < 10 else None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: (7, 5))
    with pytest.raises(attn.AttnError, match="GPU has compute capability 7.5, wanted 8.0 or newer"):
        kernels.target.__wrapped__("cuda", 0)
    with pytest.raises(attn.AttnError, match="wanted tensors on the CPU or on an NVIDIA GPU, got them on meta"):
        attn.torch.attention(*[torch.zeros(1, 1, 5, 8, device="cpu")] * 3).to("meta")
        kernels.forward(str(attn.attention("f32", 8)), torch.device("meta"))


def test_for_a_gpu(tmp_path, monkeypatch):
    """What is compiled for a GPU is kept on disk."""
    monkeypatch.setattr(kernels, "CACHE", str(tmp_path))
    program = str(attn.attention("bf16", 64))
    made = [kernels._make_compiled(program, "sm_80", "NVIDIA A100", gradients)
            for gradients in (None, kernels.Gradients(False, False)) for _ in range(2)]
    assert [artifact.from_cache for artifact in made] == [False, True, False, True]


# ---------------------------------------------------------------------------
# Operands that kernels copy in boxes
# ---------------------------------------------------------------------------


def biased(index="%h, %i, %j", element="bf16", rank=3, **promises):
    type = f"tensor<{'?x' * rank}{element}>"
    cast = "%e = arith.extf %c : bf16 to f32" if element == "bf16" else "%e = arith.addf %c, %c : f32"
    return str(attn.attention("bf16", 64, captures=[("slope", "tensor<?xf32>"), ("t", type)], score="\n".join([
        f"%c = attn.capture_load %t[{index}] : {type}", cast, "%s = attn.capture_load %slope[%h] : tensor<?xf32>",
        "%m = arith.mulf %x, %s : f32", "%y = arith.addf %m, %e : f32", "attn.yield %y : f32"]),
        **promises))


def test_constants():
    """Captures that have no gradient, where others have one; promises stand beside that."""
    program = biased()
    text = kernels.with_constants(program, [0])
    assert '%captured_slope: tensor<?xf32> {attn.constant} loc("slope")' in text and text.count("constant}") == 1
    assert kernels.constants(text) == {0} and not kernels.constants(program)
    assert biased(constant_captures=["slope"]) == text and kernels.parameters(text) == kernels.parameters(program)
    both = kernels.with_constants(kernels.all_promised(program), [1])
    assert "{attn.aligned, attn.constant}" in both and kernels.all_promised(both) == both
    assert kernels.all_promised(kernels.with_constants(program, [1])) == both
    assert biased(constant_captures=["t"], aligned_captures=["t"]) == both
    outputs = [[info["name"] for info in attn.compile(one, target="sm_90a", backward=True).manifest["arguments"]
                if info["output"]] for one in (program, text)]
    assert outputs[0] == [*outputs[1][:3], "d_slope", *outputs[1][3:]] and outputs[1][3:] == ["d_t"]


def test_only_needed_gradients_are_computed(monkeypatch):
    """Of three captures one, then two: the program says which ones are constants."""
    compiled = []
    begin = launches.gradient_launch
    monkeypatch.setattr(launches, "gradient_launch", lambda *given: compiled.append(given[-2]) or begin(*given))
    q = torch.randn(1, 2, 9, 16, requires_grad=True)
    captures = [torch.randn(2), torch.randn(9), torch.randn(9)]
    for needed in ((True, False, False), (True, False, True)):
        slope, rows, columns = (x.clone().requires_grad_(is_needed) for x, is_needed in zip(captures, needed))
        o = attn.torch.flex_attention(q, q, q, lambda s, b, h, i, j: s * slope[h] + rows[i] * columns[j])
        found = torch.autograd.grad(o.square().sum(), [x for x in (slope, columns) if x.requires_grad])
        assert len(kernels.constants(compiled[-1])) == needed.count(False)
        exact = [x.detach().double().requires_grad_(is_needed) for x, is_needed in zip((slope, rows, columns), needed)]
        s = torch.matmul(q, q.transpose(2, 3)).double() / 4
        p = torch.softmax(s * exact[0][:, None, None] + exact[1][:, None] * exact[2], -1)
        wanted = torch.autograd.grad(torch.matmul(p, q.double()).square().sum(), [x for x in exact if x.requires_grad])
        for got, expected in zip(found, wanted, strict=True):
            torch.testing.assert_close(got.double(), expected, rtol=1e-4, atol=1e-4)


def test_promise():
    """Of 16-bit floats at the query and the key, in rows of keys."""
    program = biased()
    text = kernels.all_promised(program)
    assert text.count("{attn.aligned}") == 1 and '%captured_t: tensor<?x?x?xbf16> {attn.aligned} loc("t")' in text
    assert kernels.parameters(text) == kernels.parameters(program)
    assert kernels.all_promised(text) == text and biased(aligned_captures=["t"]) == text
    alignments = [next(info["alignment"] for info in attn.compile(one, target="sm_90a").manifest["arguments"]
                       if info["name"] == "t") for one in (program, text)]
    assert alignments[0] < alignments[1] == 16  # TMA copies it
    for other in (biased("%h, %j, %i"), biased(element="f32"), biased("%i", rank=1), str(attn.attention("bf16", 64))):
        assert kernels.all_promised(other) == other


def test_only_what_is_aligned_is_promised():
    table = torch.zeros(4, 64, 72, dtype=torch.bfloat16)
    assert kernels._is_aligned(table) and kernels._is_aligned(table[:, :, 8:])
    assert kernels._is_aligned(table[:, :1, :]) and kernels._is_aligned(table[:1].expand(4, 64, 72))
    assert not kernels._is_aligned(table[:, :, 1:]) and not kernels._is_aligned(table.transpose(1, 2))
    assert not kernels._is_aligned(torch.zeros(64, 65, dtype=torch.bfloat16))
    assert kernels._is_aligned(torch.zeros(1, 65, dtype=torch.bfloat16))  # whose stride says nothing
    # On the CPU nothing is copied.
    program, slope = biased(), torch.zeros(4)
    assert kernels.promised(program, [slope, table]) == program
    assert kernels.promised(program, [slope]) == program  # an error, which others tell
