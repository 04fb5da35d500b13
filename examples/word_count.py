"""A program whose time is Python's, not the GPU's: counting words in two ways.

`rooflint profile examples/word_count.py slow` names the hot lines and says that GPU tools
are not the next step; `fast` does the same work in C.
"""
import random
import re
import sys
import time
from collections import Counter

WORDS = ["kernel", "launch", "stream", "warp", "block", "grid", "occupancy", "memory"]


def make_lines(count):
    rng = random.Random(0)
    return [" ".join(rng.choices(WORDS, k=20)) + "." for _ in range(count)]


def clean(line):
    kept = ""
    for letter in line:
        kept += letter.lower() if letter.isalpha() else " "
    return kept


def count_slowly(lines):
    counts = {}
    for line in lines:
        for word in clean(line).split():
            counts[word] = counts.get(word, 0) + 1
    return counts


def count_fast(lines):
    return Counter(re.findall(r"[a-z]+", " ".join(lines).lower()))


def main():
    mode = sys.argv[1] if len(sys.argv) > 1 else "slow"
    lines = make_lines(400) * 50
    start = time.perf_counter()
    counts = count_slowly(lines) if mode == "slow" else count_fast(lines)
    elapsed = time.perf_counter() - start
    print(mode, f"{elapsed * 1e3:.0f} ms", sorted(counts.items())[:3])


if __name__ == "__main__":
    main()
