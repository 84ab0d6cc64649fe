"""The program of the matrix, in each framework: ``run(trial)`` is a whole program. It begins, or
goes on with what an earlier process left, as the framework's manual says."""
