// pass tileas-axis-analysis crashed: IndexError: tuple index out of range
//   at _crashing (chunks.py:331)
//   at _pass (chunks.py:277)
//   at apply (axis_analysis.py:37)
//   at axes (addresses.py:45)
//   at __get__ (functools.py:1001)
//   at _functions (addresses.py:53)
//   at analysed_kernels (functions.py:77)
//   at <genexpr> (functions.py:77)
//   at kernel (functions.py:123)
//   at _block (functions.py:174)
//   at <listcomp> (functions.py:174)
//   at _operation (functions.py:190)
//   at _said (functions.py:222)
//   at _constant (functions.py:247)
//   at is_splat (builtin.py:3441)
// Run it again: stretto-opt --run-reproducer FILE
builtin.module {
  func.func @odd(%p: !nv_tileas.ptr<f16>, %n: i32, %c: i1, %i: index) {
    %z = arith.constant 0 : i32
    %s = arith.constant 70 : i32
    %a = arith.shli %n, %s : i32
    %b = arith.shrsi %n, %z : i32
    %d = arith.divsi %n, %z : i32
    %r = arith.remsi %n, %z : i32
    %u = arith.ceildivsi %n, %z : i32
    %v = "arith.index_castui"(%i) : (index) -> i32
    %w = arith.trunci %n : i32 to i8
    %x = arith.extui %w : i8 to i64
    %k = arith.constant dense<[1, 2]> : tensor<2xi32>
    %e = arith.constant dense<> : tensor<0xi32>
    %q = scf.while (%t = %n) : (i32) -> i32 {
      scf.condition(%c) %t : i32
    } do {
    ^bb0(%t_1: i32):
      scf.yield %t_1 : i32
    }
    %y = scf.execute_region -> (i32) {
      scf.yield %n : i32
    }
    func.return
  }
}

{-#
  external_resources: {
    mlir_reproducer: {
      pipeline: "builtin.module(tileas-axis-analysis)",
      disable_threading: false,
      verify_each: true
    }
  }
#-}
