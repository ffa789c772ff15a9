// Score and mask regions with captured tensors and scalars.
// RUN: attn-run --target=cpu %s --function=bias --shape=b=2,h=3,sq=30,sk=50,c0=3x30x50 --check | FileCheck %s
// RUN: attn-run --target=cpu %s --function=documents --shape=b=2,h=1,sq=60,sk=60,c0=2x60 --check | FileCheck %s
// RUN: attn-run --target=cpu %s --function=scalar --shape=b=1,h=2,sq=10,sk=20 --scalar=c0=0.25 --check | FileCheck %s
// RUN: attn-run --target=cpu %s --function=nothing --shape=b=1,h=2,sq=10,sk=20 --check --json | FileCheck %s --check-prefix=EMPTY

// CHECK: check     PASS

// Rows that see no key are 0, their lse is -inf, and both are checked (N4).
// EMPTY: "empty_rows": 20
// EMPTY: "error": 0,
// EMPTY: "passes": true

!t = tensor<?x?x?x16xbf16>
!l = tensor<?x?x?xf32>

func.func @bias(%q: !t, %k: !t, %v: !t, %bias: tensor<?x?x?xf32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%bias)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c: tensor<?x?x?xf32>) {
      %y = attn.capture_load %c[%h, %i, %j] : tensor<?x?x?xf32>
      %z = arith.addf %x, %y : f32
      attn.yield %z : f32
    } : (!t, !t, !t, tensor<?x?x?xf32>) -> (!t, !l)
  return %o, %lse : !t, !l
}

func.func @documents(%q: !t, %k: !t, %v: !t, %ids: tensor<?x?xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%ids)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %c: tensor<?x?xi32>) {
      %x = attn.capture_load %c[%b, %i] : tensor<?x?xi32>
      %y = attn.capture_load %c[%b, %j] : tensor<?x?xi32>
      %z = arith.cmpi eq, %x, %y : i32
      attn.yield %z : i1
    } : (!t, !t, !t, tensor<?x?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}

func.func @scalar(%q: !t, %k: !t, %v: !t, %slope: f32) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%slope)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c: f32) {
      %f = arith.sitofp %j : i32 to f32
      %y = arith.mulf %f, %c : f32
      %z = arith.addf %x, %y : f32
      attn.yield %z : f32
    } : (!t, !t, !t, f32) -> (!t, !l)
  return %o, %lse : !t, !l
}

func.func @nothing(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %no = arith.constant false
      attn.yield %no : i1
    } : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
