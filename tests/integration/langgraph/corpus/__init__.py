"""Graphs and scripts that use every feature of LangGraph, run plain and on the runner.

A case is a graph and a script that calls it. What the script observes, and how often each node
ran, must be the same on a plain compiled graph and on a runner of that graph.
"""
