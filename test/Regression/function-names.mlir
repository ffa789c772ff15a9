// A function may be called what is no name in PTX or C; @"a b" ended the
// compiler. The manifest has both names.

// RUN: attn-compile %s --function="a b" --target=sm_80 --emit=ptx | FileCheck %s --check-prefix=BLANK
// RUN: attn-compile %s --function="a b" --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=BLANK
// BLANK: .entry a_x20_b(

// RUN: attn-compile %s --function="a b" --target=sm_80 --dump-to=%t.dump -o %t.attn
// RUN: FileCheck %s --check-prefix=MANIFEST < %t.dump/9-manifest.json
// MANIFEST: "name": "a b"
// MANIFEST: "entry": "a_x20_b"

// RUN: attn-compile %s --function="größe" --target=sm_80 --emit=ptx | FileCheck %s --check-prefix=LETTERS
// LETTERS: .entry gr_xc3__xb6__xc3__x9f_e(

// RUN: attn-compile %s --function=attn_shared_memory --target=sm_80 --emit=ptx | FileCheck %s --check-prefix=MEMORY
// MEMORY: .entry _x61_ttn_shared_memory(

// RUN: attn-compile %s --function=llvm.sqrt.f32 --target=sm_80 --emit=ptx | FileCheck %s --check-prefix=POINTS
// POINTS: .entry llvm_x2e_sqrt_x2e_f32(

// A comment does not end in a name.
// RUN: attn-compile %s --function="*/ int" --target=sm_80 --emit=header -o %t.h
// RUN: %cc -fsyntax-only -std=c99 -Wall -Wextra -Werror -Wno-unused-function -I%attn_src_root/include -x c %t.h
// RUN: FileCheck %s --check-prefix=HEADER < %t.h
// HEADER: /* _x2a__x2f__x20_int for sm_80
// HEADER: _x2a__x2f__x20_int_sm_80_launch(

// RUN: attn-run %s --function="a b" --target=cpu --shape=b=1,h=2,sq=3,sk=5 --check | FileCheck %s --check-prefix=CPU
// CPU: check PASS

!t = tensor<?x?x?x16xbf16>
!l = tensor<?x?x?xf32>

func.func @"a b"(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
func.func @"größe"(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
func.func @attn_shared_memory(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
func.func @llvm.sqrt.f32(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
func.func @"*/ int"(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
