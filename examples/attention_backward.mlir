// FlashAttention backward for one tile of keys and values, against 64 queries a step.
//
// Five matrix products: scores and their gradient are computed anew, the gradients of keys and values
// accumulate in tensor memory, and the gradient of the queries leaves in every step.

!matrix = !nv_tileas.tensor<?x64xbf16, global>
!gradient = !nv_tileas.tensor<?x64xf32, global>
!vector = !nv_tileas.tensor<?xf32, global>
!keys = !nv_tileas.smem_ref<128x64xbf16>
!queries = !nv_tileas.smem_ref<64x64xbf16>
!numbers = !nv_tileas.smem_ref<64xf32>
!ds_tile = !nv_tileas.smem_ref<128x64xbf16>
!ds_t_tile = !nv_tileas.smem_ref<64x128xbf16>
!dq_tile = !nv_tileas.smem_ref<64x64xf32>
!s_acc = !nv_tileas.tmem_ref<128x64xf32>
!p_tile = !nv_tileas.tmem_ref<128x64xbf16>
!dq_acc = !nv_tileas.tmem_ref<64x64xf32>
!kv_acc = !nv_tileas.tmem_ref<128x64xf32>
!scores = tensor<128x64xf32>
!half = tensor<128x64xbf16>
!row = tensor<64xf32>
!dq = tensor<64x64xf32>

func.func @attention_backward(%Q: !matrix, %K: !matrix, %V: !matrix, %dO: !matrix, %LSE: !vector,
                              %Delta: !vector, %dQ: !gradient, %dK: !gradient, %dV: !gradient,
                              %base: i32, %scale: f32, %steps: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %rows = arith.constant 64 : i32
  %k_tile = nv_tileas.alloc_tensor : !keys
  %v_tile = nv_tileas.alloc_tensor : !keys
  %k = nv_tileas.async.tiled_tma_load %K[%base, %zero] into %k_tile : !matrix -> !keys
  %v = nv_tileas.async.tiled_tma_load %V[%base, %zero] into %v_tile : !matrix -> !keys
  %dk_acc = nv_tileas.alloc_tensor : !kv_acc
  %dv_acc = nv_tileas.alloc_tensor : !kv_acc
  %empty = arith.constant dense<0.0> : !scores
  %dk_first = nv_tileas.async.tmem_store %empty into %dk_acc : !scores -> !kv_acc
  %dv_first = nv_tileas.async.tmem_store %empty into %dv_acc : !scores -> !kv_acc

  scf.for %step = %zero to %steps step %one : i32 {
    %q_tile = nv_tileas.alloc_tensor : !queries
    %do_tile = nv_tileas.alloc_tensor : !queries
    %lse_tile = nv_tileas.alloc_tensor : !numbers
    %delta_tile = nv_tileas.alloc_tensor : !numbers
    %ds_tile = nv_tileas.alloc_tensor : !ds_tile
    %dq_tile = nv_tileas.alloc_tensor : !dq_tile
    %s_acc = nv_tileas.alloc_tensor : !s_acc
    %p_tile = nv_tileas.alloc_tensor : !p_tile
    %dp_acc = nv_tileas.alloc_tensor : !s_acc
    %dq_acc = nv_tileas.alloc_tensor : !dq_acc

    // Addresses and tiles.
    %row = arith.muli %step, %rows : i32
    %where = arith.addi %base, %row : i32
    %load_q = nv_tileas.async.tiled_tma_load %Q[%where, %zero] into %q_tile : !matrix -> !queries
    %load_do = nv_tileas.async.tiled_tma_load %dO[%where, %zero] into %do_tile : !matrix -> !queries
    %load_lse = nv_tileas.async.tiled_tma_load %LSE[%where] into %lse_tile : !vector -> !numbers
    %load_delta = nv_tileas.async.tiled_tma_load %Delta[%where] into %delta_tile : !vector -> !numbers

    // The probabilities again, from the scores and the saved log-sum-exp.
    %q_transposed = nv_tileas.transpose %load_q : !queries -> !queries
    %kq = nv_tileas.async.tcgen05_mma %k, %q_transposed into %s_acc : !keys, !queries -> !s_acc
    %load_s = nv_tileas.async.tmem_load %kq : !s_acc -> !scores
    %scale_s = nv_tileas.arith.mulf %load_s, %scale : !scores, f32 -> !scores
    %read_lse = nv_tileas.async.smem_read %load_lse : !numbers -> !row
    %lse_row = nv_tileas.expand_dims %read_lse {axis = 0} : !row -> tensor<1x64xf32>
    %lse_wide = nv_tileas.broadcast %lse_row : tensor<1x64xf32> -> !scores
    %shift_s = arith.subf %scale_s, %lse_wide : !scores
    %p = math.exp2 %shift_s : !scores
    %narrow_p = arith.truncf %p : !scores to !half
    %store_p = nv_tileas.async.tmem_store %narrow_p into %p_tile : !half -> !p_tile

    // Gradient of the values: dV += P dO.
    %dv = nv_tileas.async.tcgen05_mma %store_p, %load_do acc %dv_acc : !p_tile, !queries -> !kv_acc

    // Gradient of the scores: dS = P * (V dO' - delta).
    %do_transposed = nv_tileas.transpose %load_do : !queries -> !queries
    %dp = nv_tileas.async.tcgen05_mma %v, %do_transposed into %dp_acc : !keys, !queries -> !s_acc
    %load_dp = nv_tileas.async.tmem_load %dp : !s_acc -> !scores
    %read_delta = nv_tileas.async.smem_read %load_delta : !numbers -> !row
    %delta_row = nv_tileas.expand_dims %read_delta {axis = 0} : !row -> tensor<1x64xf32>
    %delta_wide = nv_tileas.broadcast %delta_row : tensor<1x64xf32> -> !scores
    %shift_dp = arith.subf %load_dp, %delta_wide : !scores
    %ds = arith.mulf %p, %shift_dp : !scores
    %narrow_ds = arith.truncf %ds : !scores to !half
    %write_ds = nv_tileas.async.smem_write %narrow_ds into %ds_tile : !half -> !ds_tile

    // Gradient of the keys: dK += dS Q.
    %dk = nv_tileas.async.tcgen05_mma %write_ds, %load_q acc %dk_acc : !ds_tile, !queries -> !kv_acc

    // Gradient of the queries: dQ = dS' K, scaled and sent out.
    %ds_transposed = nv_tileas.transpose %write_ds : !ds_tile -> !ds_t_tile
    %dq = nv_tileas.async.tcgen05_mma %ds_transposed, %k into %dq_acc : !ds_t_tile, !keys -> !dq_acc
    %load_dq = nv_tileas.async.tmem_load %dq : !dq_acc -> !dq
    %scale_dq = nv_tileas.arith.mulf %load_dq, %scale : !dq, f32 -> !dq
    %write_dq = nv_tileas.async.smem_write %scale_dq into %dq_tile : !dq -> !dq_tile
    %store_dq = nv_tileas.async.tiled_tma_store %write_dq to %dQ[%where, %zero] : !dq_tile -> !gradient
  } {stretto.machine = "b200-pipes"}

  %dk_sum = nv_tileas.async.tmem_load %dk_acc : !kv_acc -> !scores
  %dv_sum = nv_tileas.async.tmem_load %dv_acc : !kv_acc -> !scores
  nv_tileas.store %dk_sum to %dK[%base, %zero] : !scores -> !gradient
  nv_tileas.store %dv_sum to %dV[%base, %zero] : !scores -> !gradient
  func.return
}
