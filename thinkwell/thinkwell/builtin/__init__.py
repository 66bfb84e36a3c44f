"""The built-in agent: a real ACP agent without a model, run as ``python -m thinkwell.builtin``.

It plans, reads the files that it is pointed at, tells what it finds, calls the tools it is offered and
returns a value that fits the schema it is given. Everything it says was computed from the files. It needs no
key and no network, so that the first run works everywhere; and it is what the examples run on in the tests.

How fast it speaks is for the client to say: the environment variable ``THINKWELL_BUILTIN_PACE``, or
``thinkwell.builtin/pace`` in a prompt's ``_meta``, holds the seconds between two chunks; 0 speaks at once.

It has no model. To try out a program that chooses one, name some in ``THINKWELL_BUILTIN_MODELS``, with commas
between them: it offers these, and does the same with each.

`BuiltinAgent` serves it without a process, on any transport:

    ours, theirs = memory_transport_pair()
    async with (
        BuiltinAgent() as handler,
        serve_agent(theirs, handler),
        open_agent("builtin", transport=ours) as agent,
    ):
        ...
"""

from __future__ import annotations

from thinkwell.builtin._agent import BuiltinAgent

__all__ = ("BuiltinAgent",)
