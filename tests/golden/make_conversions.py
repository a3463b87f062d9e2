"""from16.txt, boundaries.txt, random.txt: conversions to every element format, and to bf16 and half.

from16.txt     all 65,536 bf16 and all 65,536 half patterns to every element: one line per run of patterns with equal codes.
boundaries.txt every rounding boundary of every element, both signs, with the binary32 values one ulp to either side.
random.txt     2^22 binary32 patterns per target (patterns.py), and every boundary of bf16 and half: one hash per chunk.
"""
import numpy as np

import oracles
import patterns
import reference

NAMES = [e.name for e in reference.ELEMENTS]


def from16():
    every = np.arange(65536, dtype=np.uint16)
    with open("from16.txt", "w") as out:
        out.write("# source target first-pattern code, until the next line\n")
        for source, widen in (("bf16", oracles.from_bf16), ("half", oracles.from_half)):
            x = widen(every).astype(np.uint32).view(np.float32)
            for name in NAMES:
                codes = oracles.encode(name, x)
                starts = [0] + [int(i) for i in np.flatnonzero(np.diff(codes.astype(int))) + 1]
                for start in starts:
                    out.write(f"{source} {name} {start:04x} {codes[start]:02x}\n")


def boundary_patterns(e):
    """Midpoints between neighbouring magnitudes, the values themselves, the midpoint above the largest; +-1 ulp, both signs."""
    magnitudes = [reference.decode(e, c) for c in range(e.max_code + 1)]
    points = list(magnitudes) + [(a + b) / 2 for a, b in zip(magnitudes, magnitudes[1:])]
    points.append(e.max + (magnitudes[-1] - magnitudes[-2]) / 2)
    bits = set()
    for point in points:
        centre = reference.to_bits(point)
        bits.update(b for b in (centre - 1, centre, centre + 1) if b >= 0)
    bits.update((0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF, 1, 0x007FFFFF, 0x00800000))
    return np.array(sorted(bits) + sorted(b | 0x80000000 for b in bits), dtype=np.uint32)


def boundaries():
    with open("boundaries.txt", "w") as out:
        out.write("# target binary32 code\n")
        for e in reference.ELEMENTS:
            bits = boundary_patterns(e)
            codes = oracles.encode(e.name, bits.view(np.float32))
            for b, code in zip(bits, codes):
                if not np.isnan(np.uint32(b).view(np.float32)):
                    assert reference.encode(e, reference.from_bits(int(b))) == code, (e.name, hex(b))
                out.write(f"{e.name} {b:08x} {code:02x}\n")


def random():
    with open("random.txt", "w") as out:
        out.write("# target seed-or-set chunk fnv1a\n")
        for seed, name in enumerate(NAMES, start=1):
            bits = patterns.random_binary32(seed)
            codes = oracles.encode(name, bits.view(np.float32)).reshape(bits.shape)
            for chunk, value in enumerate(patterns.fnv1a(codes)):
                out.write(f"{name} {seed} {chunk} {value:016x}\n")
        for seed, (name, convert) in enumerate((("bf16", oracles.to_bf16), ("half", oracles.to_half)), start=6):
            bits = patterns.random_binary32(seed)
            codes = convert(bits.view(np.float32)).astype("<u2").reshape(bits.shape)
            for chunk, value in enumerate(patterns.fnv1a(codes)):
                out.write(f"{name} {seed} {chunk} {value:016x}\n")
        # Boundaries of the 16-bit types: a chunk holds every upper part with one pattern of the bits that are rounded away.
        for chunk, low in enumerate((0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)):
            bits = (np.arange(65536, dtype=np.uint32) << np.uint32(16)) + np.uint32(low)
            out.write(f"bf16 boundary {chunk} {patterns.fnv1a_of(oracles.to_bf16(bits.view(np.float32)).astype('<u2')):016x}\n")
        for chunk, low in enumerate((0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF)):
            bits = (np.arange(1 << 19, dtype=np.uint32) << np.uint32(13)) + np.uint32(low)
            out.write(f"half boundary {chunk} {patterns.fnv1a_of(oracles.to_half(bits.view(np.float32)).astype('<u2')):016x}\n")
        # Half subnormals: k * 2^-25 and its neighbours, k = 0..2049, so every boundary below 2^-14.
        centre = (np.arange(2050, dtype=np.float32) * np.float32(2.0**-25)).view(np.uint32)
        for chunk, step in enumerate((0, 1, 2)):
            bits = np.maximum(centre, np.uint32(1)) + np.uint32(step) - np.uint32(1)
            out.write(f"half subnormal {chunk} {patterns.fnv1a_of(oracles.to_half(bits.view(np.float32)).astype('<u2')):016x}\n")


from16()
boundaries()
random()
