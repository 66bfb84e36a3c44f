"""Skills: instructions for some kind of work, with files and tools, for an agent that needs them."""

from thinkwell._core.tools.skill import Skill, load_skill

__all__ = ("Skill", "load_skill")
