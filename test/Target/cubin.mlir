// REQUIRES: ptxas
// The real assembler: no spills, no advice.
// RUN: attn-compile %s --strict --dump-to=%t -o %t.attn
// RUN: FileCheck %s < %t/9-manifest.json
// RUN: attn-compile %s --emit=cubin -o %t.cubin && head -c 4 %t.cubin | FileCheck %s --check-prefix=ELF

// CHECK: "registers": {{[0-9]+}}
// CHECK: "spill_store_bytes": 0
// CHECK: "spill_load_bytes": 0
// ELF: ELF

func.func @f(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]}
    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>) -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)
  return %o : tensor<?x?x?x64xbf16>
}
