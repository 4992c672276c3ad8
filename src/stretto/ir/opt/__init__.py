"""`stretto-opt`: reads MLIR, runs passes on it, prints it. An `mlir-opt` for tile loops."""
