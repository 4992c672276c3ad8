// A persistent matrix product: 128 blocks share the 1,024 tiles of C, one tile after the other.
// Two neighbours along the rows form a cluster. The K loop inside is the one that is pipelined;
// materialization widens the index over tiles to 64 bits.

!a = !nv_tileas.tensor<4096x?xf16, global>
!b = !nv_tileas.tensor<?x4096xf16, global>
!c = !nv_tileas.tensor<4096x4096xf32, global>
!a_tile = !nv_tileas.smem_ref<128x64xf16>
!b_tile = !nv_tileas.smem_ref<64x128xf16>
!sum = !nv_tileas.tmem_ref<128x128xf32>

func.func @persistent_gemm(%A: !a, %B: !b, %C: !c, %block: i32, %steps: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %extent = arith.constant 128 : i32
  %depth = arith.constant 64 : i32
  %tiles = arith.constant 1024 : i32
  %blocks = arith.constant 128 : i32
  %acc = nv_tileas.alloc_tensor : !sum
  %nothing = arith.constant dense<0.0> : tensor<128x128xf32>
  scf.for %tile = %block to %tiles step %blocks : i32 {
    %m, %n, %valid = nv_tileas.work_tile_info %tile
        {problem = array<i64: 4096, 4096>, tile = array<i64: 128, 128>, cluster = array<i64: 2, 1>}
        : i32 -> i32, i32, i1
    %row = arith.muli %m, %extent : i32
    %column = arith.muli %n, %extent : i32
    %cleared = nv_tileas.async.tmem_store %nothing into %acc : tensor<128x128xf32> -> !sum
    scf.for %k = %zero to %steps step %one : i32 {
      %a_tile = nv_tileas.alloc_tensor : !a_tile
      %b_tile = nv_tileas.alloc_tensor : !b_tile
      %offset = arith.muli %k, %depth : i32
      %load_a = nv_tileas.async.tiled_tma_load %A[%row, %offset] into %a_tile : !a -> !a_tile
      %load_b = nv_tileas.async.tiled_tma_load %B[%offset, %column] into %b_tile : !b -> !b_tile
      %mma = nv_tileas.async.tcgen05_mma %load_a, %load_b acc %acc : !a_tile, !b_tile -> !sum
    } {stretto.machine = "b200-pipes"}
    %sum = nv_tileas.async.tmem_load %acc : !sum -> tensor<128x128xf32>
    nv_tileas.store %sum to %C[%row, %column] : tensor<128x128xf32> -> !c
  }
  func.return
}
