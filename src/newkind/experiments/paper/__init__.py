"""The paper's tables, its ablation and its studies, under one protocol: cells that are run once, tables and figures."""
