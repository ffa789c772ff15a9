# GoogleTest programs: every executable whose name ends in "Test" in the build
# directory.

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(__file__)))
import lit.formats
import sanitizers

# Which processor programs for the CPU are compiled for: TestProcessor.h.
config.environment["ATTN_TEST_CPU"] = lit_config.params.get("cpu", "native")

# How many random programs of gradients a part draws: GradientPropertyTest.cpp.
config.environment["ATTN_TEST_PROGRAMS"] = lit_config.params.get("programs", "")

config.name = "attn-unit"
config.suffixes = []
config.test_source_root = config.attn_unit_dir
config.test_exec_root = config.attn_unit_dir
config.test_format = lit.formats.GoogleTest(".", "Test")
if config.sanitize:
    config.environment.update(sanitizers.environment(config.llvm_tools_dir))
