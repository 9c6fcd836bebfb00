"""How fast is encoding, compared with the model's forward pass? Ratios from one run, since machines are noisy.

    OMP_NUM_THREADS=1 python benchmarks/encode.py [--rounds 9] [--rows 256]

"Forward" is the model alone on the same batches, tokenised, decoded and padded beforehand: nothing that uses this
model can be faster. "Encode" starts from texts or JPEG bytes and ends with features in an empty cache on disk.
Both are timed in every round, in alternating order. The ratio is the median over rounds of forward time / encode
time: 1.0 is as fast as the model, 0.9 within 10 % of it. Processor time counts all threads, also those that read
and decode while the model computes. "Cached" is the second run.
"""

from __future__ import annotations

import argparse
import csv
import os
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from openset.features import ImageEncoder, TextEncoder
from openset.features.base import Encoder
from openset.features.encode import encode

DATA = Path(__file__).parents[2] / "shared" / "data"


def bare_forward(encoder: Encoder, items: Sequence[Any], batch_size: int) -> Callable[[], None]:
    """The model alone, on prepared batches."""
    ready = [
        {name: torch.from_numpy(array) for name, array in batch.inputs.items()}
        for batch in encoder.batches(items, range(len(items)), batch_size)
    ]
    if isinstance(encoder, TextEncoder):
        model = encoder._model
    else:
        model = lambda pixel_values: encoder._loaded.features(pixel_values)  # noqa: E731

    def run() -> None:
        with torch.inference_mode():
            for inputs in ready:
                model(**inputs)

    return run


def seconds(work: Callable[[], object]) -> NDArray[np.float64]:
    """Wall time, and processor time of all threads."""
    start = np.array([time.perf_counter(), time.process_time()])
    work()
    return np.array([time.perf_counter(), time.process_time()]) - start


def compare(title: str, encoder: Encoder, items: Sequence[Any], batch_size: int, rounds: int) -> None:
    forward = bare_forward(encoder, items, batch_size)
    alone, whole, cached = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(-1, rounds):  # the first round warms up
            cache = Path(folder) / str(turn)

            def encoding(cache: Path = cache) -> None:
                encode(items, encoder, batch_size=batch_size, cache=cache, progress=False)

            order = [forward, encoding] if turn % 2 else [encoding, forward]
            times = {work: seconds(work) for work in order}
            if turn >= 0:
                alone.append(times[forward])
                whole.append(times[encoding])
                cached.append(seconds(encoding)[0])
    ratios = np.array(alone) / np.array(whole)
    wall, processor = np.median(ratios, axis=0)
    low, high = np.quantile(ratios[:, 0], [0.25, 0.75])
    rate = len(items) / np.median(np.array(whole)[:, 0])
    print(
        f"{title:32} {len(items):4d} rows {rate:7.1f} rows/s   forward/encode: wall {wall:.3f} "
        f"(quartiles {low:.3f}–{high:.3f}), processor {processor:.3f}   cached {np.median(cached) * 1e3:.0f} ms",
        flush=True,
    )


def text_column(folder: str, file: str, rows: int) -> list[str]:
    import pyarrow.parquet as pq

    texts = pq.read_table(DATA / folder / file, columns=["text"])["text"].to_pylist()
    return [texts[i] for i in np.random.default_rng(0).choice(len(texts), rows, replace=False)]


def scenes(rows: int) -> list[bytes]:
    folder = DATA / "sun_scenes"
    with (folder / "index.csv").open() as index, zipfile.ZipFile(folder / "images.zip") as archive:
        files = [row["file"] for row in csv.DictReader(index)]
        return [archive.read(files[i]) for i in np.random.default_rng(0).choice(len(files), rows, replace=False)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rows", type=int, default=256)
    options = parser.parse_args()
    threads, load = torch.get_num_threads(), os.getloadavg()[0]
    print(f"torch {torch.__version__}, {threads} thread(s), {options.rounds} rounds, machine load {load:.1f}")
    rows, few, rounds = options.rows, options.rows // 4, options.rounds
    text, image = TextEncoder(), ImageEncoder()
    compare("MiniLM, short queries", text, text_column("clinc150", "queries.parquet", rows), 32, rounds)
    compare(
        "MiniLM, reviews (128 tokens)", text, text_column("amazon_reviews", "reviews.parquet", few), 16, rounds
    )
    compare("EfficientNet-Lite0, JPEG scenes", image, scenes(few), 16, rounds)


if __name__ == "__main__":
    main()
