// What became of every loop: as diagnostics, YAML or JSON; on stderr or in a file; filtered.

// RUN: stretto-opt %s -p 'tileas-generate-schedule{max-ii=8}' 2>&1 >/dev/null | filecheck %s --check-prefix=SILENT
// RUN: stretto-opt %s -p 'tileas-generate-schedule{max-ii=8}' --remarks-filter=. 2>&1 >/dev/null | filecheck %s --check-prefix=TOLD
// RUN: stretto-opt %s -p 'tileas-generate-schedule{max-ii=8},tileas-verify-schedule' --remarks-format=yaml 2>&1 >/dev/null | filecheck %s --check-prefix=YAML
// RUN: stretto-opt %s -p 'tileas-generate-schedule{max-ii=8},tileas-verify-schedule' --remarks-format=json --remarks-filter='^Missed .*generate.* slow:' --remarks-output-file=%t.json >/dev/null 2>&1
// RUN: filecheck %s --check-prefix=JSON --input-file %t.json
// RUN: stretto-opt %s -p 'tileas-generate-schedule{max-ii=8}' --remarks-output-file=%t.yaml -o %t.mlir && filecheck %s --check-prefix=FILE --input-file %t.yaml
// RUN: not stretto-opt %s --remarks-format=xml 2>&1 | filecheck %s --check-prefix=XML

// SILENT-NOT: remark:
// SILENT:     warning: slow: left alone

// TOLD:      remarks.mlir:{{[0-9]+}}:3: remark: fast: scheduled on blackwell: II 8 is the MII, limited by slot tma; 2 stages, cost-based
// TOLD-NEXT:   scf.for
// TOLD-NEXT:   ^
// TOLD:      remark: slow: left alone: no schedule exists up to II 8: below the MII 10 (resource bound: slot tma)

// YAML:      --- !Passed
// YAML-NEXT: Pass:      tileas-generate-schedule
// YAML-NEXT: Name:      Scheduled
// YAML-NEXT: DebugLoc:  { File: "{{.*}}remarks.mlir", Line: {{[0-9]+}}, Column: 3 }
// YAML-NEXT: Function:  "fast"
// YAML-NEXT: Loop:      "fast"
// YAML-NEXT: Message:   "scheduled on blackwell: II 8 is the MII, limited by slot tma;
// YAML-NEXT: Args:
// YAML-NEXT:   - II: 8
// YAML-NEXT:   - MII: 8
// YAML-NEXT:   - Limiter: "slot tma"
// YAML-NEXT:   - Stages: 2
// YAML-NEXT:   - Generator: "cost-based"
// YAML-NEXT:   - Machine: "blackwell"
// YAML-NEXT:   - Proof: "bound"
// YAML-NEXT: ...
// YAML-NEXT: --- !Missed
// YAML-NEXT: Pass:      tileas-generate-schedule
// YAML-NEXT: Name:      LeftAlone
// YAML:      Loop:      "slow"
// YAML-NEXT: Message:   "left alone: no schedule exists up to II 8
// YAML-NEXT: ...
// YAML-NEXT: --- !Passed
// YAML-NEXT: Pass:      tileas-verify-schedule
// YAML-NEXT: Name:      Legal
// YAML:      --- !Missed
// YAML-NEXT: Pass:      tileas-verify-schedule
// YAML:      Message:   "left alone: it has no schedule to verify"

// JSON:      {
// JSON-NEXT:   "schema": "stretto.remarks/1",
// JSON-NEXT:   "remarks": [
// JSON-NEXT:     {
// JSON-NEXT:       "kind": "Missed",
// JSON-NEXT:       "pass": "tileas-generate-schedule",
// JSON-NEXT:       "name": "LeftAlone",
// JSON-NEXT:       "location": {
// JSON:              "column": 3
// JSON:            "function": "slow",
// JSON-NEXT:       "loop": "slow",
// JSON-NEXT:       "message": "left alone: no schedule exists up to II 8
// JSON-NEXT:       "arguments": {}
// JSON-NEXT:     }
// JSON-NEXT:   ]

// FILE: --- !Passed
// FILE: --- !Missed

// XML: stretto-opt: error: argument --remarks-format: invalid choice: 'xml'

func.func @fast(%n: index) {
  scf.for %i = %n to %n step %n {
    %a = nv_tileas.generic "copy"() {stretto.uses = [{slot = "tma", duration = 8}], stretto.latency = 8} : () -> i32
    %b = nv_tileas.generic "use"(%a) {stretto.uses = [{slot = "tp_smem_rd", duration = 2}], stretto.latency = 2} : (i32) -> i32
  }
  func.return
}

func.func @slow(%n: index) {
  scf.for %i = %n to %n step %n {
    %a = nv_tileas.generic "copy"() {stretto.uses = [{slot = "tma", duration = 10}], stretto.latency = 8} : () -> i32
    %b = nv_tileas.generic "use"(%a) {stretto.uses = [{slot = "tp_smem_rd", duration = 2}], stretto.latency = 2} : (i32) -> i32
  }
  func.return
}
