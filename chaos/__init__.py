"""Crash tests: processes are killed with SIGKILL at chosen points, and what was charged is counted
from outside."""
