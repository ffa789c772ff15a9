#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Outputs and gradients of whole models in a narrow type, by the error rule.

A result of a model is (output, {name: gradient}). Its errors are those beside float64,
and the model's unfused evaluation in the same type says what they may be."""

import error_rule

NOISE = 0.25  # a gradient of which the unfused evaluation errs by this share says nothing


def largest(x):
    return float(x.abs().max())


def error(x, wanted):
    return largest(x.double() - wanted)


def judge(element, got, rough, exact):
    """(what to say, whether `got` is within the rule)."""
    size = largest(exact[0])
    output = error(got[0], exact[0]) / error_rule.error_bound(element, error(rough[0], exact[0]), size)
    shares, lost = {}, 0
    for key, wanted in exact[1].items():
        unfused, size = error(rough[1][key], wanted), largest(wanted)
        if unfused >= NOISE * size > 0:  # differences of numbers that are alike
            lost += 1
        else:
            shares[key] = error(got[1][key], wanted) / error_rule.gradient_bound(element, unfused, size)
    said = f"output {output:.2f} of what is allowed"
    if shares:
        worst = max(shares, key=shares.get)
        said += f", gradients {shares[worst]:.2f} ({worst}{f', {lost} of noise' if lost else ''})"
    agrees = output <= 1 and all(share <= 1 for share in shares.values()) and lost <= len(shares) / 2
    return said, agrees
