// A linear bias leaves keys far from the greatest one no weight: from many keys on
// there is a variant that does not visit them, of a known slope from fewer on.
// RUN: attn-compile %s --function=alibi --target=sm_90a --emit=ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=ALIBI
// RUN: attn-compile %s --function=alibi --target=sm_80 --emit=ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=ALIBI
// RUN: attn-compile %s --function=alibi --target=sm_90a --disable-pass=tile-hide-faint --emit=ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=NONE --allow-empty
// RUN: attn-compile %s --function=alibi --target=sm_90a --enable-pass=tile-hide-faint --emit=ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=NONE --allow-empty
// RUN: attn-compile %s --function=both_sides --target=sm_90a --emit=ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=ALIBI
// RUN: attn-compile %s --function=capped --target=sm_90a --emit=ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=NONE --allow-empty
// RUN: attn-compile %s --function=short --target=sm_90a --emit=ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=NONE --allow-empty
// RUN: attn-compile %s --function=window --target=sm_80 --emit=ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=NONE --allow-empty
// RUN: attn-compile %s --function=wide_window --target=sm_80 --emit=ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=ALIBI
// RUN: attn-compile %s --function=steep --target=sm_90a --emit=ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=STEEP
// RUN: attn-compile %s --function=long --target=sm_90a --emit=tile 2>&1 | FileCheck %s --check-prefix=LONG --implicit-check-not=variants

!t = tensor<?x?x?x64xbf16>
!l = tensor<?x?x?xf32>

// NONE-NOT: remark
// ALIBI: compiled in 2 variants: query_length >= 8192 and key_length >= 8192 -> {{[^;]*}}, with = ["tile-hide-faint"]>; {{[^;]*}}{{$}}
func.func @alibi(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.alibi, #attn.causal]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
func.func @both_sides(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.alibi]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
func.func @capped(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.softcap<20.0 : f32>, #attn.alibi, #attn.causal]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}

// A window hides them already, unless it is as wide.
func.func @window(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.alibi, #attn.window<left = 1023, right = 0>]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
func.func @wide_window(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.alibi, #attn.window<left = 16383, right = 0>]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}

!q = tensor<1x8x4096x64xbf16>
!m = tensor<1x8x4096xf32>
func.func @short(%q: !q, %k: !t, %v: !t) -> (!q, !m) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.alibi, #attn.causal]} : (!q, !t, !t) -> (!q, !m)
  return %o, %lse : !q, !m
}

// A bias of 2048 between the first key and the last.
// STEEP: compiled in 2 variants: query_length >= 4096 and key_length >= 4096 ->
func.func @steep(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %half = arith.constant 0.5 : f32
      %d = arith.subi %i, %j : i32
      %f = arith.sitofp %d : i32 to f32
      %y = math.fma %half, %f, %x : f32
      attn.yield %y : f32
    } : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}

!q8 = tensor<1x8x8192x64xbf16>
!m8 = tensor<1x8x8192xf32>
// LONG: tile.kernel @long_key_norms
// LONG: tile.kernel @long plan
func.func @long(%q: !q8, %k: !q8, %v: !q8) -> (!q8, !m8) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.alibi, #attn.causal]} : (!q8, !q8, !q8) -> (!q8, !m8)
  return %o, %lse : !q8, !m8
}
