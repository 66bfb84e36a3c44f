"""Functions and types by name, so that another process finds them.

What is in a module is found by its import path. What is in the script that was started is found by the
script's file, as `multiprocessing` finds it when it spawns a process: the file runs again, under another name
than ``__main__``.
"""

from __future__ import annotations

import importlib
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import PathFinder
from inspect import ismodule
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Final, Literal

from msgspec import Struct

from thinkwell._core.exit import where
from thinkwell.trials._errors import PlanError

__all__ = ("Reference", "check_guard", "refer")

SCRIPT: Final = "__thinkwell_script__"
"""The name under which a script runs again; with it ``if __name__ == "__main__":`` is false."""

_mutex = threading.RLock()
_loading: list[str] = []
"""The script that runs again now, in any thread."""
_scripts: dict[str, ModuleType] = {}


class Reference(Struct, frozen=True, kw_only=True, tag_field="kind", tag="reference", omit_defaults=True):
    """Something of a module, or of the script that was started."""

    module: str
    """The module's import path; for a script, its file."""
    name: str
    """Its name there, with dots for what is in a class."""
    of: Literal["module", "script"] = "module"
    folder: str = ""
    """The folder that the module, or the script, is in."""

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"

    def find(self) -> object:
        """Import it.

        Raises:
            PlanError: It does not exist here, or its module cannot be imported.
        """
        with _mutex:
            if self.folder not in ("", *sys.path):
                sys.path.insert(0, self.folder)
            module = self._run_script() if self.of == "script" else self._import()
        try:
            found: object = attrgetter(self.name)(module)
        except AttributeError:
            public = ", ".join(
                name for name, value in vars(module).items() if not (name.startswith("_") or ismodule(value))
            )
            raise PlanError(
                str(self), f"there is no {self.name!r} in {self.module}; it has {public[:500] or 'nothing'}"
            ) from None
        return found

    def _import(self) -> ModuleType:
        try:
            module = importlib.import_module(self.module)
        except (Exception, SystemExit) as exc:  # whatever the module raises
            raise PlanError(
                str(self),
                f"the module {self.module} cannot be imported here ({type(exc).__name__}: {exc}); install "
                "it for each worker, or set PYTHONPATH",
            ) from exc
        found = _folder(module)
        if found and self.folder and Path(self.folder).resolve() != Path(found):
            own = PathFinder.find_spec(self.module.partition(".")[0], [self.folder])
            if own is not None and own.origin is not None:
                raise PlanError(
                    str(self), f"another {self.module} was imported before, from {found}; rename one of them"
                )
        return module

    def _run_script(self) -> ModuleType:
        if self.module in _scripts:
            return _scripts[self.module]
        if not Path(self.module).is_file():
            raise PlanError(
                str(self),
                "there is no such file on this machine; put the function in a module that is installed for "
                "each worker, and import it from there",
            )
        module = ModuleType(SCRIPT)
        module.__file__ = self.module
        sys.modules[SCRIPT] = module  # dataclasses and the like look their module up
        code = compile(Path(self.module).read_bytes(), self.module, "exec")
        _loading.append(self.module)
        try:
            with ThreadPoolExecutor(1) as pool:  # without a guard, it starts an event loop
                pool.submit(exec, code, vars(module)).result()
        except PlanError:
            raise
        except (Exception, SystemExit) as exc:
            raise PlanError(str(self), f"the script has failed: {type(exc).__name__}: {exc}") from exc
        finally:
            _loading.pop()
        return _scripts.setdefault(self.module, module)


def check_guard() -> None:
    """Check that trials are not begun by a script that only gives its functions to a worker.

    Raises:
        PlanError: They are: the script has no ``if __name__ == "__main__":``.
    """
    if _loading:
        raise PlanError(
            _loading[-1],
            "a worker has run the script again, for its functions, and that begins the trials again; let "
            'only the program itself begin them: put the call under `if __name__ == "__main__":`',
        )


def refer(thing: object, what: str) -> Reference:
    """Return a reference to a function or type.

    Args:
        thing: The function or type.
        what: What it is for, for errors.

    Raises:
        TypeError: Another process cannot find it.
    """
    module_name = getattr(thing, "__module__", None)
    name = getattr(thing, "__qualname__", None)
    if not (isinstance(module_name, str) and isinstance(name, str)):
        raise TypeError(
            f"{what}={thing!r:.100}: workers are other processes, and cannot get this "
            f"{type(thing).__name__}; give a function of a module"
        )
    if name.endswith("<lambda>"):
        raise TypeError(f"{what}: a lambda{where(thing)} has no name by which workers find it; use `def`")
    if "<locals>" in name:
        inner = name.replace(".<locals>", "")
        raise TypeError(
            f"{what}: {inner}{where(thing)} is defined in a function, where workers cannot find it; move it "
            "to the top of its module"
        )
    module = sys.modules.get(module_name)
    try:
        found: object = attrgetter(name)(module)
    except AttributeError:
        found = None
    if module is None or found != thing:
        raise TypeError(
            f"{what}: workers do not find {thing!r:.100} as {module_name}.{name}; give a function or class "
            "under its own name"
        )
    if module_name == "__main__":
        return _of_script(module, name, what)
    return Reference(module=module_name, name=name, folder=_folder(module))


def _of_script(module: ModuleType, name: str, what: str) -> Reference:
    spec = module.__spec__
    if spec is not None:  # python -m
        return Reference(module=spec.name, name=name, folder=_folder(module, spec.name))
    file = getattr(module, "__file__", None)
    if file is None or not Path(file).is_file():
        raise TypeError(
            f"{what}: {name} is defined in an interactive session, where workers cannot find it; put it in a "
            "file, and import it"
        )
    path = Path(file).resolve()
    return Reference(module=str(path), name=name, of="script", folder=str(path.parent))


def _folder(module: ModuleType, name: str | None = None) -> str:
    """Return the folder from which a module is imported; empty for what is built in."""
    file = getattr(module, "__file__", None)
    if file is None:
        return ""
    path = Path(file).resolve()
    depth = (name or module.__name__).count(".") + (path.stem == "__init__")
    return str(path.parents[min(depth, len(path.parents) - 1)])
