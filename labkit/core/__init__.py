"""What every other room uses: errors, the cache on disk, paths, memory, comparison, the limits of a
launch.
"""
