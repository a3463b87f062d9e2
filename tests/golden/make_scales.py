"""scale_thresholds.txt: the E8M0 scale rules, completely.

For a given element and rule the byte never falls as amax grows, so the smallest binary32 amax that reaches each byte says
everything. Found by bisection over bit patterns in exact arithmetic. One line each: element, rule, byte, binary32 bits.
"""
import gfloat
import numpy as np

import oracles
import reference

TOP = 0x7F7FFFFF  # FLT_MAX


def thresholds(e, rule):
    low = 0
    highest = reference.scale_byte(e, reference.from_bits(TOP), rule)
    for byte in range(1, highest + 1):
        a, b = low, TOP  # the byte at a is below `byte`, the byte at b is not
        while b - a > 1:
            middle = (a + b) // 2
            if reference.scale_byte(e, reference.from_bits(middle), rule) >= byte:
                b = middle
            else:
                a = middle
        yield byte, b
        low = b - 1


def check_against_others(e, rule, first):
    """The same rule as others write it, in binary32: RCEIL as the exponent of a * fl(1/max) rounded up (torchao, Transformer
    Engine), FLOOR by gfloat, EVEN by the addition of half an element ulp to the bits (torchao). Compared at every threshold
    whose byte is at least 2; below, the binary32 quotient is subnormal and the shortcuts are known to round."""
    points = np.array(sorted({b + d for b in first for d in (-1, 0, 1)}), dtype=np.uint32)
    points = points[points <= TOP]
    expected = np.array([reference.scale_byte(e, reference.from_bits(int(p)), rule) for p in points])
    a = points.view(np.float32)
    if rule == "rceil":
        q = (a * (np.float32(1) / np.float32(float(e.max)))).view(np.uint32)
        other = (q >> 23) + ((q & 0x7FFFFF) != 0)
    elif rule == "floor":
        other = np.array([np.log2(gfloat.compute_scale_amax(e.emax, np.array([float(v)]))) + 127 for v in a])
    elif rule == "even":
        rounded = points + np.uint32(1 << (23 - e.mantissa_bits - 1))
        other = (rounded >> 23).astype(int) - e.emax
    else:
        other = (points >> 23).astype(int) + ((points & 0x7FFFFF) != 0) - e.emax
    compared = expected >= 2
    assert np.array_equal(expected[compared], other[compared].astype(int)), (e.name, rule)


with open("scale_thresholds.txt", "w") as out:
    out.write("# element rule byte smallest-amax-that-reaches-it\n")
    for e in reference.ELEMENTS:
        for rule in reference.RULES:
            table = list(thresholds(e, rule))
            check_against_others(e, rule, [b for _, b in table])
            for byte, bits in table:
                out.write(f"{e.name} {rule} {byte} {bits:08x}\n")
