// Two reads of one bank share a hold: at II 4 there is room for one hold of 4 cycles. Groups go by
// names; members keep theirs as an attribute, so that a tool which renames values does no harm.

// RUN: stretto-opt %s -p tileas-generate-schedule,tileas-verify-schedule > %t && filecheck %s --input-file %t
// RUN: stretto-opt %t --tileas-generate-schedule | diff - %t
// RUN: sed -e 's/%%read/%%renamed/g' %t | stretto-opt --tileas-verify-schedule --remarks-filter=. 2>&1 | filecheck %s --check-prefix=RENAMED
// RUN: stretto-opt %s --tileas-generate-schedule='fuse=false' --tileas-verify-schedule | filecheck %s --check-prefix=APART

// CHECK:      %read_a = {{.*}}stretto.name = "read_a", {{.*}}nv_tile.aws.start = [[START:[0-9]+]] : i64}
// CHECK:      %read_b = {{.*}}stretto.name = "read_b", {{.*}}nv_tile.aws.start = [[START]] : i64}
// CHECK:      nv_tile.aws.ii = 4 : i64
// CHECK-SAME: nv_tile.aws.fused = [["read_a", "read_b"]]

// RENAMED: remark: f: legal on blackwell: II 4
// RENAMED: %renamed_a

// APART:     nv_tile.aws.ii = 8 : i64
// APART-NOT: nv_tile.aws.fused
func.func @f(%n: index) {
  scf.for %i = %n to %n step %n {
    %load = nv_tileas.generic "load"() {stretto.uses = [{slot = "tma", duration = 4}], stretto.latency = 6} : () -> i32
    %read_a = nv_tileas.generic "read"(%load) {stretto.facts = {bank = 0}, stretto.uses = [{slot = "tp_smem_rd", duration = 4}], stretto.latency = 2} : (i32) -> i32
    %read_b = nv_tileas.generic "read"(%load) {stretto.facts = {bank = 0}, stretto.uses = [{slot = "tp_smem_rd", duration = 4}], stretto.latency = 2} : (i32) -> i32
  }
  func.return
}
