// points
