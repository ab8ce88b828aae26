"""What every other room uses: errors, disk cache, paths, memory, comparison and the limits of a launch."""
