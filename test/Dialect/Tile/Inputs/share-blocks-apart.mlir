func.func @f(%m: memref<?x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.kernel @f plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    tile.share_blocks %b of 8
    scf.for %i = %c0 to %h step %c1 {
      %t = tile.load %m[%i, %c0] : memref<?x64xf32>, vector<16x64xf32>
    }
    scf.for %i = %c1 to %x step %c1 {
      %t = tile.load %m[%i, %c0] : memref<?x64xf32>, vector<16x64xf32>
    }
  }
  return
}
