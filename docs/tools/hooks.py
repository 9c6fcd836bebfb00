"""What the site is made of beside its pages: folders in the navigation, README, CONTRIBUTING, the commands.

``openset`` is imported for the commands alone; nothing heavy loads.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md"}
"""Pages of the site whose text is a file beside ``docs/``."""


def on_config(config: Any) -> Any:
    """Replace ``folder/*`` in the navigation by the pages of that folder."""
    config.nav = [_expanded(entry, Path(config.docs_dir)) for entry in config.nav]
    return config


def _expanded(entry: dict[str, Any], docs: Path) -> dict[str, Any]:
    ((title, pages),) = entry.items()
    if isinstance(pages, str) and pages.endswith("/*"):
        folder = docs / pages[:-2]
        found = sorted(folder.glob("*.md"), key=lambda path: (path.name != "README.md", path.name))
        pages = [path.relative_to(docs).as_posix() for path in found]
    return {title: pages}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in the pages that are written elsewhere."""
    if page.file.src_uri in ELSEWHERE:
        return (ROOT / ELSEWHERE[page.file.src_uri]).read_text(encoding="utf-8").replace("](docs/", "](")
    if page.file.src_uri == "cli.md":
        return markdown + "\n" + "\n".join(_command_lines())
    return markdown


def _command_lines() -> Iterator[str]:
    from typer.main import get_command

    from openset.cli import app

    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        yield from _described(f"openset {name}", command)


def _described(name: str, command: Any) -> Iterator[str]:
    yield from (f"## `{name}`", "", *_paragraphs(command.help or ""), "")
    if hasattr(command, "commands"):
        for below, part in command.commands.items():
            yield from _described(f"{name} {below}", part)
        return
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join([name, *(_argument(p) for p in arguments)])
    yield from ("```text", f"{usage} [OPTIONS]", "```", "", "| option | |", "|---|---|")
    for parameter in command.params:
        flags = ", ".join(f"`{flag}`" for flag in [*parameter.opts, *parameter.secondary_opts])
        shown = f"`{_argument(parameter)}`" if parameter in arguments else flags
        yield f"| {shown} | {_cell(parameter)} |"
    yield ""


def _argument(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name).upper()


def _cell(parameter: Any) -> str:
    text = getattr(parameter, "help", None) or ""
    default = parameter.show_default if isinstance(getattr(parameter, "show_default", None), str) else None
    if default is None and parameter.default not in (None, False, ()) and not callable(parameter.default):
        default = str(parameter.default)
    return (text + (f" Default: {default}." if default else "")).replace("|", "\\|").replace("<", "&lt;")


def _paragraphs(text: str) -> list[str]:
    """Help as Markdown: its example as a block."""
    lines = text.replace("<", "&lt;").splitlines()
    shown: list[str] = []
    for line in lines:
        if line.startswith("Example: "):
            shown += ["```text", line.removeprefix("Example: "), "```"]
        else:
            shown.append(line)
    return shown
