# The lit suite. Mirrors lib: Dialect/Tile/Transforms/PeelMasks.cpp is tested by
# Dialect/Tile/peel-masks.mlir.
#
# Features for REQUIRES / UNSUPPORTED:
#   x86_64  (or another name of a kind of processor) this machine is one
#   numpy   %numpy_python has NumPy and pytest
#   ptxas   a ptxas binary is on the path or in the CUDA Toolkit
#   nvdisasm   the disassembler that belongs to it is
#   pkg-config   that program is
#   sm80    the machine has an NVIDIA GPU of compute capability 8.0 or newer

import ctypes
import os
import platform
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))
import lit.formats
import sanitizers
from lit.llvm import llvm_config
from lit.llvm.subst import ToolSubst

for path in (config.attn_src_root, config.attn_obj_root):
    if " " in path:
        lit_config.fatal(f"the suite does not run in a path with blanks, got {path!r}")

config.name = "attn"
config.test_format = lit.formats.ShTest(not llvm_config.use_lit_shell)
# A directory with tests in another language adds its suffix in its own
# lit.local.cfg.
config.suffixes = [".mlir", ".test"]
# Not lit tests: inputs of tests, GoogleTest and pytest suites, measurements.
config.excludes = ["Inputs", "Unit", "python", "Benchmark", "Masks"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.attn_obj_root, "test")

llvm_config.with_system_environment(
    ["HOME", "TMPDIR", "CUDA_HOME", "CUDA_PATH", "CUDAToolkit_ROOT"]
)
if config.sanitize:
    config.available_features.add("sanitize")
    config.environment.update(sanitizers.environment(config.llvm_tools_dir))
if config.cuda_bin_dir:
    llvm_config.with_environment("PATH", config.cuda_bin_dir, append_path=True)
llvm_config.with_environment("PATH", config.llvm_tools_dir, append_path=True)
llvm_config.with_environment("PATH", config.attn_tools_dir, append_path=True)
llvm_config.use_default_substitutions()

# Every input of attn-opt is also printed and parsed again, as text and as
# bytecode, before the passes see it.
tools = [ToolSubst("attn-opt", extra_args=["--verify-roundtrip"])]
# Programs for the CPU run with the features of this one, or of those that
# `--param cpu=NAME` says, in the words of attn-run's --cpu.
cpu = lit_config.params.get("cpu", "native")
config.substitutions.append(("%cpu", cpu))
tools.append(ToolSubst("attn-run", extra_args=["--cpu=" + cpu]))
tools += [
    ToolSubst(name, unresolved="ignore")
    for name in [
        "attn-compile",
        "attn-bench",
        "attn-simulate",
        "attn-fuzz",
        "mlir-opt",
        "mlir-runner",
    ]
]
llvm_config.add_tool_substitutions(
    tools, [config.attn_tools_dir, config.llvm_tools_dir]
)
config.substitutions.append(("%attn_tools_dir", config.attn_tools_dir))
config.substitutions.append(("%attn_lib_dir", config.attn_lib_dir))
# Where libmlir_runner_utils.so and its siblings are, for mlir-runner.
config.substitutions.append(
    ("%mlir_lib_dir", os.path.join(os.path.dirname(config.llvm_tools_dir), "lib"))
)
config.substitutions.append(("%cc", config.c_compiler))
config.substitutions.append(("%numpy_python", config.python_executable))
config.substitutions.append(("%cxx", config.cxx_compiler))
config.substitutions.append(("%attn_obj_root", config.attn_obj_root))
config.substitutions.append(("%attn_src_root", config.attn_src_root))


def compute_capability():
    """Of device 0, as 10 * major + minor; 0 where there is none."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
        count = ctypes.c_int(0)
        if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
            return 0
        if count.value == 0:
            return 0
        device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        cuda.cuDeviceGet(ctypes.byref(device), 0)
        # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{MAJOR,MINOR}
        cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
        cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
        return 10 * major.value + minor.value
    except (OSError, AttributeError):
        return 0


config.available_features.add(platform.machine())
if not subprocess.run([config.python_executable, "-c", "import numpy, pytest"], capture_output=True).returncode:
    config.available_features.add("numpy")
for tool in ("ptxas", "nvdisasm", "pkg-config"):
    if shutil.which(tool, path=config.environment["PATH"]):
        config.available_features.add(tool)
if compute_capability() >= 80:
    config.available_features.add("sm80")
