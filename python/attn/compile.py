#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Text in, artifacts out."""

import ctypes
import operator
import os
import re
import warnings

from . import _capi, assembler
from .program import Program
from .runtime import Artifact, Kernel

_MAX_QUOTED = 160  # characters


def _bytes(text):
    if text is None:
        return None
    encoded = os.fsencode(text)
    if b"\0" in encoded:
        raise ValueError(f"{text!r} has a NUL in it")
    return encoded


def _names(passes):
    """Pass names as the C interface takes them: with commas between them."""
    return passes if passes is None or isinstance(passes, str) else ",".join(passes)


def _launch_sizes(sizes, api_version):
    *names, optional = [name for name, _ in _capi.LaunchSizes._fields_[1:]]
    if sorted(set(sizes) - {optional}) != sorted(names):
        raise ValueError(f"sizes: wanted {', '.join(names)}, got {', '.join(map(str, sizes)) or 'none'}")
    names += [optional] if optional in sizes and api_version >= 13 else []
    for name in names:
        if not hasattr(sizes[name], "__index__"):
            raise TypeError(f"sizes: {name}: wanted an integer, got {sizes[name]!r}")
    size = getattr(_capi.LaunchSizes, optional).offset if api_version < 13 else ctypes.sizeof(_capi.LaunchSizes)
    return _capi.LaunchSizes(size, *[operator.index(sizes[name]) for name in names])


def _quoted(message, source):
    """The message, with the line of the text below each of its "line:column:"."""
    lines, result = source.decode(errors="replace").split("\n"), []
    for said in message.split("\n"):
        result.append(said)
        place = re.match(r"(\d+):(\d+): (?:error|warning|note|remark): ", said)
        if not place or not 0 < int(place[1]) <= len(lines):
            continue
        line, column = lines[int(place[1]) - 1], int(place[2]) - 1
        first = max(0, column - _MAX_QUOTED // 2)  # of a long line the part that matters
        result.append("    " + line[first:first + _MAX_QUOTED].rstrip())
        result.append("    " + " " * (column - first) + "^")
    return "\n".join(result)


def compile(
    text, target="sm_80", plan=None, cache=None, ptxas=None, disable=None, enable=None,
    results=None, debug=False, cpu=None, gpu=None, backward=False, with_backward=False,
    lse_gradient=False, capture_gradients=True, backward_plan=None, jvp=False, sizes=None,
):
    """Compiles MLIR text with one function that holds one attn.attention.

    target  "sm_80", "sm_90a": gives an Artifact; "cpu": gives a Kernel of this process.
    plan    "#attn.plan<...>", or for a GPU several variants with a rule, "query_length
            <= 1024 -> #attn.plan<...>; #attn.plan<...>"; None: the compiler picks, and
            where its pick spills registers, which `ptxas` tells, takes a plan that
            does not, if one of three does not: `log` says so.
    cache   a directory that keeps artifacts between runs, "" for the user's
            cache directory; None: no cache.
    ptxas   the ptxas to use, or the root of a CUDA Toolkit; "": the first of a Toolkit
            (CUDAToolkit_ROOT, CUDA_HOME, CUDA_PATH, the PATH) or of
            PyTorch's packages, if any (assembler.py); None: the driver compiles the
            PTX at load.
    disable names of optional passes ("tile-overlap-products") that shall not run,
    enable  or shall run although the target does not by default: lists, or
            strings with commas. They change the plan; the kernel gets slower or
            faster, never wrong.
    results a file of measured plans, as attn-bench writes it: the fastest one
            is taken where no plan is given.
    debug   True: each launch first checks what only data say (debug.py): that
            captures which are searched or promised to be sorted are, and that
            indices stay inside of captured tensors. Slow, wants NumPy and a text
            of attn.attention.
    cpu     with target="cpu": the processor to compile for, and features to do
            without, in LLVM's words ("x86-64-v3", "native,-avx512bf16"); None:
            this one.
    gpu     the GPU that the kernel is for, by the name its driver gives it ("NVIDIA
            H200", torch.cuda.get_device_name()): where no plan is given, the fastest
            one measured on it is taken, from `results` or else from the file that
            comes with the compiler. None: no GPU in particular.
    backward  True: the gradients of the function instead: its arguments, then o, lse
            and d_o, then the gradients (manifest["arguments"] names all).
    with_backward  True: the function, whose `backward` has the gradients: one
            artifact with both, or two kernels of this process.
    lse_gradient  True: there is a gradient of lse, too, after d_o.
    capture_gradients  False: captures of floats have none.
    backward_plan  with with_backward the plan of the gradients, as `plan`.
    jvp     True: the function with its tangents instead: its arguments, then t_q, t_k
            and t_v, then o, lse, t_o and t_lse: how far o and lse move where q, k and
            v move by t_q, t_k and t_v (a Jacobian-vector product).
    sizes   of a launch on a GPU: dict(query_length=, key_length=, batch_heads=,
            multiprocessors=), and batch_key_heads= where known: where the plan is a rule over several, the one that is
            for these sizes is compiled alone, which takes less time. Other sizes run,
            too, but by that plan: manifest["of_rule"] and ["variant_of_rule"] say
            which variant of which rule it is (docs/artifact.md), where it is one of
            several. For few queries with many keys there are then plans that share
            keys out and have rows of several heads in a tile. None: all others are
            compiled, and each launch chooses.
    """
    if not isinstance(text, (str, bytes, bytearray)):
        raise TypeError(f"wanted MLIR text, got {type(text).__name__}")
    if debug and not isinstance(text, Program):
        raise TypeError("debug=True wants a text that attn.attention made, as it made it")
    if cpu is not None and target != "cpu":
        raise ValueError(f'cpu={cpu!r} is for target="cpu", got target={target!r}')
    if backward and with_backward:
        raise ValueError("got backward=True and with_backward=True: the gradients alone, or both?")
    if jvp and (backward or with_backward):
        raise ValueError(f"got jvp=True and {'backward' if backward else 'with_backward'}=True: "
                         "tangents or gradients?")
    for name, is_set in (("lse_gradient=True", lse_gradient), ("capture_gradients=False", not capture_gradients)):
        if is_set and not (backward or with_backward):
            raise ValueError(f"{name} comes with backward=True or with_backward=True")
    if backward_plan is not None and not with_backward:
        raise ValueError("backward_plan comes with with_backward=True")
    if sizes is not None and target == "cpu":
        raise ValueError('sizes are for a GPU, got target="cpu"')
    if with_backward and target == "cpu":  # where a kernel is one function
        same = dict(target="cpu", disable=disable, enable=enable, results=results, debug=debug, cpu=cpu,
                    gpu=gpu)
        made = compile(text, plan=plan, **same)
        made.add_companion(compile(text, plan=backward_plan, backward=True, lse_gradient=lse_gradient,
                                   capture_gradients=capture_gradients, **same))
        return made
    if ptxas == "" and target != "cpu":
        again = dict(plan=plan, cache=cache, disable=disable, enable=enable, results=results, debug=debug,
                     gpu=gpu, backward=backward, with_backward=with_backward, lse_gradient=lse_gradient,
                     capture_gradients=capture_gradients, backward_plan=backward_plan, jvp=jvp, sizes=sizes)
        return _with_assembler(text, target, again)
    library = _capi.compiler()
    if sizes is not None and library.attnGetApiVersion() < 11:
        raise _capi.AttnError(f"the library has API version {library.attnGetApiVersion()}, sizes want 11")
    source = text.encode() if isinstance(text, str) else bytes(text)
    options = _capi.CompileOptions(
        # Older libraries know no sizes.
        struct_size=_capi.CompileOptions.sizes.offset if sizes is None else ctypes.sizeof(_capi.CompileOptions),
        target=_bytes(target),
        plan=_bytes(plan),
        cache_directory=_bytes(cache),
        ptxas=_bytes(ptxas),
        disabled_passes=_bytes(_names(disable)),
        enabled_passes=_bytes(_names(enable)),
        results_file=_bytes(results),
        cpu=_bytes(cpu),
        gpu=_bytes(gpu),
        functions=_capi.JVP if jvp else _capi.BOTH if with_backward else _capi.BACKWARD if backward else _capi.FORWARD,
        lse_gradient=bool(lse_gradient),
        no_capture_gradients=not capture_gradients,
        backward_plan=_bytes(backward_plan),
        sizes=None if sizes is None else ctypes.pointer(_launch_sizes(sizes, library.attnGetApiVersion())),
    )
    is_host = target == "cpu"
    function = library.attnCompileForCPU if is_host else library.attnCompile
    handle = function(source, len(source), options)
    if not handle:
        raise _capi.AttnError(_quoted(str(_capi.error()), source))
    made = Kernel(handle) if is_host else Artifact(handle)
    made.debugged = text if debug else None
    _warn_of_parts(made.manifest["name"], source)
    if is_host:  # where it is unpickled, with the plan that it has here
        (variant,) = made.manifest["variants"]
        chosen = dict(backward=backward, lse_gradient=lse_gradient, capture_gradients=capture_gradients)
        made.set_origin(_for_cpu, text, variant["plan"], debug, cpu, chosen)
    return made


def _warn_of_parts(name, source):
    """A function that is more than an attention does not run as it is."""
    part = re.fullmatch(r"(.+)_attention_\d+(_backward)?", name)
    if part and not re.search(rf"@{part[0]}\b".encode(), source):
        warnings.warn(
            f"'{part[1]}' does more than one attention: what is compiled is '{name}', a function of its "
            "own for the attention alone, and the rest is left to the caller (functions, manifest)",
            stacklevel=3,
        )


def _with_assembler(text, target, options):
    """compile() with the ptxas that is found; without, where there is none or it fails."""
    path = assembler.find() or None
    try:
        return compile(text, target, ptxas=path, **options)
    except _capi.AttnError as error:
        # What it made of wgmma may be worse than nothing: the compiler then refuses it.
        if path is None or not any(said in str(error) for said in (f"{path} failed", "cannot be kept")):
            raise
        lines = (line.strip() for line in str(error).splitlines())
        said = [line for line in lines if line and not line.startswith(("func.func", "^"))]
        warnings.warn(f"attn: no code by {path} ({'; '.join(said)}); "
                      "the driver compiles instead", RuntimeWarning, stacklevel=3)
        return compile(text, target, **options)


def _for_cpu(text, plan, debug, cpu, chosen):
    return compile(text, "cpu", plan=plan, debug=debug, cpu=cpu, **chosen)
