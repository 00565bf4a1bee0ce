"""SASS, NVIDIA's machine code, executed for single warps without a device.

`listing` reads what nvdisasm prints, `operations` computes single instructions for the 32 lanes of
a warp, `warp` runs a warp from its first instruction to EXIT and traces what it does.
"""
