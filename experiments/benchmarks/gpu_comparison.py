"""Compares training with PyTorch in node steps per second. Both programs stay on the GPU."""

from __future__ import annotations

import statistics
import time

from gpu_shell import StageError, Record, LineServer, one_line

PAIRS, STEPS_PER_CALL = 9, 32
BASELINES = {
    "mlp64": ("mlp64_loop", "mlp64_bmm", "mlp64_vmap"),
    "mlp1": ("mlp1",),
    "cnn1": ("cnn1",),
}

Rates = dict[str, list[float]]
Problems = dict[str, str]


class TrainingComparison:
    """Measures our program and the PyTorch baselines alternately."""

    def __init__(
        self, ours: LineServer, theirs: LineServer | str, end: float, quick: bool = False
    ) -> None:
        """`theirs`: the server of the baselines, or the reason why there is none.

        `end`: the deadline by time.monotonic().
        """
        self.ours, self.theirs, self.end = ours, theirs, end
        self.side_seconds, self.pairs, self.steps = (
            (0.002, 3, 2) if quick else (0.25, PAIRS, STEPS_PER_CALL)
        )
        self.how: dict[str, str] = {}

    def all(self) -> list[Record]:
        records: list[Record] = []
        for workload, baselines in BASELINES.items():
            try:
                records += self.compare(workload, baselines)
            except StageError as error:
                records.append({"record": "failed", "id": workload, "reason": str(error)})
        return [*records, self.alone("copy", "bytes/s"), self.alone("product", "flop/s")]

    def measure_ours(self, workload: str, steps: int) -> float:
        return self.ours.request(
            f"{workload} {steps} {self.side_seconds}", max(1.0, self.end - time.monotonic())
        )

    def measure_baseline(self, baseline: str) -> float:
        if isinstance(self.theirs, str):
            raise StageError(self.theirs)
        rate = self.theirs.request(
            f"{baseline} {self.side_seconds}", max(1.0, self.end - time.monotonic())
        )
        self.how[baseline] = str(self.theirs.last.get("how", ""))
        return rate

    def compare(self, workload: str, baselines: tuple[str, ...]) -> list[Record]:
        rates: Rates = {}
        names = {
            "many": lambda: self.measure_ours(workload, self.steps),
            "single": lambda: self.measure_ours(workload, 1),
            **{
                baseline: (lambda baseline=baseline: self.measure_baseline(baseline))
                for baseline in baselines
            },
        }
        problems: Problems = {}
        for pair in range(-1, self.pairs):  # the first pair is a warm-up
            if pair > 0 and time.monotonic() > self.end - 5:
                break
            for name in list(names) if pair % 2 == 0 else reversed(list(names)):
                if name in problems:
                    continue
                try:
                    rate = names[name]()
                except StageError as error:
                    problems[name] = one_line(error)
                    continue
                if pair >= 0:
                    rates.setdefault(name, []).append(rate)
        return self.records(workload, baselines, rates, problems)

    def records(
        self, workload: str, baselines: tuple[str, ...], rates: Rates, problems: Problems
    ) -> list[Record]:
        rows = []
        batched = [baseline for baseline in baselines if baseline != "mlp64_loop"]
        present = [
            baseline for baseline in batched if baseline in rates and baseline not in problems
        ]
        better = max(
            present, key=lambda baseline: statistics.median(rates[baseline]), default=batched[0]
        )
        rows.append(
            self.row(
                "mlp64_batched" if workload == "mlp64" else workload,
                "many",
                better,
                rates,
                problems,
            )
        )
        rows.append(self.row(f"{workload}_single", "single", better, rates, problems))
        if workload == "mlp64":
            rows.append(self.row("mlp64_loop", "many", "mlp64_loop", rates, problems))
            others = [
                f"{baseline} {statistics.median(rates[baseline]):,.0f} steps/s"
                for baseline in present
                if baseline != better
            ]
            others += [
                f"{baseline}: {problems[baseline]}" for baseline in batched if baseline in problems
            ]
            if others and rows[0]["record"] == "pairs":
                rows[0]["note"] += f"; {'; '.join(others)}"
        return rows

    def row(self, name: str, side: str, baseline: str, rates: Rates, problems: Problems) -> Record:
        ours, theirs = rates.get(side, []), rates.get(baseline, [])
        if not ours or side in problems:
            return {
                "record": "failed",
                "id": name,
                "reason": problems.get(side, "the time was over"),
            }
        if not theirs or baseline in problems:
            return {
                "record": "rates",
                "id": name,
                "ours": ours,
                "missing": problems.get(baseline, "the time was over before the baseline"),
            }
        count = min(len(ours), len(theirs))
        return {
            "record": "pairs",
            "id": name,
            "unit": "steps/s",
            "ours": ours[:count],
            "theirs": theirs[:count],
            "note": f"{baseline}: {self.how.get(baseline, '')}, {count} pairs",
        }

    def alone(self, baseline: str, unit: str) -> Record:
        try:
            rates = [self.measure_baseline(baseline) for _ in range(3)]
            return {"record": "rates", "id": f"torch_{baseline}", "unit": unit, "ours": rates}
        except StageError as error:
            return {"record": "failed", "id": f"torch_{baseline}", "reason": str(error)}
