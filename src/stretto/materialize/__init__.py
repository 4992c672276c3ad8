"""From a finished analysis to a program: pipes, mutexes, expansion, agents. It never searches."""
