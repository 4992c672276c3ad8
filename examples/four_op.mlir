// The smallest body that touches TMA, tensor cores and both shared-memory transports.
// The TMA load and the write share the shared-memory write transport: 8 + 7 cycles an iteration.

!matrix = !nv_tileas.tensor<4096x4096xf16, global>
!a_tile = !nv_tileas.smem_ref<64x64xf16>
!b_tile = !nv_tileas.smem_ref<64x128xf16>
!sum = !nv_tileas.tmem_ref<64x128xf32>

func.func @four_op(%A: !matrix, %B: !matrix, %S: !matrix, %steps: index) {
  %zero = arith.constant 0 : i32
  %first = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a_tile = nv_tileas.alloc_tensor : !a_tile
  %b_tile = nv_tileas.alloc_tensor : !b_tile
  %acc = nv_tileas.alloc_tensor : !sum
  %a = nv_tileas.async.tiled_tma_load %A[%zero, %zero] into %a_tile : !matrix -> !a_tile
  %b = nv_tileas.async.tiled_tma_load %B[%zero, %zero] into %b_tile : !matrix -> !b_tile
  %src = nv_tileas.load %S[%zero, %zero] : !matrix -> tensor<64x64xf16>
  scf.for %i = %first to %steps step %one {
    %landed = nv_tileas.alloc_tensor : !a_tile
    %written = nv_tileas.alloc_tensor : !a_tile
    %load = nv_tileas.async.tiled_tma_load %A[%zero, %zero] into %landed : !matrix -> !a_tile
    %write = nv_tileas.async.smem_write %src into %written : tensor<64x64xf16> -> !a_tile
    %wgmma = nv_tileas.async.wgmma %a, %b acc %acc : !a_tile, !b_tile -> !sum
    %read = nv_tileas.async.smem_read %load : !a_tile -> tensor<64x64xf16>
  } {stretto.machine = "blackwell"}
  func.return
}
