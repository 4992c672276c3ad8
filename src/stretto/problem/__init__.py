"""A prepared loop compiled once for all solvers: graph, longest paths, holds, rooms, fusion."""

from stretto.problem.compiled import Compiled, compile_loop
from stretto.problem.fusion import Class, Fusion, FusionClass, fusion_class
from stretto.problem.graph import Arc, Edge, Graph, dependence_graph, strong_components
from stretto.problem.holds import Claim, Hold, Holds
from stretto.problem.rooms import Room, Rooms

__all__ = [
    "Arc",
    "Claim",
    "Class",
    "Compiled",
    "Edge",
    "Fusion",
    "FusionClass",
    "Graph",
    "Hold",
    "Holds",
    "Room",
    "Rooms",
    "compile_loop",
    "dependence_graph",
    "fusion_class",
    "strong_components",
]
