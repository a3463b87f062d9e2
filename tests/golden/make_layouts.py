"""layouts.txt, shuffles.txt, grouped.txt: where each scale lies, made by reshaping and transposing index arrays.

The headers hold closed formulas; here a padded array of indices is cut into the documented dimensions and transposed, as
the libraries that own these layouts do it, so the two can only agree by being right. An entry of an array is the logical
index (row * columns + column) + 1, or 0 for padding; a file line holds the hash of that array as little-endian uint32.
"""
import numpy as np

import patterns

ROWS = [1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 130, 200, 255, 256, 257, 300]
COLS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 33, 90, 92, 180]


def padded(rows, cols, row_unit, col_unit):
    up = lambda n, unit: -(-n // unit) * unit
    index = np.zeros((up(rows, row_unit), up(cols, col_unit)), dtype=np.uint32)
    index[:rows, :cols] = np.arange(1, rows * cols + 1, dtype=np.uint32).reshape(rows, cols)
    return index


def tcgen(rows, cols):
    """cuBLASLt 128x4, [row tile, column tile, 32, 4, 4]."""
    p = padded(rows, cols, 128, 4)
    r, c = p.shape
    return p.reshape(r // 128, 4, 32, c // 4, 4).transpose(0, 3, 2, 1, 4).reshape(-1)


def tile_8x4(rows, cols):
    p = padded(rows, cols, 8, 4)
    r, c = p.shape
    return p.reshape(r // 8, 8, c // 4, 4).transpose(0, 2, 1, 3).reshape(-1)


def cdna4(rows, cols):
    """[row / 32, column / 8, column % 4, row % 16, (column / 4) % 2, (row / 16) % 2]."""
    p = padded(rows, cols, 32, 8)
    r, c = p.shape
    return p.reshape(r // 32, 2, 16, c // 8, 2, 4).transpose(0, 3, 5, 2, 4, 1).reshape(-1)


def linear(rows, cols):
    return padded(rows, cols, 1, 1).reshape(-1)


LAYOUTS = {"linear": linear, "tcgen": tcgen, "cdna4": cdna4, "tile_8x4": tile_8x4}


def check_against_torchao():
    """torchao's own function for the 128x4 layout, when it is installed."""
    try:
        import torch
        from torchao.prototype.mx_formats.utils import to_blocked
    except ImportError:
        print("torchao is not installed: to_blocked not compared")
        return
    for rows in ROWS:
        for cols in COLS:
            mine = tcgen(rows, cols)
            theirs = to_blocked(torch.from_numpy(padded(rows, cols, 1, 1).astype(np.int32)))
            assert np.array_equal(mine, theirs.numpy().reshape(-1)), (rows, cols)
    print("tcgen: equal to torchao's to_blocked")


def layouts():
    with open("layouts.txt", "w") as out:
        out.write("# layout rows scale-columns bytes fnv1a\n")
        for name, make in LAYOUTS.items():
            for rows in ROWS:
                for cols in COLS:
                    placed = make(rows, cols)
                    out.write(f"{name} {rows} {cols} {placed.size} {patterns.fnv1a_of(placed.astype('<u4')):016x}\n")


def shuffles():
    """CDNA4 weight preshuffle: bytes [N, KB] as [N/16, KB/64, 4, 16, 16]."""
    with open("shuffles.txt", "w") as out:
        out.write("# rows row-bytes fnv1a\n")
        for rows in (16, 32, 48, 160):
            for row_bytes in (64, 128, 192, 1408):
                p = padded(rows, row_bytes, 1, 1)
                placed = p.reshape(rows // 16, 16, row_bytes // 64, 4, 16).transpose(0, 2, 3, 1, 4).reshape(-1)
                out.write(f"{rows} {row_bytes} {patterns.fnv1a_of(placed.astype('<u4')):016x}\n")


def grouped():
    """Grouped activations in tcgen: every slot's rows start on a fresh tile of 128. One `slots` line with the counts and the
    correction array, then the hash of the whole buffer for a number of scale columns (rows counted over all slots)."""
    cases = [[100, 200, 50], [128, 256, 128], [0, 5, 0, 0, 3, 0], [1, 31, 44, 130], [13, 999], [0, 0, 0], [127, 257, 513, 1025],
             [1] * 9, [128, 0, 1, 127, 129]]
    with open("grouped.txt", "w") as out:
        out.write("# slots counts... : row offsets... : a_scale_offsets...  |  columns tiles fnv1a\n")
        for counts in cases:
            offsets = np.concatenate([[0], np.cumsum(counts)]).astype(int)
            tiles = [-(-c // 128) for c in counts]
            starts = np.concatenate([[0], np.cumsum(tiles)]).astype(int)
            correction = [int(starts[e] - offsets[e] // 128) for e in range(len(counts))]
            text = lambda values: " ".join(str(int(v)) for v in values)
            out.write(f"slots {len(counts)} {text(counts)} : {text(offsets)} : {text(correction)}\n")
            for cols in (1, 4, 11, 90):
                parts = []
                for e, count in enumerate(counts):
                    if count == 0:
                        continue
                    piece = tcgen(count, cols).astype(np.uint32)
                    parts.append(np.where(piece > 0, piece + np.uint32(offsets[e] * cols), 0).astype("<u4"))
                buffer = np.concatenate(parts) if parts else np.zeros(0, dtype="<u4")
                out.write(f"columns {cols} {starts[-1]} {patterns.fnv1a_of(buffer):016x}\n")


check_against_torchao()
layouts()
shuffles()
grouped()
