# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""The fragments of a dispersed file: the arithmetic of the erasure code, and the counters in xattrs of the bricks."""
import os
import struct

CHUNK = 512
PLANE = 64


# A chunk is a list of 8 integers: the planes. Multiplication by x moves the planes up.

def multiply(a, b):
    total = 0
    while b:
        total ^= a if b & 1 else 0
        a = a << 1 ^ (0x11d if a & 0x80 else 0)
        b >>= 1
    return total


def inverse(a):
    return next(b for b in range(1, 256) if multiply(a, b) == 1)


def scale(planes, factor):
    out = [0] * 8
    for bit in range(8):
        product = multiply(factor, 1 << bit)
        for to in range(8):
            if product >> to & 1:
                out[to] ^= planes[bit]
    return out


def row(data, index):
    powers = [1]
    for _ in range(data - 1):
        powers.append(multiply(powers[-1], index + 1))
    return powers[::-1]


def inverted(rows):
    n = len(rows)
    m = [list(r) + [int(i == k) for k in range(n)] for i, r in enumerate(rows)]
    for c in range(n):
        pivot = next(r for r in range(c, n) if m[r][c])
        m[c], m[pivot] = m[pivot], m[c]
        factor = inverse(m[c][c])
        m[c] = [multiply(v, factor) for v in m[c]]
        for r in range(n):
            if r != c and m[r][c]:
                factor = m[r][c]
                m[r] = [v ^ multiply(w, factor) for v, w in zip(m[r], m[c])]
    return [r[n:] for r in m]


def planes_of(chunk):
    return [int.from_bytes(chunk[64 * b:64 * b + 64], "little") for b in range(8)]


def combine(chunks, factors):
    out = [0] * 8
    for planes, factor in zip(chunks, factors):
        if factor:
            out = [a ^ b for a, b in zip(out, scale(planes, factor))]
    return out


def bad_stripe(fragments, data):
    """The first stripe whose further fragments are not those of the first K."""
    back = inverted([row(data, i) for i in range(data)])
    rows = [row(data, i) for i in range(data, len(fragments))]
    # each further fragment as a sum of the first K
    factors = [[0] * data for _ in rows]
    for i, r in enumerate(rows):
        for k in range(data):
            for j in range(data):
                factors[i][k] ^= multiply(r[j], back[j][k])
    for at in range(0, len(fragments[0]), CHUNK):
        first = [planes_of(f[at:at + CHUNK]) for f in fragments[:data]]
        for i, f in enumerate(factors):
            if combine(first, f) != planes_of(fragments[data + i][at:at + CHUNK]):
                return at // CHUNK
    return None


def words(path, name):
    try:
        value = os.getxattr(path, "trusted.ec." + name, follow_symlinks=False)
    except OSError:
        return ()
    return struct.unpack(f">{len(value) // 8}Q", value)


def fault_of(paths, redundancy):
    """Returns the fault of the fragments of one file, whose counters are equal, or None."""
    data = len(paths) - redundancy
    size = (words(paths[0], "size") or (0,))[0]
    length = (size + data * CHUNK - 1) // (data * CHUNK) * CHUNK
    fragments = []
    for path in paths:
        with open(path, "rb") as file:
            fragments.append(file.read())
    if any(len(fragment) != length for fragment in fragments):
        return f"size {size}: fragments of {[len(fragment) for fragment in fragments]} bytes, not {length}"
    stripe = bad_stripe(fragments, data)
    return None if stripe is None else f"stripe {stripe} of {size} bytes: the fragments do not belong together"
