#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Attention in JAX: programs of attn.attention as calls of XLA, with gradients, on the
CPU. jax_attention.cpp is the call (on a GPU, attnLoad of an artifact would make its
kernel, on the stream that XLA gives); test/python/test_jax_example.py builds it so:

    c++ -std=c++17 -shared -fPIC -I$(python3 -c 'import jax; print(jax.ffi.include_dir())')
        -Iinclude jax_attention.cpp -o libjax_attention.so -Lbuild/lib -lattn
"""

import ctypes
import functools
import re

import jax
import jax.numpy as jnp
import numpy
from attn import elements


def load(path):
    """Makes the call known to JAX, from the library that jax_attention.cpp became."""
    function = jax.ffi.pycapsule(ctypes.CDLL(path).AttnLaunch)
    jax.ffi.register_ffi_target("attn_launch", function, platform="cpu")


def _call(text, backward, results, *arrays):
    # The call checks shapes; of what the elements are XLA alone knows.
    for name, array in zip("qkv", arrays):
        wanted = re.search(rf"%{name}: tensor<[^>]*x(\w+)>", text)
        if wanted and elements.element(array.dtype) != wanted[1]:
            raise TypeError(f"{name}: wanted elements of {wanted[1]}, got {array.dtype}")
    call = jax.ffi.ffi_call("attn_launch", results, vmap_method="sequential")
    return call(*arrays, text=numpy.frombuffer(text.encode(), numpy.uint8), backward=backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def attention(text, q, k, v):
    """(o, lse) of a program without captures, differentiable in q, k and v."""
    return _call(text, False, (jax.ShapeDtypeStruct((*q.shape[:3], v.shape[3]), q.dtype),
                               jax.ShapeDtypeStruct(q.shape[:3], jnp.float32)), q, k, v)


def _forward(text, q, k, v):
    o, lse = attention(text, q, k, v)
    return (o, lse), (q, k, v, o, lse)


def _backward(text, kept, gradients):
    results = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in kept[:3]]
    return tuple(_call(text, True, results, *kept, *gradients))


attention.defvjp(_forward, _backward)
