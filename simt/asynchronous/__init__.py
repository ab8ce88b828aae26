"""What the host does for warps that work asynchronously: mbarriers, barriers, clusters, bulk copies."""
