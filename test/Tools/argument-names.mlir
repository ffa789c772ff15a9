// Printed programs call arguments and the numbers of blocks by their names, in
// every room from the tile program on; captures have those of their locations.
// RUN: attn-compile %s --emit=tile | FileCheck %s --check-prefix=TILE
// RUN: attn-compile %s --emit=warp | FileCheck %s --check-prefix=WARP
// RUN: attn-compile %s --emit=gpu | FileCheck %s --check-prefix=GPU
// RUN: attn-compile %s --emit=tile --target=cpu | FileCheck %s --check-prefix=TILE

// TILE: func.func @f(%query: memref<{{.*}}, %key: memref<{{.*}}, %value: memref<{{.*}}, %table: memref<{{.*}}, %c1: memref<{{.*}}, %output: memref<{{.*}}, %lse: memref<
// TILE: tile.kernel @f {{.*}} grid(%batch, %head, %block) in
// TILE: tile.load %query[%batch, %head,
// WARP: warp.kernel @f blocks(%x, %y, %z) in
// WARP: warp.copy_async %key[%z,
// GPU: gpu.func @f(%query: memref<{{.*}} %lse: memref<

!t = tensor<?x?x?x64xbf16>
!l = tensor<?x?x?xf32>
!c = tensor<?xf32>
func.func @f(%q: !t, %k: !t, %v: !t, %s: !c loc("table"), %u: !c) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%s, %u)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %cs: !c, %cu: !c) {
      %a = attn.capture_load %cs[%h] : !c
      %d = attn.capture_load %cu[%h] : !c
      %y = arith.addf %x, %a : f32
      %z = arith.addf %y, %d : f32
      attn.yield %z : f32
    } : (!t, !t, !t, !c, !c) -> (!t, !l)
  return %o, %lse : !t, !l
}
