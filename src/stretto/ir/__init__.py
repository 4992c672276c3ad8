"""MLIR in and out: the nv_tileas dialect, its reader and writer, and the passes."""
