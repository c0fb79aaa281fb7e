"""Many runs under one protocol: tuning on held-out classes, and the tables and figures of the paper."""
