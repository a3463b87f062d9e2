"""Reproducible binary32 patterns and hashes, written again in tests/formats/golden.hpp.

Storing the codes of millions of inputs would take megabytes. Instead both sides make the same inputs, and the golden
file holds one hash per chunk of 65,536 results, so that a mismatch still names the chunk it is in.
"""
import numpy as np

CHUNK = 65536
CHUNKS = 64  # 2^22 patterns


def splitmix64(seed: int, count: int) -> np.ndarray:
    """Values 0..count-1 of splitmix64 (Vigna) started at `seed`, as uint64."""
    gamma = 0x9E3779B97F4A7C15
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (np.arange(1, count + 1, dtype=np.uint64)) * np.uint64(gamma)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def random_binary32(seed: int) -> np.ndarray:
    """2^22 binary32 bit patterns. Even chunks are uniform over all patterns. Odd chunks have their exponent field folded
    into 95..158 (2^-32 to 2^31), where the narrow formats live; uniform patterns hit that range in one case of four."""
    bits = (splitmix64(seed, CHUNK * CHUNKS) >> np.uint64(32)).astype(np.uint32).reshape(CHUNKS, CHUNK)
    folded = (bits & np.uint32(0x807FFFFF)) | ((np.uint32(95) + ((bits >> np.uint32(23)) & np.uint32(63))) << np.uint32(23))
    bits[1::2] = folded[1::2]
    return bits


def fnv1a(rows: np.ndarray) -> list:
    """FNV-1a, 64 bits, of each row of a two-dimensional array, over its little-endian bytes."""
    data = np.ascontiguousarray(rows).view(np.uint8).reshape(rows.shape[0], -1)
    columns = np.ascontiguousarray(data.T).astype(np.uint64)
    state = np.full(rows.shape[0], 0xCBF29CE484222325, dtype=np.uint64)
    prime = np.uint64(0x100000001B3)
    with np.errstate(over="ignore"):
        for column in columns:
            state = (state ^ column) * prime
    return [int(s) for s in state]


def fnv1a_of(values: np.ndarray) -> int:
    return fnv1a(np.asarray(values).reshape(1, -1))[0]
