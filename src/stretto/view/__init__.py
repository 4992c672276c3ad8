"""What if? The viewer with a server behind it, on this machine and for this user alone.

    browser ──► server ──► Workshop ──► read, settings, tiles, pins, schedule, verify
      drag an operation      check      the verifier's own words
      change a number        solve      bound, schedule and prediction anew
      save                   save       a machine, pins, a schedule or the loop, as text

    change     what a page asks to be different: `Change`
    tiles      extents of a loop's tiles, and the loop with another one
    workshop   one input, and the answers about it
    server     HTTP on the loopback interface

A page sends all of its changes with every question, and the server keeps none: two tabs do not
meet, a closed one leaves nothing behind, and undo is the page's own memory. No rule of scheduling
stands here or in the page.
"""
