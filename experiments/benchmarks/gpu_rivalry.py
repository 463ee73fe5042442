"""Training in node steps per second, ours and PyTorch's in turn, both programs staying on the card."""

from __future__ import annotations

import statistics
import time

from gpu_shell import Failed, Record, Server, one_line

PAIRS, STEPS_PER_CALL = 9, 32
RIVALS = {"mlp64": ("mlp64_loop", "mlp64_bmm", "mlp64_vmap"), "mlp1": ("mlp1",), "cnn1": ("cnn1",)}

Figures = dict[str, list[float]]
Problems = dict[str, str]


class Rivalry:
    """Ours and theirs, measured in turn."""

    def __init__(self, ours: Server, theirs: Server | str, end: float, quick: bool = False) -> None:
        """`theirs`: or why there is no rival. `end`: when time is up, as time.monotonic() counts."""
        self.ours, self.theirs, self.end = ours, theirs, end
        self.side_seconds, self.pairs, self.steps = (
            (0.002, 3, 2) if quick else (0.25, PAIRS, STEPS_PER_CALL)
        )
        self.how: dict[str, str] = {}

    def all(self) -> list[Record]:
        records: list[Record] = []
        for workload, rivals in RIVALS.items():
            try:
                records += self.compare(workload, rivals)
            except Failed as error:
                records.append({"record": "failed", "id": workload, "reason": str(error)})
        return [*records, self.alone("copy", "bytes/s"), self.alone("product", "flop/s")]

    def ask_ours(self, workload: str, steps: int) -> float:
        return self.ours.ask(
            f"{workload} {steps} {self.side_seconds}", max(1.0, self.end - time.monotonic())
        )

    def ask_rival(self, rival: str) -> float:
        if isinstance(self.theirs, str):
            raise Failed(self.theirs)
        rate = self.theirs.ask(
            f"{rival} {self.side_seconds}", max(1.0, self.end - time.monotonic())
        )
        self.how[rival] = str(self.theirs.last.get("how", ""))
        return rate

    def compare(self, workload: str, rivals: tuple[str, ...]) -> list[Record]:
        figures: Figures = {}
        names = {
            "many": lambda: self.ask_ours(workload, self.steps),
            "single": lambda: self.ask_ours(workload, 1),
            **{rival: (lambda rival=rival: self.ask_rival(rival)) for rival in rivals},
        }
        problems: Problems = {}
        for pair in range(-1, self.pairs):  # the first one makes everything ready
            if pair > 0 and time.monotonic() > self.end - 5:
                break
            for name in list(names) if pair % 2 == 0 else reversed(list(names)):
                if name in problems:
                    continue
                try:
                    rate = names[name]()
                except Failed as error:
                    problems[name] = one_line(error)
                    continue
                if pair >= 0:
                    figures.setdefault(name, []).append(rate)
        return self.records(workload, rivals, figures, problems)

    def records(
        self, workload: str, rivals: tuple[str, ...], figures: Figures, problems: Problems
    ) -> list[Record]:
        rows = []
        batched = [rival for rival in rivals if rival != "mlp64_loop"]
        present = [rival for rival in batched if rival in figures and rival not in problems]
        better = max(
            present, key=lambda rival: statistics.median(figures[rival]), default=batched[0]
        )
        rows.append(
            self.row(
                "mlp64_batched" if workload == "mlp64" else workload,
                "many",
                better,
                figures,
                problems,
            )
        )
        rows.append(self.row(f"{workload}_single", "single", better, figures, problems))
        if workload == "mlp64":
            rows.append(self.row("mlp64_loop", "many", "mlp64_loop", figures, problems))
            others = [
                f"{rival} {statistics.median(figures[rival]):,.0f} steps/s"
                for rival in present
                if rival != better
            ]
            others += [f"{rival}: {problems[rival]}" for rival in batched if rival in problems]
            if others and rows[0]["record"] == "pairs":
                rows[0]["note"] += f"; {'; '.join(others)}"
        return rows

    def row(self, name: str, side: str, rival: str, figures: Figures, problems: Problems) -> Record:
        ours, theirs = figures.get(side, []), figures.get(rival, [])
        if not ours or side in problems:
            return {"record": "failed", "id": name, "reason": problems.get(side, "time was up")}
        if not theirs or rival in problems:
            return {
                "record": "rates",
                "id": name,
                "ours": ours,
                "missing": problems.get(rival, "time was up for the rival"),
            }
        count = min(len(ours), len(theirs))
        return {
            "record": "pairs",
            "id": name,
            "unit": "steps/s",
            "ours": ours[:count],
            "theirs": theirs[:count],
            "note": f"{rival}: {self.how.get(rival, '')}, {count} pairs",
        }

    def alone(self, rival: str, unit: str) -> Record:
        try:
            rates = [self.ask_rival(rival) for _ in range(3)]
            return {"record": "rates", "id": f"torch_{rival}", "unit": unit, "ours": rates}
        except Failed as error:
            return {"record": "failed", "id": f"torch_{rival}", "reason": str(error)}
