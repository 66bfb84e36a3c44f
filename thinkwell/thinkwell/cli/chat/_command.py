"""The options of ``thinkwell chat``.

The modules of the chat are slow to import, so they are imported when it begins.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from thinkwell import open_agent
from thinkwell.cli._errors import needing, told
from thinkwell.cli._launch import asking, check_fallback, chosen_agent, retrying
from thinkwell.cli._options import (
    AgentOption,
    CommandOption,
    CwdOption,
    How,
    ModelOption,
    PermissionsOption,
    RecordOption,
    RetryOption,
    Style,
    StyleOption,
    SystemOption,
    VerboseOption,
    fallback_option,
    naming,
)


def chat(
    agent: AgentOption = None,
    command: CommandOption = None,
    model: ModelOption = None,
    system: SystemOption = None,
    load: Annotated[
        str | None,
        typer.Option("--load", metavar="ID", help="Continue an old session: see `thinkwell sessions`."),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option("--resume", metavar="ID", help="The same, without its conversation being repeated."),
    ] = None,
    cwd: CwdOption = None,
    permissions: PermissionsOption = None,
    record: RecordOption = None,
    retry: RetryOption = 0,
    fallback: Annotated[
        list[str] | None, fallback_option("The agent to talk with if the first one does not start.")
    ] = None,
    history: Annotated[
        bool,
        typer.Option(
            "--history/--no-history",
            help="Remember what is typed, for the arrow keys; what looks like a secret, and lines that begin "
            "with a space, are not.",
        ),
    ] = True,
    style: StyleOption = Style.AUTO,
    verbose: VerboseOption = False,
) -> None:
    """Talk with an agent, turn by turn; it knows what was said before.

    /help lists the commands, those of the agent among them, and Tab completes them and the names of files.
    Alt-Enter begins another line. What you type while the agent works waits for its turn. Ctrl-C cancels what
    the agent does, a second one kills it; Ctrl-D leaves.

    Where standard input is no terminal, each line of it is a turn, and the answers go to standard output.

    \b
    Examples:
      thinkwell chat -a claude --cwd ../api
      thinkwell chat -a claude --load 6a1f…
      printf 'List them.\\nWhich is longest?\\n' | thinkwell chat > answers.txt
    """
    if load is not None and resume is not None:
        raise typer.BadParameter("give --load or --resume, not both", param_hint="--resume")
    with told(), needing("chat", {"prompt_toolkit": "cli"}):
        from thinkwell.cli.chat._conversation import ChatOptions, hold_chat

        how = How(verbose=verbose, style=style)
        profile = chosen_agent(agent, command)
        opening = partial(
            open_agent,
            profile,
            cwd=cwd,
            **asking(permissions, how),
            record=record,
            model=model,
            fallback=fallback or None,
        )
        if fallback:
            check_fallback(opening)
        options = ChatOptions(
            profile=profile,
            agent=(*naming(agent, command), *(["--model", model] if model else [])),
            opening=opening,
            system=system,
            load=load,
            resume=resume,
            cwd=cwd,
            retry=retrying(retry),
            history=history,
            how=how,
        )
        raise typer.Exit(hold_chat(options))
