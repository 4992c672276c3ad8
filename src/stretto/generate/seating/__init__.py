"""One seat after the other on a placement in the making: who may sit where, and which is best.

partial, reach      what is seated, and the windows it leaves everybody else
gates               the four questions before every seat, and what to do about a no
arms, orders, fusing    ways to propose the next seat
cost, evaluators    what a placement with that seat is worth
"""
