// A bit of everything that computes in 16 bits.
!t = tensor<?x?x?x32xbf16>

func.func @bits(%q: !t, %k: !t, %v: !t, %sink: tensor<?xbf16>, %table: tensor<8xbf16>, %slope: bf16)
    -> (!t, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v sink(%sink) captures(%table, %slope)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c: tensor<8xbf16>, %s: bf16) {
      %narrow = arith.truncf %x : f32 to bf16
      %d = arith.subi %j, %i : i32
      %distance = arith.sitofp %d : i32 to bf16
      %far = arith.mulf %distance, %s : bf16
      %entry = attn.capture_load %c[%d] : tensor<8xbf16>
      %bias = arith.addf %far, %entry : bf16
      %sum = arith.addf %narrow, %bias : bf16
      %cap = arith.constant 3.0 : bf16
      %least = arith.minimumf %sum, %cap : bf16
      %bend = math.tanh %least : bf16
      %floor = math.floor %least : bf16
      %isFar = arith.cmpf olt, %distance, %far : bf16
      %chosen = arith.select %isFar, %bend, %floor : bf16
      %whole = arith.fptosi %chosen : bf16 to i8
      %byte = arith.uitofp %whole : i8 to bf16
      %ratio = arith.divf %byte, %cap : bf16
      %last = arith.subf %chosen, %ratio : bf16
      %y = arith.extf %last : bf16 to f32
      attn.yield %y : f32
    }
    : (!t, !t, !t, tensor<?xbf16>, tensor<8xbf16>, bf16) -> (!t, tensor<?x?x?xf32>)
  return %o, %lse : !t, tensor<?x?x?xf32>
}
