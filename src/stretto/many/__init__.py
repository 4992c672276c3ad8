"""Many loops at once: batches of files, on the processes of one machine or on a cluster.

inputs ──► work units ──► executor ──► rows as they come ──► a journal, a table
                             │
                          store: a loop that was solved once is not solved again
"""
