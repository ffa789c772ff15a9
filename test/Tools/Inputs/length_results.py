"""Prints results of a GPU that was never built, for some of four lengths.

usage: length_results.py [backward] [length ...]"""
import json
import sys

PLANS = {"a": "block_q = 128, block_k = 64, warps = 8", "b": "block_q = 192, block_k = 64, warps = 12",
         "c": "block_q = 256, block_k = 64, warps = 16"}
# c is the fastest at 1024, but a serves 256 and 1024 within 1 %.
SECONDS = {256: {"a": 1.0, "c": 1.5}, 1024: {"c": 2.0, "a": 2.01, "b": 2.2},
           4096: {"b": 8.0, "a": 8.1}, 16384: {"b": 30.0}}
is_backward = "backward" in sys.argv[1:]
lengths = [int(text) for text in sys.argv[1 + is_backward:]] or [4096, 256, 16384, 1024]
print(json.dumps({"attn_results": 1, "results": [
    {"target": "sm_90a", "element": "bf16", "head_dim": 64, "value_head_dim": 64,
     "masked": False, "scored": False, "backward": is_backward, "device": "Abacus",
     "shapes": str(length), "queries": length,
     "plans": [{"seconds": seconds, "plan": f"#attn.plan<target = sm_90a, {PLANS[name]}>"}
               for name, seconds in SECONDS[length].items()]}
    for length in lengths]}))
