"""Tables, ablation and studies of the paper under one protocol: rows, cells, tables and figures."""
