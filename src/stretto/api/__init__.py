"""The front door: plain functions over raw loops and names of machines.

    read ──► Loop ──► bounds | schedule | explain            each prepares what it is given
                        │
                        └──► verify | materialize | simulate ──► write

    reading        any format to loops             problem        what every function is given
    bounding       `bounds`                        results        what every result can do
    scheduling     `schedule`                      given          schedules from elsewhere
    explaining     `explain`                       writing        `write`
    verifying      `verify`
    materializing  `materialize`
    simulating     `simulate`

A result is that of the layer below, with its problem beside it: it has the same attributes, and
can print itself (`report`), as JSON too (`to_json`). The names stand in `stretto` itself, where
each is loaded when it is first used.
"""
