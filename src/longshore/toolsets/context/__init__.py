"""The context graph: a project memory of nodes, dated observations, typed edges and their sources, and its search."""
