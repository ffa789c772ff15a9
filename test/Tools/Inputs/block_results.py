"""Prints results of a GPU that was never built: few and many blocks of each length.

usage: block_results.py [alike | backward]
alike: what is fastest does not depend on the blocks; backward: of gradients"""
import json
import sys

PLANS = {"a": "block_q = 128, block_k = 64, warps = 8", "b": "block_q = 192, block_k = 64, warps = 12",
         "c": "block_q = 64, block_k = 64, warps = 4"}
# (length, rows for each multiprocessor)
SECONDS = {(512, 2000): {"a": 1.0, "b": 1.2, "c": 1.3}, (4096, 2000): {"b": 8.0, "a": 8.3, "c": 9.0},
           (512, 30): {"c": 0.1, "a": 0.12, "b": 0.15}, (4096, 250): {"c": 0.7, "b": 0.8, "a": 0.71}}
ALIKE = {(512, 2000): {"a": 1.0, "b": 1.2}, (4096, 2000): {"b": 8.0, "a": 8.3},
         (512, 30): {"a": 0.1, "b": 0.12}, (4096, 250): {"b": 0.7, "a": 0.8}}
is_backward = "backward" in sys.argv[1:]
chosen = ALIKE if "alike" in sys.argv[1:] else SECONDS
print(json.dumps({"attn_results": 1, "results": [
    {"target": "sm_90a", "element": "bf16", "head_dim": 64, "value_head_dim": 64,
     "masked": False, "scored": False, "backward": is_backward, "device": "Abacus",
     "shapes": f"{length} {rows}", "queries": length, "rows_per_multiprocessor": rows,
     "plans": [{"seconds": seconds, "plan": f"#attn.plan<target = sm_90a, {PLANS[name]}>"}
               for name, seconds in plans.items()]}
    for (length, rows), plans in chosen.items()]}))
