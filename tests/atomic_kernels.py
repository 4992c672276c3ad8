"""Triton kernels whose blocks or steps add to the same elements."""

from __future__ import annotations

SPLIT_K = """module {
  tt.func public @split_k(%a_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %M: i32 {tt.divisibility = 16 : i32}, %N: i32 {tt.divisibility = 16 : i32}, %K: i32 {tt.divisibility = 16 : i32}) {
    %total = arith.constant dense<0.000000e+00> : tensor<128x64xf32>
    %c1_i64 = arith.constant 1 : i64
    %c64_i32 = arith.constant 64 : i32
    %zero = arith.constant 0 : i32
    %first = tt.get_program_id z : i32
    %first_2 = arith.muli %first, %c64_i32 : i32
    %by = tt.get_num_programs z : i32
    %by_3 = arith.muli %by, %c64_i32 : i32
    %a_desc = arith.extsi %K : i32 to i64
    %a_desc_4 = tt.make_tensor_descriptor %a_ptr, [%M, %K], [%a_desc, %c1_i64] : <f16>, <tensor<128x64xf16>>
    %b_desc = arith.extsi %N : i32 to i64
    %b_desc_5 = tt.make_tensor_descriptor %b_ptr, [%K, %N], [%b_desc, %c1_i64] : <f16>, <tensor<64x64xf16>>
    %total_6 = scf.for %k = %first_2 to %K step %by_3 iter_args(%total_19 = %total) -> (tensor<128x64xf32>)  : i32 {
      %a = tt.descriptor_load %a_desc_4[%zero, %k] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
      %b = tt.descriptor_load %b_desc_5[%k, %zero] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
      %total_20 = tt.dot %a, %b, %total_19, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
      scf.yield %total_20 : tensor<128x64xf32>
    }
    %rows = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %columns = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %at = tt.expand_dims %rows {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %at_11 = tt.splat %N : i32 -> tensor<128x1xi32>
    %at_12 = arith.muli %at, %at_11 : tensor<128x1xi32>
    %at_13 = tt.splat %c_ptr : !tt.ptr<f32> -> tensor<128x1x!tt.ptr<f32>>
    %at_14 = tt.addptr %at_13, %at_12 : tensor<128x1x!tt.ptr<f32>>, tensor<128x1xi32>
    %at_15 = tt.expand_dims %columns {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %at_16 = tt.broadcast %at_14 : tensor<128x1x!tt.ptr<f32>> -> tensor<128x64x!tt.ptr<f32>>
    %at_17 = tt.broadcast %at_15 : tensor<1x64xi32> -> tensor<128x64xi32>
    %at_18 = tt.addptr %at_16, %at_17 : tensor<128x64x!tt.ptr<f32>>, tensor<128x64xi32>
    %0 = tt.splat %M : i32 -> tensor<128x1xi32>
    %1 = arith.cmpi slt, %at, %0 : tensor<128x1xi32>
    %2 = tt.splat %N : i32 -> tensor<1x64xi32>
    %3 = arith.cmpi slt, %at_15, %2 : tensor<1x64xi32>
    %4 = tt.broadcast %1 : tensor<128x1xi1> -> tensor<128x64xi1>
    %5 = tt.broadcast %3 : tensor<1x64xi1> -> tensor<128x64xi1>
    %6 = arith.andi %4, %5 : tensor<128x64xi1>
    %7 = tt.atomic_rmw fadd, relaxed, gpu, %at_18, %total_6, %6 : (tensor<128x64x!tt.ptr<f32>>, tensor<128x64xf32>, tensor<128x64xi1>) -> tensor<128x64xf32>
    tt.return
  }
}
"""  # noqa: E501
"""Blocks along z share the columns of A, and add what they have."""
GATHERED = """module {
  tt.func public @gathered(%x_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %w_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %y_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %rows: i32 {tt.divisibility = 16 : i32}) {
    %cst = arith.constant dense<true> : tensor<64x64xi1>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %at = arith.constant dense<64> : tensor<64x1xi32>
    %c0_i32 = arith.constant 0 : i32
    %c64_i32 = arith.constant 64 : i32
    %c64_i64 = arith.constant 64 : i64
    %c1_i64 = arith.constant 1 : i64
    %x_desc = tt.make_tensor_descriptor %x_ptr, [%rows, %c64_i32], [%c64_i64, %c1_i64] : <f16>, <tensor<64x64xf16>>
    %w_desc = tt.make_tensor_descriptor %w_ptr, [%c64_i32, %c64_i32], [%c64_i64, %c1_i64] : <f16>, <tensor<64x64xf16>>
    %w = tt.descriptor_load %w_desc[%c0_i32, %c0_i32] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %at_1 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %at_2 = tt.expand_dims %at_1 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %at_3 = arith.muli %at_2, %at : tensor<64x1xi32>
    %at_4 = tt.splat %y_ptr : !tt.ptr<f32> -> tensor<64x1x!tt.ptr<f32>>
    %at_5 = tt.addptr %at_4, %at_3 : tensor<64x1x!tt.ptr<f32>>, tensor<64x1xi32>
    %at_6 = tt.expand_dims %at_1 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %at_7 = tt.broadcast %at_5 : tensor<64x1x!tt.ptr<f32>> -> tensor<64x64x!tt.ptr<f32>>
    %at_8 = tt.broadcast %at_6 : tensor<1x64xi32> -> tensor<64x64xi32>
    %at_9 = tt.addptr %at_7, %at_8 : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    scf.for %start = %c0_i32 to %rows step %c64_i32  : i32 {
      %x = tt.descriptor_load %x_desc[%start, %c0_i32] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
      %y = tt.dot %x, %w, %cst_0, inputPrecision = tf32 : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      %0 = tt.atomic_rmw fadd, acq_rel, gpu, %at_9, %y, %cst : (tensor<64x64x!tt.ptr<f32>>, tensor<64x64xf32>, tensor<64x64xi1>) -> tensor<64x64xf32>
    }
    tt.return
  }
}
"""  # noqa: E501
"""Every step adds its product to the same tile."""
