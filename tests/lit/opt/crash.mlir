// A pass that ends in an exception: no traceback, but a file that makes it happen again. (xDSL's pass
// that runs mlir-opt raises ValueError when there is none, and so is a crash as good as any.)

// RUN: rm -rf %t && mkdir %t && cd %t && not stretto-opt %s -p 'cse,mlir-opt{executable=no-such-tool},cse' 2> err
// RUN: filecheck %s --check-prefix=ERROR --input-file %t/err
// RUN: filecheck %s --check-prefix=KEPT --input-file %t/stretto-opt-reproducer.mlir
// RUN: cd %t && not stretto-opt --run-reproducer stretto-opt-reproducer.mlir --mlir-pass-pipeline-crash-reproducer=again.mlir 2>&1 | filecheck %s --check-prefix=REFUSED
// RUN: cd %t && not stretto-opt stretto-opt-reproducer.mlir -p 'mlir-opt{executable=no-such-tool}' --mlir-pass-pipeline-crash-reproducer=again.mlir 2>&1 | filecheck %s --check-prefix=AGAIN
// RUN: diff %t/stretto-opt-reproducer.mlir %t/again.mlir
// RUN: stretto-opt %t/again.mlir | filecheck %s --check-prefix=IGNORED
// RUN: not stretto-opt --run-reproducer %s 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not stretto-opt --run-reproducer %s --cse 2>&1 | filecheck %s --check-prefix=TWO
// RUN: not stretto-opt %s -p 'mlir-opt{executable=no-such-tool}' --mlir-pass-pipeline-crash-reproducer=%t/no/folder.mlir 2>&1 | filecheck %s --check-prefix=NOWHERE

func.func @twice(%a: i32) -> (i32, i32) {
  %b = arith.addi %a, %a : i32
  %c = arith.addi %a, %a : i32
  func.return %b, %c : i32, i32
}

// ERROR-NOT:  Traceback
// ERROR:      crash.mlir: error: pass mlir-opt crashed: ValueError: no-such-tool is not available
// ERROR-NEXT: crash.mlir: note: a reproducer is in stretto-opt-reproducer.mlir; please report it

// KEPT:       // pass mlir-opt crashed: ValueError: no-such-tool is not available
// KEPT:       // at apply (mlir_opt.py:
// KEPT:       builtin.module {
// KEPT-NOT:   %c = arith.addi
// KEPT:       func.return %b, %b
// KEPT:       {-#
// KEPT-NEXT:    external_resources: {
// KEPT-NEXT:      mlir_reproducer: {
// KEPT-NEXT:        pipeline: "builtin.module(mlir-opt{executable=no-such-tool})",
// KEPT-NEXT:        disable_threading: false,
// KEPT-NEXT:        verify_each: true

// REFUSED:      error: pass pipeline: `mlir-opt` is not run from a file, since it is not known to start no process
// REFUSED-SAME: -p
// REFUSED-NEXT: builtin.module(mlir-opt{executable=no-such-tool})
// REFUSED-NOT:  crashed

// AGAIN: stretto-opt-reproducer.mlir: error: pass mlir-opt crashed
// AGAIN: note: a reproducer is in again.mlir

// IGNORED: func.return %b, %b

// NONE: crash.mlir: error: no pass pipeline in it; it is no reproducer

// TWO: stretto-opt: error: --run-reproducer brings its own pass pipeline

// NOWHERE: note: there is no reproducer: cannot write {{.*}}folder.mlir: No such file or directory
