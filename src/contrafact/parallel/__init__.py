"""Work in several processes: children that run tasks, and workers here or of a cluster."""
