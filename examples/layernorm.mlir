// Layer normalization over tiles of rows: load, two reductions, scale and shift, store.
// Statistics are computed in one pass over registers; loads and stores of neighbouring tiles overlap.

!matrix = !nv_tileas.tensor<?x512xf16, global>
!staged = !nv_tileas.smem_ref<16x512xf16>
!tile = tensor<16x512xf32>
!half = tensor<16x512xf16>
!column = tensor<16xf32>

func.func @layernorm(%X: !matrix, %Y: !matrix, %tiles: i32, %inverse_n: !column, %epsilon: !column,
                     %gamma: !tile, %beta: !tile) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %rows = arith.constant 16 : i32
  scf.for %index = %zero to %tiles step %one : i32 {
    %x_tile = nv_tileas.alloc_tensor : !staged
    %y_tile = nv_tileas.alloc_tensor : !staged
    %offset = arith.muli %index, %rows : i32
    %load_x = nv_tileas.async.tiled_tma_load %X[%offset, %zero] into %x_tile : !matrix -> !staged
    %read_x = nv_tileas.async.smem_read %load_x : !staged -> !half
    %widen = arith.extf %read_x : !half to !tile

    // Mean and variance of each row.
    %sum = nv_tileas.reduce.sum %widen axis 1 : !tile -> !column
    %mean = arith.mulf %sum, %inverse_n : !column
    %mean_wide = nv_tileas.broadcast %mean : !column -> !tile
    %centre = arith.subf %widen, %mean_wide : !tile
    %square = arith.mulf %centre, %centre : !tile
    %sum_squares = nv_tileas.reduce.sum %square axis 1 : !tile -> !column
    %variance = math.fma %sum_squares, %inverse_n, %epsilon : !column
    %inverse_sd = math.rsqrt %variance : !column
    %inverse_wide = nv_tileas.broadcast %inverse_sd : !column -> !tile

    // Normalize, scale, shift, and send out.
    %normalize = arith.mulf %centre, %inverse_wide : !tile
    %scale_shift = math.fma %normalize, %gamma, %beta : !tile
    %narrow = arith.truncf %scale_shift : !tile to !half
    %write_y = nv_tileas.async.smem_write %narrow into %y_tile : !half -> !staged
    %store_y = nv_tileas.async.tiled_tma_store %write_y to %Y[%offset, %zero] : !staged -> !matrix
  } {stretto.machine = "b200-pipes"}
  func.return
}
