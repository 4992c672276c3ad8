// RUN: not stretto-opt %s 2>&1 | filecheck %s --check-prefix=REFUSED
// RUN: stretto-opt %s --allow-unregistered-dialect | filecheck %s
// RUN: stretto-opt --show-dialects | filecheck %s --check-prefix=DIALECTS
// RUN: stretto-opt --list-passes | filecheck %s --check-prefix=PASSES
// RUN: stretto-opt --version | filecheck %s --check-prefix=VERSION
// RUN: stretto-opt --help | filecheck %s --check-prefix=HELP
// RUN: not stretto-opt %t.no-such-file 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: not stretto-opt --verify-each=perhaps %s 2>&1 | filecheck %s --check-prefix=PERHAPS
// RUN: not stretto-opt --remarks-filter='(' %s 2>&1 | filecheck %s --check-prefix=PATTERN

// CHECK: %x = "nobody.knows"() : () -> i32
%x = "nobody.knows"() : () -> i32

// REFUSED: unregistered.mlir:12:{{[0-9]+}}: error: {{.*}}nobody.knows
// REFUSED: ^

// DIALECTS: Available Dialects: {{.*}}arith, {{.*}}nv_tileas, {{.*}}scf

// PASSES: Stretto:
// PASSES:   --tileas-generate-schedule
// PASSES:     machine
// PASSES:     generator=auto
// PASSES:     fuse=true
// PASSES:   --tileas-verify-schedule
// PASSES: xDSL:
// PASSES:   --canonicalize

// VERSION: stretto-opt {{[0-9a-z.]+}} (xDSL 0.74.0)

// HELP: usage: stretto-opt
// HELP: --split-input-file
// HELP: --verify-diagnostics
// HELP: --remarks-filter REGEX

// MISSING: no-such-file: error: cannot be read: No such file or directory

// PERHAPS: stretto-opt: error: argument --verify-each: `perhaps` is neither true nor false

// PATTERN: stretto-opt: error: --remarks-filter: `(` is no pattern
