"""The built-in agent: a real ACP agent without a model, run as ``python -m thinkwell.builtin``.

It plans, reads files in the folder, reports what it finds, calls the tools it is offered and
returns a value that fits the schema. It computes everything it says from the files. It needs no
key and no network, so the first run works everywhere; the tests run the examples with it.

The client sets its pace: the environment variable ``THINKWELL_BUILTIN_PACE``, or
``thinkwell.builtin/pace`` in a prompt's ``_meta``, is the delay between two chunks, in seconds.

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
