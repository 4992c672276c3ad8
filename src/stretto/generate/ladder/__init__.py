"""What is tried at one II, cheap rungs first, and the serial schedule that is always at hand.

climb                       the rungs in order, until one gives a placement whose rings fit
rau                         the first rung: seating by cycle, pushing out what is in the way
rings                       do the rings fit, and if not: cap them, move fillers later
attempt                     what a rung came to: a placement, or why not
serial                      one operation after the other: no search
"""
