// The examples that ship: every loop gets a schedule, which the verifier accepts from its attributes
// alone, in either form.

// RUN: stretto-opt %examples/four_op.mlir -p tileas-generate-schedule,tileas-verify-schedule --remarks-filter=Scheduled -o %t && filecheck %s --check-prefix=FOUR --input-file %t
// RUN: stretto-opt %examples/gemm.mlir -p tileas-generate-schedule,tileas-verify-schedule --mlir-print-op-generic | stretto-opt --tileas-verify-schedule --remarks-filter='^Passed' 2>&1 >/dev/null | filecheck %s
// RUN: stretto-opt %examples/attention_forward.mlir -p tileas-generate-schedule,tileas-verify-schedule | stretto-opt --tileas-verify-schedule --remarks-filter='^Passed' 2>&1 >/dev/null | filecheck %s
// RUN: stretto-opt %examples/attention_backward.mlir -p tileas-generate-schedule,tileas-verify-schedule | stretto-opt --tileas-verify-schedule --remarks-filter='^Passed' 2>&1 >/dev/null | filecheck %s
// RUN: stretto-opt %examples/layernorm.mlir -p tileas-generate-schedule,tileas-verify-schedule | stretto-opt --tileas-verify-schedule --remarks-filter='^Passed' 2>&1 >/dev/null | filecheck %s

// FOUR: nv_tile.aws.ii = 15 : i64

// CHECK:     remark: {{.*}}: legal on {{.*}}: II {{[0-9]+}}
// CHECK-NOT: {{error|warning}}
