// One head of FlashAttention forward: a query tile against 64 keys and values a step.
//
// Three recurrences run through the loop: the running maximum m, the running sum l, and the output
// accumulator in tensor memory, which is loaded, rescaled, stored and added to in every step.

!matrix = !nv_tileas.tensor<?x128xbf16, global>
!result = !nv_tileas.tensor<?x128xf32, global>
!q_tile = !nv_tileas.smem_ref<128x128xbf16>
!kv_tile = !nv_tileas.smem_ref<64x128xbf16>
!k_t_tile = !nv_tileas.smem_ref<128x64xbf16>
!s_acc = !nv_tileas.tmem_ref<128x64xf32>
!p_tile = !nv_tileas.tmem_ref<128x64xbf16>
!o_acc = !nv_tileas.tmem_ref<128x128xf32>
!scores = tensor<128x64xf32>
!output = tensor<128x128xf32>
!column = tensor<128xf32>

func.func @attention_forward(%Q: !matrix, %K: !matrix, %V: !matrix, %O: !result,
                             %base: i32, %scale: f32, %steps: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %keys = arith.constant 64 : i32
  %lowest = arith.constant dense<-1.0e+30> : !column
  %none = arith.constant dense<0.0> : !column
  %empty = arith.constant dense<0.0> : !output
  %q_tile = nv_tileas.alloc_tensor : !q_tile
  %q = nv_tileas.async.tiled_tma_load %Q[%base, %zero] into %q_tile : !matrix -> !q_tile
  %o_acc = nv_tileas.alloc_tensor : !o_acc
  %o_first = nv_tileas.async.tmem_store %empty into %o_acc : !output -> !o_acc

  %m_last, %o_last, %l_last = scf.for %step = %zero to %steps step %one
      iter_args(%m_before = %lowest, %o_before = %o_first, %l_before = %none)
      -> (!column, !o_acc, !column) : i32 {
    %k_tile = nv_tileas.alloc_tensor : !kv_tile
    %v_tile = nv_tileas.alloc_tensor : !kv_tile
    %s_acc = nv_tileas.alloc_tensor : !s_acc
    %p_tile = nv_tileas.alloc_tensor : !p_tile

    // Addresses and tiles.
    %row = arith.muli %step, %keys : i32
    %where = arith.addi %base, %row : i32
    %load_k = nv_tileas.async.tiled_tma_load %K[%where, %zero] into %k_tile : !matrix -> !kv_tile
    %load_v = nv_tileas.async.tiled_tma_load %V[%where, %zero] into %v_tile : !matrix -> !kv_tile

    // Scores and their running maximum.
    %k_transposed = nv_tileas.transpose %load_k : !kv_tile -> !k_t_tile
    %qk = nv_tileas.async.tcgen05_mma %q, %k_transposed into %s_acc : !q_tile, !k_t_tile -> !s_acc
    %load_s = nv_tileas.async.tmem_load %qk : !s_acc -> !scores
    %row_max = nv_tileas.reduce.max %load_s axis 1 : !scores -> !column
    %scale_max = nv_tileas.arith.mulf %row_max, %scale : !column, f32 -> !column
    %m = arith.maxnumf %m_before, %scale_max {stretto.name = "new_max"} : !column
    %max_drop = arith.subf %m_before, %m : !column
    %alpha = math.exp2 %max_drop : !column

    // Probabilities and their running sum.
    %scale_s = nv_tileas.arith.mulf %load_s, %scale : !scores, f32 -> !scores
    %m_column = nv_tileas.expand_dims %m {axis = 1} : !column -> tensor<128x1xf32>
    %m_wide = nv_tileas.broadcast %m_column : tensor<128x1xf32> -> !scores
    %shift = arith.subf %scale_s, %m_wide : !scores
    %p = math.exp2 %shift : !scores
    %row_sum = nv_tileas.reduce.sum %p axis 1 : !scores -> !column
    %rescale_l = arith.mulf %l_before, %alpha : !column
    %l = arith.addf %rescale_l, %row_sum {stretto.name = "new_l"} : !column

    // The output accumulator: rescale what is there, then add P times V.
    %alpha_column = nv_tileas.expand_dims %alpha {axis = 1} : !column -> tensor<128x1xf32>
    %alpha_wide = nv_tileas.broadcast %alpha_column : tensor<128x1xf32> -> !output
    %load_o = nv_tileas.async.tmem_load %o_before : !o_acc -> !output
    %rescale_o = arith.mulf %load_o, %alpha_wide : !output
    %store_o = nv_tileas.async.tmem_store %rescale_o into %o_before : !output -> !o_acc
    %narrow_p = arith.truncf %p : !scores to tensor<128x64xbf16>
    %store_p = nv_tileas.async.tmem_store %narrow_p into %p_tile : tensor<128x64xbf16> -> !p_tile
    %o = nv_tileas.async.tcgen05_mma %store_p, %load_v acc %store_o {stretto.name = "pv"}
        : !p_tile, !kv_tile -> !o_acc
    scf.yield %m, %o, %l : !column, !o_acc, !column
  } {stretto.machine = "b200-pipes"}

  // Divide by the sums and send out.
  %summed = nv_tileas.async.tmem_load %o_last : !o_acc -> !output
  %l_column = nv_tileas.expand_dims %l_last {axis = 1} : !column -> tensor<128x1xf32>
  %l_wide = nv_tileas.broadcast %l_column : tensor<128x1xf32> -> !output
  %attended = arith.divf %summed, %l_wide : !output
  nv_tileas.store %attended to %O[%base, %zero] : !output -> !result
  func.return
}
