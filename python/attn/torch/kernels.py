#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""From programs to kernels: what was compiled and loaded, kept by program and device.

A kernel is compiled at its first use, once for a process however many threads ask for
it. Those of GPUs are kept on disk, too (`CACHE`), and the next process only loads
them. What takes longer than a second says so on stderr.

For a GPU a program may have several kernels, and a rule that says which sizes each is
for (docs/artifact.md, "A rule"): that one alone is compiled which a call takes.
"""

import collections
import contextlib
import os
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import torch

from .. import compile as _compile
from .. import views
from .._capi import AttnError
from ..elements import shape_and_element

CACHE = ""  # the directory of artifacts; "": the user's, None: none
PATIENCE = 1.0  # seconds of compiling before a line about it
FEWEST_PROCESSORS = 4  # with which gradients are compiled beside the kernel that they are of
SMALL_WORKSPACE = 1 << 20  # bytes; such ones the runtime keeps with the stream

# An argument of a program: its name for errors and the manifest; the sizes of a
# tensor, None where unknown, or None for a scalar; its element type.
Parameter = collections.namedtuple("Parameter", "name shape element")

_ANY_ORDER = re.compile(r"(#attn\.numerics<[^>]*\bdeterministic = )false(?:, fast_math = true(?=>))?")

# Which gradients a kernel gives; None instead of it: the function itself.
Gradients = collections.namedtuple("Gradients", "of_lse of_captures")
TANGENTS = "tangents"  # in the place of Gradients: the function with its tangents

# What the rule of a program chooses by, and how many there are of the last on a GPU.
Sizes = collections.namedtuple("Sizes", "query_length key_length batch_heads multiprocessors batch_key_heads")


@lru_cache(maxsize=None)
def parameters(program):
    """The arguments of the function of a program, as its text has them."""
    start = re.search(r"func\.func\s+@[\w.$-]+\(", program)
    if not start:
        raise AttnError("wanted the text of a program with a func.func, got none")
    found = []
    for text in _split(program, start.end()):
        match = re.match(r"%(\w+)\s*:\s*(.+)", text, re.S)
        name, rest = match[1], match[2]
        place = re.search(r'loc\("([^"]*)"\)', rest)
        type = re.match(r"tensor<[^>]*>|![\w.]+|\w+", rest)[0]
        if type.startswith("!"):
            type = re.search(rf"^{re.escape(type)}\s*=\s*(\S+)", program, re.M)[1]
        found.append(Parameter(place[1] if place else name, *shape_and_element(type)))
    return found


@lru_cache(maxsize=None)
def in_order(program):
    """The program with sums of its gradients in a fixed order (forms.py): itself, where
    they are. Kernels that are no gradients are the same."""
    return _ANY_ORDER.sub(r"\1true", program) if _ANY_ORDER.search(program) else program


# ---------------------------------------------------------------------------
# Operands that kernels copy in boxes
# ---------------------------------------------------------------------------

_BOX_ALIGNMENT = 16  # bytes, of the address and of the strides of rows and what is around them


@lru_cache(maxsize=None)
def _boxed(program):
    """The numbers of the operands that are read at the query and the key in rows of keys, and of
    which nothing is promised yet."""
    found = []
    for number, parameter in enumerate(parameters(program)[3:]):
        is_pair = parameter.element in ("f16", "bf16") and parameter.shape is not None and re.search(
            rf"attn\.capture_load %{re.escape(parameter.name)}\[(?:[^\]]*, )?%i, %j\]", program)
        if is_pair:
            marks = _marks(program, number)  # None where others wrote it
            found += [] if marks is None or _ALIGNED in marks else [number]
    return found


_ALIGNED, _CONSTANT = "attn.aligned", "attn.constant"


def _place_of_marks(program, number):
    """A match of an operand with its type; the second group is what is said of it."""
    name = re.escape(parameters(program)[3 + number].name)
    return re.search(rf"(%captured_{name}\s*:\s*(?:tensor<[^>]*>|\w+))(?: {{([^}}]*)}})?", program)


def _marks(program, number):
    """What is said of an operand; None where others wrote the program."""
    place = _place_of_marks(program, number)
    return place and [mark for mark in (place.group(2) or "").split(", ") if mark]


@lru_cache(maxsize=4096)
def _marked(program, mark, numbers):
    for number in numbers:
        place = _place_of_marks(program, number)
        marks = ", ".join(sorted({mark, *_marks(program, number)}))
        program = f"{program[:place.end(1)]} {{{marks}}}{program[place.end():]}"
    return program


@lru_cache(maxsize=4096)
def constants(program):
    """The numbers of the operands that have no gradients whatever they are."""
    return frozenset(number for number in range(len(parameters(program)) - 3)
                     if _CONSTANT in (_marks(program, number) or ()))


def with_constants(program, numbers):
    """The program in which these operands have no gradients, where its text can say so:
    each gradient costs sums of its own."""
    return _marked(program, _CONSTANT, tuple(
        number for number in numbers if _marks(program, number) is not None))


def promised(program, operands):
    """The program with the promise that operands which kernels may copy in boxes are aligned, where
    they are and lie on a GPU."""
    numbers = _boxed(program)
    if not numbers or len(operands) != len(parameters(program)) - 3:
        return program
    return _marked(program, _ALIGNED, tuple(
        number for number in numbers if operands[number].device.type == "cuda" and _is_aligned(operands[number])))


def all_promised(program):
    """The program with that promise for all such operands."""
    return _marked(program, _ALIGNED, tuple(_boxed(program)))


def _is_aligned(x):
    if x.dim() < 2 or x.stride(-1) != 1:
        return False
    try:
        places = [x.data_ptr()]
    except (RuntimeError, NotImplementedError):  # it has none
        return False
    places += [stride * x.element_size() for size, stride in zip(x.shape[:-1], x.stride()) if size != 1]
    return all(place % _BOX_ALIGNMENT == 0 for place in places)


def _split(text, start):
    """The pieces between commas from `start` to the parenthesis that closes there."""
    pieces, depth, first = [], 0, start
    for at in range(start, len(text)):
        letter = text[at]
        if depth == 0 and letter in ",)":
            if text[first:at].strip():
                pieces.append(text[first:at].strip())
            first = at + 1
            if letter == ")":
                return pieces
        elif letter in "(<[{":
            depth += 1
        elif letter in ")>]}":
            depth -= 1
    raise AttnError("the arguments of the program's function have no end")


_majors = {}  # of the compute capabilities of GPUs, by name


@lru_cache(maxsize=None)
def target(device_type, index):
    """(target, name of the GPU or None) of a device."""
    if device_type == "cpu":
        return "cpu", None
    if device_type != "cuda" or torch.version.hip:
        raise AttnError(f"wanted tensors on the CPU or on an NVIDIA GPU, got them on {device_type}"
                        f"{' (ROCm)' if torch.version.hip else ''}")
    capability = torch.cuda.get_device_capability(index)
    name = torch.cuda.get_device_name(index)
    if capability < (8, 0):
        raise AttnError(f"{name} has compute capability {capability[0]}.{capability[1]}, wanted 8.0 or newer")
    _majors[name] = capability[0]
    return ("sm_90a" if capability == (9, 0) else "sm_80"), name


@lru_cache(maxsize=None)
def multiprocessors(index):
    """How many a GPU has."""
    return torch.cuda.get_device_properties(index).multi_processor_count


class _Progress:
    """Says on stderr that something takes long, once it does."""

    def __init__(self, what):
        self._what, self._said = what, False

    def __enter__(self):
        self._start = time.monotonic()
        self._timer = threading.Timer(PATIENCE, self._say)
        self._timer.daemon = True
        self._timer.start()

    def _say(self):
        self._said = True
        print(f"attn: compiling {self._what} ...", file=sys.stderr, flush=True)

    def __exit__(self, kind, value, traceback):
        self._timer.cancel()
        if self._said:
            seconds = time.monotonic() - self._start
            end = "failed" if kind else "done"
            print(f"attn: compiling {self._what}: {end} after {seconds:.1f} s", file=sys.stderr, flush=True)


class _Table:
    """Values by key, each made once: who comes while it is made waits for it; other
    keys do not. `rest` goes to the maker, too: it is how, not what."""

    def __init__(self, make):
        self._make = make
        self.clear()

    def clear(self):
        self._values, self._locks, self._lock = {}, {}, threading.Lock()

    def get(self, key, *rest):
        value = self._values.get(key)
        if value is not None:
            return value
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            value = self._values.get(key)
            if value is None:
                value = self._values[key] = self._make(*key, *rest)
        with self._lock:
            self._locks.pop(key, None)
        return value

    def put(self, key, value):
        self._values[key] = value

    def forget_locks(self):
        """In the child of a fork: the threads that held them are not there."""
        self._locks, self._lock = {}, threading.Lock()

    def __contains__(self, key):
        return key in self._values

    def __len__(self):
        return len(self._values)


def _describe(program, gradients, where):
    q = parameters(program)[0]
    derivative = "the tangents of " if gradients == TANGENTS else "the gradients of " if gradients else ""
    return f"{derivative}attention, {q.element}, head_dim {q.shape[-1]}, for {where}"


def _assembler(where, gpu):
    """The ptxas, which tells what spills: any ("") for a GPU that runs what it makes; none
    for newer ones, whose driver compiles the PTX."""
    return "" if _majors.get(gpu) == int(where[3]) else None


def _compile_for(program, where, gpu, gradients, sizes=None):
    options = {}
    if gradients == TANGENTS:
        options = dict(jvp=True)
    elif gradients is not None:
        options = dict(backward=True, lse_gradient=gradients.of_lse, capture_gradients=gradients.of_captures)
    if where != "cpu":  # kernels of the CPU have no cache
        options.update(cache=CACHE, gpu=gpu, ptxas=_assembler(where, gpu))
    if sizes is not None:
        options.update(sizes=sizes._asdict())
    with _Progress(_describe(program, gradients, where)):
        return _compile(program, target=where, **options)


def _make_compiled(program, where, gpu, gradients, variant=None, sizes=None):
    """With all variants, or with one, for these sizes."""
    made = _compile_for(program, where, gpu, gradients, None if variant is None else sizes)
    if variant is None:
        _rules.put((program, where, gpu, gradients), _has_all)
    return made


def _make_loaded(program, device_type, index, gradients, variant=None, sizes=None):
    place = target(device_type, index)
    made = _compiled.get((program, *place, gradients, variant), sizes)
    return made if device_type == "cpu" else made.on_device(index)


def _make_rule(program, where, gpu, gradients, sizes):
    """The function of sizes that gives the variant, or None for a kernel that has them all.
    The compiler tells it with the kernel for these sizes, which is kept."""
    made = _compile_for(program, where, gpu, gradients, sizes)
    variant, rule = made.manifest.get("variant_of_rule"), made.manifest.get("of_rule")
    _compiled.put((program, where, gpu, gradients, variant), made)
    return _has_all if rule is None else chooser(rule)


def _has_all(*sizes):
    return None


@lru_cache(maxsize=None)
def chooser(rule):
    """The function of Sizes that the text of a rule is."""
    cases = [case.split("->") for case in rule.split(";")]
    for *condition, variant in cases:
        words = re.findall(r"[^\s*]+", *condition) if condition else []
        known = all(word in (*Sizes._fields, "and", "<", "<=", "==", ">=", ">") or word.isdecimal() for word in words)
        if not known or not variant.strip().isdecimal():
            raise AttnError(f"wanted conditions on {', '.join(Sizes._fields)} and numbers of variants, got {rule!r}")
    *others, (last,) = cases
    text = "".join(f"{variant} if {condition} else " for condition, variant in others)
    # Many cases take as long to read as a launch does, and calls repeat their sizes.
    return lru_cache(maxsize=4096)(eval(f"lambda {', '.join(Sizes._fields)}: {text}{last}"))


_compiled = _Table(_make_compiled)
_loaded = _Table(_make_loaded)
_rules = _Table(_make_rule)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: [table.forget_locks() for table in (_compiled, _loaded, _rules)])


def place(device):
    """(type, index) of a device; the current GPU where it has no index."""
    kind, index = device.type, device.index
    if kind == "cpu":
        return kind, None
    if kind == "cuda" and index is None:
        index = torch.cuda.current_device()
    return kind, index


def lengths(q, k):
    """Of a call on q (b, h, s, d) and k: queries, keys, batch times heads of q and of k."""
    batch, heads, queries, _ = q.shape
    return queries, k.shape[2], batch * heads, batch * k.shape[1]


def _choose(program, device, gradients, lengths):
    """(kind, index), variant and sizes of the kernel that is meant for these lengths; without
    them, and on the CPU, there is one for all."""
    (kind, index), variant, sizes = place(device), None, None
    if kind == "cuda" and lengths is not None:
        *others, key_heads = lengths
        sizes = Sizes(*others, multiprocessors(index), key_heads)
        variant = _rules.get((program, *target(kind, index), gradients), sizes)(*sizes)
    return (kind, index), variant, sizes


def forward(program, device, lengths=None):
    """The kernel of a program, loaded onto `device`: one of several that is meant for these
    lengths, or without them one for all."""
    program = in_order(program)
    where, variant, sizes = _choose(program, device, None, lengths)
    return _loaded.get((program, *where, None, variant), sizes)


def backward(program, device, of_lse, of_captures, lengths=None):
    """The kernel with its gradients: of_lse: one of lse comes in, too; of_captures:
    those of captured floats go out; lengths as of forward()."""
    gradients = Gradients(bool(of_lse), bool(of_captures))
    where, variant, sizes = _choose(program, device, gradients, lengths)
    return _loaded.get((program, *where, gradients, variant), sizes)


def tangents(program, device):
    """The kernel with its tangents, NAME_jvp."""
    return _loaded.get((in_order(program), *place(device), TANGENTS, None))


def compile_backward(program, device, of_lse, of_captures, lengths=None):
    """That of backward(), compiled and not loaded: what cannot be differentiated is known then."""
    gradients = Gradients(bool(of_lse), bool(of_captures))
    where, variant, sizes = _choose(program, device, gradients, lengths)
    _compiled.get((program, *target(*where), gradients, variant), sizes)


def is_known(program, device):
    """Whether a kernel of a program was compiled for a GPU, for some lengths."""
    return (in_order(program), *target(*place(device)), None) in _rules


def begin_backward(program, device, of_lse, of_captures, lengths=None):
    """compile_backward on another thread, where a call will want the kernel later; what is
    wrong with it that call says."""
    wanted = (program, device, of_lse, of_captures, lengths)
    if _processors() >= FEWEST_PROCESSORS:
        threading.Thread(target=_try_to_compile, args=wanted, name="attn: gradients").start()


def _try_to_compile(*wanted):
    with contextlib.suppress(AttnError):
        compile_backward(*wanted)


def _processors():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def precompile(wanted, device):
    """Compiles programs, each with None or Gradients, for all sizes, on several threads,
    and loads them onto `device`, a GPU, where there is one."""
    keys = [(program, *place(device), choice, None) for program, choice in dict.fromkeys(wanted)]
    with ThreadPoolExecutor(min(len(keys), os.cpu_count() or 1) or 1) as pool:
        for _ in pool.map(_loaded.get, keys):
            pass


def launch(kernel, values):
    """Runs a kernel on tensors; on a GPU in the current stream of its device, without
    waiting. Large workspaces are memory of PyTorch's allocator."""
    arguments = kernel.prepare(*values)
    device = values[0].device
    if device.type == "cpu":
        kernel.launch_prepared(arguments)
        return
    stream = views.current_stream(device)
    size = kernel.prepared_workspace_bytes(arguments)
    workspace = None
    if size > SMALL_WORKSPACE:
        workspace = torch.empty(size, dtype=torch.uint8, device=device)
    kernel.launch_prepared(arguments, stream, workspace)
