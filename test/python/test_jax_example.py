#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The example of JAX (test/Examples/jax_attention.*): built, compiled, differentiated,
batched; errors."""

import functools
import importlib.util
import os
import pathlib
import shutil
import subprocess

import attn
import numpy
import pytest

jax = pytest.importorskip("jax", minversion="0.5")
jnp = jax.numpy
ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def example(request, tmp_path_factory):
    compiler = shutil.which("clang++-22") or shutil.which("c++")
    library, header = request.config.getoption("--lib"), ROOT / "include" / "attn-c" / "attn.h"
    if not compiler or not library or not header.exists():
        pytest.skip("wants a C++ compiler, --lib and the source tree")
    built = tmp_path_factory.mktemp("jax") / "libjax_attention.so"
    folder = os.path.dirname(os.path.abspath(library))
    subprocess.run([compiler, "-std=c++17", "-shared", "-fPIC", "-I", jax.ffi.include_dir(), "-I", ROOT / "include",
                    ROOT / "test" / "Examples" / "jax_attention.cpp", "-o", built, "-L", folder, "-lattn",
                    f"-Wl,-rpath,{folder}"], check=True)
    spec = importlib.util.spec_from_file_location("jax_attention", ROOT / "test" / "Examples" / "jax_attention.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.load(built)
    return module


def arrays(*lead, dtype=numpy.float32):
    rng = numpy.random.default_rng(0)
    return [jnp.asarray(rng.standard_normal((*lead, heads, 9, 16)), dtype) for heads in (4, 2, 2)]


def expected(q, k, v):
    """(o, lse) by operations of JAX."""
    k, v = (jnp.repeat(x, 2, axis=1) for x in (k, v))
    x = jnp.einsum("bhid,bhjd->bhij", q, k) / 4
    x = jnp.where(jnp.tri(9, dtype=bool), x, -jnp.inf)
    return jax.nn.softmax(x) @ v, jax.nn.logsumexp(x, axis=-1)


TEXT = attn.attention("f32", 16, variants=["causal"])


def test_values_and_gradients(example):
    q, k, v = arrays(2)
    def loss(function, q, k, v):
        o, lse = function(q, k, v)
        return (o**2).sum() + (lse * jnp.arange(9)).sum(), (o, lse)

    results = [jax.jit(jax.grad(functools.partial(loss, function), (0, 1, 2), has_aux=True))(q, k, v)
               for function in (functools.partial(example.attention, TEXT), expected)]
    for mine, wanted in zip(*map(jax.tree_util.tree_leaves, results)):
        numpy.testing.assert_allclose(mine, wanted, rtol=1e-4, atol=1e-5)


def test_vmap_and_bf16(example):
    text = attn.attention("bf16", 16, variants=["causal"])
    given = arrays(3, 2, dtype=jnp.bfloat16)
    o, _ = jax.vmap(lambda *one: example.attention(text, *one))(*given)
    wanted, _ = jax.vmap(expected)(*(x.astype(jnp.float32) for x in given))
    numpy.testing.assert_allclose(o.astype(jnp.float32), wanted, rtol=2e-2, atol=2e-2)


def test_errors(example):
    q, k, v = arrays(2)
    with pytest.raises(Exception, match=r"argument 1 \('k'\): wanted shape .x.x.x16, got 2x2x9x8"):
        jax.block_until_ready(example.attention(TEXT, q, k[..., :8], v))
    with pytest.raises(TypeError, match="k: wanted elements of f32, got float16"):
        example.attention(TEXT, q, k.astype(jnp.float16), v)
    with pytest.raises(Exception, match="INVALID_ARGUMENT: .*1:1: error"):
        jax.block_until_ready(example.attention("nonsense", q, k, v))
