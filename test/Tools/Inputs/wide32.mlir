func.func @wide(%q: tensor<?x?x?x192xf32>, %k: tensor<?x?x?x192xf32>, %v: tensor<?x?x?x192xf32>)
    -> (tensor<?x?x?x192xf32>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<?x?x?x192xf32>, tensor<?x?x?x192xf32>, tensor<?x?x?x192xf32>)
      -> (tensor<?x?x?x192xf32>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x192xf32>, tensor<?x?x?xf32>
}
