"""Parts as work for a Ray cluster: Ray Data hands each part to an actor that has the run loaded.

A part is the unit, not a batch of rows: it is written once and whole by one actor, with the batches and the
bytes that it has on one machine, and a part whose actor died is scored again from its start.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any

from openset.cluster.part_scorer import PartScorer
from openset.cluster.plan import Part
from openset.cluster.ray_cluster import cluster_cpus, ray_cluster


def score_on_ray(arguments: tuple[Any, ...], parts: Sequence[Part]) -> Iterator[None]:
    """Score the parts on the cluster, as many at the same time as it has CPUs; yield when one is done.

    ``arguments`` are those of :class:`~openset.cluster.part_scorer.PartScorer`.
    """
    with ray_cluster() as ray:
        import ray.data as ray_data

        logging.getLogger("ray.data").setLevel(logging.ERROR)  # it tells of every step
        ray_data.DataContext.get_current().enable_progress_bars = False
        dataset = ray_data.from_items([asdict(part) for part in parts], override_num_blocks=len(parts))
        done = dataset.map_batches(
            PartActor,
            fn_constructor_args=arguments,
            batch_size=1,
            batch_format="pyarrow",
            num_cpus=1,
            compute=ray_data.ActorPoolStrategy(size=min(len(parts), cluster_cpus(ray))),
        )
        for row in done.iter_rows():
            if row["error"]:
                raise (OSError if row["is_system"] else ValueError)(row["error"])
            yield


class PartActor:
    """A :class:`PartScorer` in a worker of Ray; errors of the data come back as rows, to be told once."""

    def __init__(self, *arguments: Any) -> None:
        self._scorer = PartScorer(*arguments)

    def __call__(self, batch: Any) -> Any:
        """Score the parts that the rows of a table name."""
        import pyarrow as pa

        names = [field.name for field in fields(Part)]
        rows = [self._scored(Part(**{name: row[name] for name in names})) for row in batch.to_pylist()]
        return pa.Table.from_pylist(rows)

    def _scored(self, part: Part) -> dict[str, Any]:
        try:
            self._scorer(part)
        except (ValueError, OSError) as error:
            is_system = isinstance(error, OSError) and not isinstance(error, FileNotFoundError)
            return {"part": part.out, "error": str(error) or type(error).__name__, "is_system": is_system}
        return {"part": part.out, "error": "", "is_system": False}
