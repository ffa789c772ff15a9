// Plain attention is what the passes of the Warp room are made for: none is
// missed on the way to sm_80, whose rings have two slots for keys and values.
// RUN: attn-opt %s --attn-sm80 --remarks-filter=.* --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --implicit-check-not="[Missed]{{.*}}Category:warp-"
// CHECK: [Passed] peel-masks

!t = tensor<?x?x?x64xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
