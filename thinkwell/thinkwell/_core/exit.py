"""The parts of the core that public packages use: the one way out of it.

A public package such as `thinkwell.web` or `thinkwell.listen` imports everything without a public name from
here.
"""

from __future__ import annotations

from thinkwell._core.agent.opening import Opening
from thinkwell._core.agent.session_handle import OPEN_TIMEOUT
from thinkwell._core.log.listener import Listened
from thinkwell._core.log.run_log import EventReader, running_clock
from thinkwell._core.questions.asker import QUESTION_TIMEOUT, call_handler
from thinkwell._core.task.builder import Options, PromptBuilder, Spec, Starter, check_handlers
from thinkwell._core.tools.signature import code_of, hints_of
from thinkwell._values.content import image_type
from thinkwell._values.folders import existing_folder
from thinkwell._values.rulings import SILENCE, Ruling, Said, read_answer
from thinkwell._values.source import where
from thinkwell.agents._preparing import find_starter
from thinkwell_acp._tasks import BackgroundTasks, InOrder, background_tasks

__all__ = (
    "OPEN_TIMEOUT",
    "QUESTION_TIMEOUT",
    "SILENCE",
    "BackgroundTasks",
    "EventReader",
    "InOrder",
    "Listened",
    "Opening",
    "Options",
    "PromptBuilder",
    "Ruling",
    "Said",
    "Spec",
    "Starter",
    "background_tasks",
    "call_handler",
    "check_handlers",
    "code_of",
    "existing_folder",
    "find_starter",
    "hints_of",
    "image_type",
    "read_answer",
    "running_clock",
    "where",
)
