#plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 8>
#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#nk = affine_map<(m, n, k) -> (n, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
!view = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
!sums = memref<?x?x?x2048xf32>
func.func @grid(%q: !view, %k: !view, %sums: !sums, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.kernel @grid plan(#plan) grid(%b, %h, %x) in (%n, %n, %n) {
    %kt = tile.load %k[%b, %h, %x, %c0] : !view, vector<64x64xf32>
    %zs = arith.constant dense<0.0> : vector<64x32xf32>
    %zq = arith.constant dense<0.0> : vector<32x64xf32>
    %zk = arith.constant dense<0.0> : vector<64x64xf32>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%u = %zk, %v = %zk) -> (vector<64x64xf32>, vector<64x64xf32>) {
      %qt = tile.load %q[%b, %h, %i, %c0] : !view, vector<32x64xf32>
      %s = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %kt, %qt, %zs : vector<64x64xf32>, vector<32x64xf32> into vector<64x32xf32>
      %e = math.exp2 %s : vector<64x32xf32>
      %u1 = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %s, %qt, %u : vector<64x32xf32>, vector<32x64xf32> into vector<64x64xf32>
      %d = vector.contract {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %e, %kt, %zq : vector<64x32xf32>, vector<64x64xf32> into vector<32x64xf32>
      %v1 = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %e, %qt, %v : vector<64x32xf32>, vector<32x64xf32> into vector<64x64xf32>
      tile.store %d, %sums[%b, %h, %i, %c0] accumulate packed : vector<32x64xf32>, !sums
      scf.yield %u1, %v1 : vector<64x64xf32>, vector<64x64xf32>
    }
    tile.store %r#0, %k[%b, %h, %x, %c0] : vector<64x64xf32>, !view
    tile.store %r#1, %k[%b, %h, %x, %c0] : vector<64x64xf32>, !view
  }
  return
}
