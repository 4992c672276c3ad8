"""Between kernels as trees and kernels as modules.

Kernel (lowered) ──► writing ──► func.func in nv_tileas        kernel_module
func.func        ──► functions ──► Kernel                        kernels_of
"""
