"""``openset review``: the page where a person confirms and names what a run found; labels out and in."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openset.commands.console import AsJson, Quiet, Verbose, helpful_errors, show_json, show_text
from openset.commands.look import Run

if TYPE_CHECKING:
    from openset.review.server import Address
    from openset.review.session import Session


def review(
    context: typer.Context,
    run: Run,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write rows to label elsewhere, and end.")
    ] = None,
    import_: Annotated[
        Path | None, typer.Option("--import", metavar="FILE", help="Read labels from a file, and end.")
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Rows of each queue that --export writes.")] = 100,
    annotator: Annotated[str, typer.Option(help="Who answers; the page can change it.")] = "me",
    host: Annotated[str, typer.Option(help="Address to serve on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 0,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Allow a --host that others can reach.")
    ] = False,
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Confirm and name a new class: a local page, one key for one decision.

    Prints an address that only this machine can open. Every answer is saved at
    once in RUN/review.sqlite; Ctrl+C ends the page and loses nothing. The share
    of the new class, precision and recall stay valid whenever you look or stop.

    Labels can also be given elsewhere: --export writes rows as Label Studio's
    tasks (.json), JSON lines, Parquet or CSV; --import reads them back, or any
    table with the columns label, and id or row.

    Example: openset review run
    """
    with helpful_errors(verbose, context):
        from openset.review.server import check_host, serve
        from openset.review.session import Session

        check_host(host, allow_remote=allow_remote)
        session = Session(run, annotator=annotator)
        if export is not None or import_ is not None:
            done = _exchange(session, export, import_, rows)
            if as_json:
                show_json(done)
            elif not quiet:
                show_text(_said(done))
            return

        def tell(address: Address) -> None:
            if as_json:
                show_json({"url": address.url, "rows": len(session)})
            else:
                show_text(_invitation(address, session, host))
            if open_ and not as_json:
                import webbrowser

                webbrowser.open(address.url)

        with suppress(KeyboardInterrupt):  # the way to end it; every answer is saved
            serve(session, host=host, port=port, allow_remote=allow_remote, tell=tell)
        if not quiet and not as_json:
            show_text(_farewell(session, run))


def _exchange(session: Session, export: Path | None, import_: Path | None, rows: int) -> dict[str, Any]:
    from openset.review.exchange import export_rows, import_labels

    done: dict[str, Any] = {}
    if import_ is not None:
        done |= {"imported": import_labels(session, import_), "from": str(import_)}
    if export is not None:
        done |= {"exported": export_rows(session, export, rows), "to": str(export)}
    share = session.numbers().estimates.share
    return {**done, "share_low": share.low, "share_high": share.high}


def _said(done: dict[str, Any]) -> str:
    lines = []
    if "imported" in done:
        lines.append(f"Imported {done['imported']} labels from {done['from']}.")
    if "exported" in done:
        lines.append(f"Exported {done['exported']} rows to {done['to']}.")
    lines.append(f"New rows: {done['share_low']:.1%} to {done['share_high']:.1%} of the target (95 %).")
    return "\n".join(lines)


def _invitation(address: Address, session: Session, host: str) -> str:
    from openset.review.guard import is_loopback

    lines = [
        f"Review of {_rows_text(session)}. Open: {address.url}",
        "Ctrl+C ends it; every answer is saved at once.",
    ]
    if not is_loopback(host):
        lines.append("Warning: others on the network can reach this address, over plain HTTP. Whoever has it")
        lines.append("can read the rows and answer.")
    return "\n".join(lines)


def _rows_text(session: Session) -> str:
    """How many rows are reviewed; of a run that was fitted on a sample, those of the sample."""
    target = session.result.summary.data.target
    return (
        f"{len(session)} rows" if target.fitted is None else f"a sample of {len(session)} of {target.rows} rows"
    )


def _farewell(session: Session, run: Path) -> str:
    numbers = session.numbers()
    share = numbers.estimates.share
    names = ", ".join(f"{name} ({rows})" for name, rows in session.state.names.items()) or "none yet"
    return (
        f"Answers: {numbers.answers}. New rows: {share.low:.1%} to {share.high:.1%} of the target (95 %).\n"
        f"New classes: {names}.\nGo on: openset review {run}\nFit with them: openset promote {run}"
    )
