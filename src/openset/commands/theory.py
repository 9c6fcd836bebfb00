"""``openset theory``: the synthetic experiment, the theorem's conditions, the impossibility lemma."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

if TYPE_CHECKING:
    from openset.theory.conditions import TheoremReport
    from openset.theory.problem import LinearGaussianProblem, Rule
    from openset.theory.sweep import Outcome, Parameter

T = TypeVar("T")

app = typer.Typer(help="The linear-Gaussian problem of the paper, solved exactly.", no_args_is_help=True)

Features = Annotated[int, typer.Option("--features", "-d", help="Number of features d.")]
SourceRows = Annotated[int, typer.Option(help="Source rows N_S.")]
TargetRows = Annotated[int, typer.Option(help="Target rows N_T.")]
Share = Annotated[float, typer.Option("--alpha", help="Share of novel rows in target.")]
Shift = Annotated[float, typer.Option("--r-mu", help="Half the background shift, r_mu.")]


@app.command("sweep")
def sweep_command(
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, counted from 0.")] = 5,
    features: Features = 3000,
    n_source: SourceRows = 1600,
    n_target: TargetRows = 400,
    alpha: Share = 0.15,
    r_mu: Shift = 0.1,
    n_test: Annotated[int, typer.Option(min=2, help="Test rows for the AUPRC.")] = 3000,
    output: Annotated[Path | None, typer.Option(help="Folder for outcomes.csv and the figures.")] = None,
    maps: Annotated[bool, typer.Option("--maps", help="Also draw the maps over r_mu (with --output).")] = False,
) -> None:
    """Compute the paper's two synthetic tables and print them with the published AUROC.

    Examples:

        openset theory sweep

        openset theory sweep --seeds 2 --output results --maps
    """
    from openset._utils.progress import progress_bar
    from openset.theory.problem import LinearGaussianProblem
    from openset.theory.sweep import PAPER_R_ETA, PAPER_THETA, sweep

    if maps and output is None:
        raise typer.BadParameter("--maps draws figures: give their folder with --output FOLDER.")
    base = _checked(
        lambda: LinearGaussianProblem(
            d=features, r_mu=r_mu, r_eta=1.0, alpha=alpha, n_source=n_source, n_target=n_target
        )
    )
    plan: dict[Parameter, list[float]] = {"r_eta": list(PAPER_R_ETA), "theta": list(PAPER_THETA)}
    found: dict[str, list[Outcome]] = {}
    for parameter, values in plan.items():
        with progress_bar(f"{parameter} sweep") as update:
            found[parameter] = sweep(base, parameter, values, seeds=range(seeds), n_test=n_test, update=update)
    sizes = f"N_S {n_source}, N_T {n_target} ({base.n_novel} novel), d {features}, {seeds} seeds"
    _print_sweep(f"r_eta sweep, r_mu {r_mu:g}, {sizes}", found["r_eta"], PAPER_R_ETA)
    _print_sweep(f"theta sweep, r_mu {r_mu:g}, {sizes}", found["theta"], PAPER_THETA)
    if output is not None:
        _write(output, base, found, maps)


def _print_sweep(title: str, outcomes: Sequence[Outcome], paper: Mapping[float, tuple[float, ...]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from openset.theory.sweep import summarise

    caption = "AUROC exact, AUPRC on test rows; mean ± sd over seeds."
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    theta = outcomes[0].parameter == "theta"
    table.add_column("theta" if theta else "r_eta", justify="right", no_wrap=True)
    for name in ("DD\nAUROC", "paper\n", "CoLOR\nAUROC", "paper\n", "DD\nAUPRC", "CoLOR\nAUPRC"):
        table.add_column(name, justify="right", no_wrap=True)
    points = {(s.value, s.rule): s for s in summarise(outcomes)}
    for value, published in paper.items():
        dd, color = points[value, "dd"], points[value, "color"]
        table.add_row(
            f"pi/{round(math.pi / value)}" if theta else f"{value:g}",
            f"{dd.auroc:.3f}±{dd.auroc_sd:.3f}",
            f"{published[0]:.2f}",
            f"{color.auroc:.3f}±{color.auroc_sd:.3f}",
            f"{published[2]:.2f}",
            f"{dd.auprc:.3f}±{dd.auprc_sd:.3f}",
            f"{color.auprc:.3f}±{color.auprc_sd:.3f}",
        )
    Console().print(table)


def _write(output: Path, base: LinearGaussianProblem, found: dict[str, list[Outcome]], maps: bool) -> None:
    import csv

    import numpy as np

    from openset._utils.files import replacing
    from openset._utils.progress import progress_bar
    from openset.theory.figures import draw_map, draw_sweeps
    from openset.theory.sweep import rule_map

    output.mkdir(parents=True, exist_ok=True)
    rows = [outcome.to_dict() for outcomes in found.values() for outcome in outcomes]
    with replacing(output / "outcomes.csv") as temporary, temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    draw_sweeps(found["r_eta"], found["theta"], output / "sweeps.png", novel_share=base.alpha)
    written = ["outcomes.csv", "sweeps.png"]
    if maps:
        # d/N = 50, where the closed-form limit applies; with more novel rows Proposition 1 would hold nowhere
        wide = base.with_(d=25_000, n_source=400, n_target=100, alpha=0.02, r_mu=1.0, r_eta=1.0)
        grid = np.geomspace(0.01, 10, 25).tolist()
        axes: dict[Literal["r_eta", "alpha"], list[float]] = {
            "r_eta": grid,
            "alpha": np.linspace(0.02, 0.9, 23).tolist(),
        }
        for parameter, values in axes.items():
            with progress_bar(f"map over {parameter}") as update:
                result = rule_map(wide, parameter, grid, values, update=update)
            draw_map(result, output / f"map_{parameter}.png")
            written.append(f"map_{parameter}.png")
    typer.echo(f"Wrote {', '.join(written)} to {output}", err=True)


@app.command("check")
def check_command(
    features: Features = 3000,
    r_mu: Shift = 0.1,
    r_eta: Annotated[float, typer.Option("--r-eta", help="Length of the novel mean, r_eta.")] = 1.0,
    theta: Annotated[float, typer.Option(help="Angle between mu and eta, in radians.")] = math.pi / 2,
    alpha: Share = 0.15,
    n_source: SourceRows = 1600,
    n_target: TargetRows = 400,
    delta: Annotated[float, typer.Option(help="Failure probability.")] = 0.05,
    c1: Annotated[float | None, typer.Option(help="Constant of Theorem 1, not given in the paper.")] = None,
    c2: Annotated[float | None, typer.Option(help="Second constant of Theorem 1.")] = None,
    prop_scale: Annotated[float | None, typer.Option(help="C_d of the propositions.")] = None,
    prop_inner: Annotated[float | None, typer.Option(help="c_d of the propositions.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the drawn data.")] = 0,
    solve: Annotated[bool, typer.Option(help="Also draw data and solve both rules exactly.")] = True,
) -> None:
    """Check one problem: the paper's conditions, the closed-form limit, and the exact solution of both rules.

    Examples:

        openset theory check --r-mu 1 --r-eta 3 --alpha 0.2 --n-source 80
        --n-target 20 -d 5000

        openset theory check --r-mu 132 --r-eta 0.0615 --alpha 1.43e-5 --n-source 70000
        --n-target 70000 -d 100000000 --no-solve
    """
    from openset.theory.conditions import theorem_conditions
    from openset.theory.problem import LinearGaussianProblem

    problem = _checked(
        lambda: LinearGaussianProblem(
            d=features, r_mu=r_mu, r_eta=r_eta, theta=theta, alpha=alpha, n_source=n_source, n_target=n_target
        )
    )
    report = _checked(
        lambda: theorem_conditions(problem, delta=delta, c1=c1, c2=c2, C_d=prop_scale, c_d=prop_inner)
    )
    _print_conditions(report)
    _print_rules(problem, seed if solve else None)


def _print_conditions(report: TheoremReport) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from openset.theory.conditions import STATEMENTS

    table = Table(title="Conditions as printed in the paper", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("condition")
    for name in ("left", "right", "holds"):
        table.add_column(name, justify="right", no_wrap=True)
    words = {True: "yes", False: "NO", None: "unknown"}
    for statement in STATEMENTS:
        table.add_row(f"[bold]{statement}[/]", "", "", f"[bold]{words[report.applies(statement)]}[/]")
        for c in report.of(statement):
            table.add_row(f"  {c.text}", _number(c.left), _number(c.right), words[c.holds])
        table.add_section()
    console = Console()
    console.print(table)
    if any(c.holds is None for c in report.conditions):
        console.print("unknown: needs --c1, --c2, --prop-scale, --prop-inner (the paper does not give them).")


def _print_rules(problem: LinearGaussianProblem, seed: int | None) -> None:
    """Print how both rules rank in the limit, and their AUROC there and, with a seed, solved exactly."""
    from rich.console import Console
    from rich.table import Table

    from openset.theory.limit import corrected_window, group_limit
    from openset.theory.problem import RULES

    window = corrected_window(problem)
    console = Console()
    order = f"N_T0 r_mu^2 = {window.known:.4g}, N_T1 r_eta^2 = {window.novel:.4g}, "
    console.print(f"{order}(N_S + N_T0) r_mu^2 = {window.background:.4g}")
    ranks = {True: "ranks novel above known", False: "ranks known above novel"}
    console.print(f"Limit d >> N at a right angle: CoLOR {ranks[window.color_right]},")
    console.print(f"DD {ranks[window.dd_right]}.")
    table = Table(title=f"AUROC (d/N = {problem.d / problem.n_total:.3g})")
    for name in ("rule", "limit d >> N", "solved exactly", "certificate"):
        table.add_column(name, justify="left" if name == "rule" else "right")
    for rule in RULES:
        solved = _solved(problem, rule, seed) if seed is not None else ("", "")
        table.add_row("DD" if rule == "dd" else "CoLOR", f"{group_limit(problem, rule).auroc:.4f}", *solved)
    console.print(table)


def _solved(problem: LinearGaussianProblem, rule: Rule, seed: int) -> tuple[str, str]:
    from openset.theory.margin import SOLVERS

    values = problem.n_total * problem.d
    if values > 5e8:
        raise typer.BadParameter(f"{values:.1e} numbers are too many to draw: add --no-solve.")
    sample = problem.sample(seed)
    solution = SOLVERS[rule](sample.source, sample.target)
    if solution.certificate is None:
        return "infeasible", ""
    return f"{problem.auroc(solution.weights):.4f}", f"{solution.certificate.worst:.1e}"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.4g}"


@app.command("impossibility")
def impossibility_command(
    epsilon: Annotated[float, typer.Option(help="Mass of the rare source states, in (0, 0.5).")] = 0.1,
) -> None:
    """Show two problems that look the same to every learner and need opposite answers; try all rules.

    Examples:

        openset theory impossibility

        openset theory impossibility --epsilon 0.01
    """
    from rich.console import Console
    from rich.table import Table

    from openset.theory.impossibility_lemma import impossibility

    lemma = _checked(lambda: impossibility(epsilon))
    table = Table(title=f"The lemma's two problems, epsilon = {epsilon:g}")
    table.add_column("")
    for name in ("problem A", "problem B"):
        table.add_column(name, justify="right")
    both = (lemma.first, lemma.second)
    words = {True: "yes", False: "no"}
    table.add_row("P_S(x)", *(" ".join(map(str, p.source_states)) for p in both))
    table.add_row("P_T(x), known and novel mixed", *(" ".join(map(str, p.target_states)) for p in both))
    table.add_row("state of known target rows", *(str(p.target_known.index(1) + 1) for p in both))
    table.add_row("state of novel rows", *(str(p.target_novel.index(1) + 1) for p in both))
    table.add_row("strong positivity", *(words[p.strong_positivity] for p in both))
    table.add_row("support inclusion", *(words[p.support_inclusion] for p in both))
    table.add_row("target error of h*", *(str(p.class_risk(p.best_rule)) for p in both))
    table.add_row("P_S(h* answers novel), should be 0", *(str(p.source_false_positives) for p in both))
    console = Console()
    console.print(table)
    console.print(
        f"Same observations: {words[lemma.same_observations]}. Opposite answers: {words[lemma.opposite_answers]}."
    )
    for kind, risks in (("known/novel", lemma.novelty_risks), ("three-class", lemma.class_risks)):
        low, high = min(risks.values()), max(risks.values())
        console.print(f"{len(risks)} {kind} rules: mean risk over A and B from {low} to {high}.")


def _checked(build: Callable[[], T]) -> T:
    """Report a ValueError as a usage error, without a traceback."""
    try:
        return build()
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
