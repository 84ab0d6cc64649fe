"""The program of a pod: it works until Kubernetes ends it, and ends its steps before it goes."""

from graph import graph

from dapr_runners.langgraph import DaprWorkflowGraphRunner

DaprWorkflowGraphRunner(graph=graph, name="simple_graph").serve()
