// The K loop of a matrix product: two TMA loads feed one MMA into an accumulator.
// A is a panel of 128 rows, B one of 128 columns; their tile of C is at (row, column).

!a = !nv_tileas.tensor<128x?xf16, global>
!b = !nv_tileas.tensor<?x128xf16, global>
!c = !nv_tileas.tensor<4096x4096xf32, global>
!a_tile = !nv_tileas.smem_ref<128x64xf16>
!b_tile = !nv_tileas.smem_ref<64x128xf16>
!sum = !nv_tileas.tmem_ref<128x128xf32>

func.func @gemm(%A: !a, %B: !b, %C: !c, %row: i32, %column: i32, %tiles: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %depth = arith.constant 64 : i32
  %acc = nv_tileas.alloc_tensor : !sum
  %nothing = arith.constant dense<0.0> : tensor<128x128xf32>
  %cleared = nv_tileas.async.tmem_store %nothing into %acc : tensor<128x128xf32> -> !sum
  scf.for %k = %zero to %tiles step %one : i32 {
    %a_tile = nv_tileas.alloc_tensor : !a_tile
    %b_tile = nv_tileas.alloc_tensor : !b_tile
    %offset = arith.muli %k, %depth : i32
    %load_a = nv_tileas.async.tiled_tma_load %A[%zero, %offset] into %a_tile : !a -> !a_tile
    %load_b = nv_tileas.async.tiled_tma_load %B[%offset, %zero] into %b_tile : !b -> !b_tile
    %mma = nv_tileas.async.tcgen05_mma %load_a, %load_b acc %acc : !a_tile, !b_tile -> !sum
  } {stretto.machine = "b200-pipes"}
  %sum = nv_tileas.async.tmem_load %acc : !sum -> tensor<128x128xf32>
  nv_tileas.store %sum to %C[%row, %column] : tensor<128x128xf32> -> !c
  func.return
}
