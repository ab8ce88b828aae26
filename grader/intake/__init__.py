"""From what students handed in to answers by exercise, merged into notebooks of our own."""
