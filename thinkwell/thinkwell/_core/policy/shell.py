"""Reads command lines as a POSIX shell would, as far as necessary to find the commands in them.

It has two uses. To allow a line, the policy has to be certain of what runs, so `Script.plain` is true only
for very simple lines. To forbid one, it needs every command that may be hidden in it: in a list, a group, a
substitution, quoted or escaped; a line that cannot be followed is `Unreadable`.
"""

from __future__ import annotations

import re
import string
import sys
from typing import Final, NamedTuple

LONGEST: Final = 50_000
"""Characters of a line beyond which it is not read."""

DEEPEST: Final = 20
"""Most levels of substitutions and groups."""

_SAFE: Final = frozenset(string.ascii_letters + string.digits + "_-./:=@%+,*?[]~")
"""Characters that mean the same to every shell and never begin another command. The last few are patterns for
file names, which are harmless in arguments."""

_REDIRECTIONS: Final = ("<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">&", ">|", ">")

_BLANK: Final = " \t"
_BREAK: Final = _BLANK + "\n;&|<>()"


class Unreadable(ValueError):  # noqa: N818 - it says what is the case
    """It cannot be determined what a command line runs."""


class Word(NamedTuple):
    """A word of a command."""

    text: str
    """The word without its quotes. Expansions are kept as they were written."""
    certain: bool
    """Whether the program gets exactly this text: nothing in it is expanded."""


class Script(NamedTuple):
    """The content of a command line."""

    commands: tuple[tuple[Word, ...], ...]
    """Every simple command, with the assignments and reserved words before it."""
    targets: tuple[str, ...]
    """Files of redirections."""
    plain: bool
    """Whether these commands, joined by ``&&``, ``||``, ``|`` and ``;``, are everything, and any shell takes
    their arguments unchanged."""


def read_script(line: str, depth: int = 0) -> Script:
    """Read a command line.

    Raises:
        Unreadable: It cannot be determined what it runs.
    """
    if len(line) > LONGEST or depth > DEEPEST or "\0" in line:
        raise Unreadable(line[:100])
    reader = _Reader(line.strip(" \t\n"), depth)
    reader.commands_until("")
    plain = reader.plain and bool(reader.commands)
    if sys.platform == "win32":  # its shells have neither single quotes nor backslash escapes
        plain = plain and not set(line) & set("%^'\"")
    return Script(tuple(reader.commands), tuple(reader.targets), plain)


class _Reader:
    def __init__(self, text: str, depth: int) -> None:
        self._text = text
        self._at = 0
        self._depth = depth
        self._word_end = -1
        """The end of the last word."""
        self._here: list[tuple[str, bool, bool]] = []
        """Delimiters of here-documents whose text begins on the next line, whether they were quoted, and
        whether leading tabs are ignored."""
        self._apart: list[int] = []
        """The places where the words become two commands in shells for which ``&>`` begins with ``&``."""
        self.commands: list[tuple[Word, ...]] = []
        self.targets: list[str] = []
        self.plain = True

    def _peek(self, length: int = 1) -> str:
        return self._text[self._at : self._at + length]

    def _take(self, length: int = 1) -> str:
        taken = self._peek(length)
        self._at += length
        return taken

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._unreadable()

    def _unreadable(self) -> Unreadable:
        return Unreadable(self._text[:100])

    # Commands

    def commands_until(self, closing: str) -> None:
        """Read commands up to a closing parenthesis, or to the end."""
        words: list[Word] = []
        self._deeper()
        while (character := self._peek()) and not (closing and character == closing):
            if character in _BLANK:
                self._take()
            elif character == "#":
                self._comment()
            elif character in "\n;&|()":
                self._separator(words)
            elif character in "<>":
                self._redirection()
            else:
                word, quoted = self._word()
                is_descriptor = not quoted and re.fullmatch(r"[0-9]+|\{\w+\}", word.text)
                if not (is_descriptor and self._peek() and self._peek() in "<>"):
                    words.append(word)
        if bool(closing) != bool(character):
            raise self._unreadable()
        self._end(words)
        self._take()
        self._depth -= 1

    def _end(self, words: list[Word]) -> None:
        if words:
            if any(
                word.text == "case" for word in words[:4]
            ):  # it has closing parentheses without an opening one
                raise self._unreadable()
            self.commands.append(tuple(words))
            for number in self._apart:
                self.commands += [tuple(part) for part in (words[:number], words[number:]) if part]
            words.clear()
        else:
            self.plain = False
        self._apart.clear()

    def _comment(self) -> None:
        self.plain = False
        while self._peek() not in ("", "\n"):
            self._take()

    def _separator(self, words: list[Word]) -> None:
        character = self._peek()
        if self._peek(2) == "((":
            self._arithmetic()
            self.plain = False
        elif character == "(":
            self._group(words)
        elif character == ")":
            raise self._unreadable()
        elif self._peek(2) == "&>":
            self._take()
            self._redirection()
            self._apart.append(len(words))
        else:
            operator = self._take(2) if self._peek(2) in ("&&", "||") else self._take()
            self.plain &= operator in ("&&", "||", "|", ";")
            self._end(words)
            if operator == "\n":
                self._here_documents()

    def _group(self, words: list[Word]) -> None:
        """Read a group in parentheses, a function's ``()`` or an array."""
        is_array = self._text[self._at - 1 : self._at] == "="
        if self._at == self._word_end and not is_array and self._peek(2) != "()":
            raise self._unreadable()  # a pattern of some shells, which may contain code
        self._take()
        self._end(words)
        self.commands_until(")")
        if is_array and self._peek() not in ("", *_BREAK):
            raise self._unreadable()  # it continues, so the command comes later
        self.plain = False

    def _redirection(self) -> None:
        self.plain = False
        operator = self._take(next(len(one) for one in _REDIRECTIONS if self._peek(len(one)) == one))
        if self._peek() == "(":  # a process as a file
            return
        while self._peek() in tuple(_BLANK):
            self._take()
        if self._peek(2) in ("<(", ">("):
            return
        start = self._at
        word, _ = self._word()
        if operator in ("<<", "<<-"):
            source = self._text[start : self._at]
            self._here.append((word.text, source != word.text, operator == "<<-"))
        else:
            self.targets.append(word.text)

    def _here_documents(self) -> None:
        for delimiter, quoted, tabs in self._here:
            lines: list[str] = []
            while self._at < len(self._text):
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                line = self._text[self._at : end]
                self._at = end + 1
                if (line.lstrip("\t") if tabs else line) == delimiter:
                    break
                lines.append(line)
            if not quoted:
                inner = _Reader("\n".join(lines), self._depth)
                inner.quoted("")
                self._adopt(inner)
        self._here.clear()

    def _adopt(self, inner: _Reader | Script) -> None:
        self.commands.extend(inner.commands)
        self.targets.extend(inner.targets)
        self.plain = False

    # Words

    def _word(self) -> tuple[Word, bool]:
        """Read a word; return it and whether a part of it is quoted."""
        parts: list[str] = []
        certain, quoted, start = True, False, self._at
        while (character := self._peek()) and character not in _BREAK:
            if character == "'":
                parts.append(self._single_quoted())
                quoted = True
            elif character == '"':
                self._take()
                text, whole = self.quoted('"')
                parts.append(text)
                certain &= whole
                quoted = True
            elif character == "\\":
                self.plain = False
                self._take()
                if not self._peek():
                    raise self._unreadable()
                parts.append(self._take().replace("\n", ""))
                quoted = True
            elif character in "$`":
                parts.append(self._expansion(in_quotes=False))
                certain = False
            else:
                self.plain &= character in _SAFE
                certain &= character not in "*?["
                parts.append(self._take())
        self._word_end = self._at
        source = self._text[start : self._at]
        if not source or re.match(r"\w+\[[^\]]*$", source):  # an index continues after blanks and operators
            raise self._unreadable()
        if source in ("[", "[["):
            certain = True
        if "{" in source and ("," in source or ".." in source):
            certain = False
        return Word("".join(parts), certain), quoted

    def _single_quoted(self) -> str:
        self._take()
        text = self._until("'")
        self._note_quoted(text)
        return text

    def _note_quoted(self, text: str) -> None:
        if not text.isprintable() or set(text) & set("\\!"):
            self.plain = False  # other shells have escapes and history within quotes

    def _until(self, closing: str) -> str:
        end = self._text.find(closing, self._at)
        if end < 0:
            raise self._unreadable()
        text = self._text[self._at : end]
        self._at = end + len(closing)
        return text

    def quoted(self, closing: str) -> tuple[str, bool]:
        """Read text in which only expansions are special; return it and whether there were none."""
        parts: list[str] = []
        certain = True
        while (character := self._peek()) and character != closing:
            if character in "$`":
                expansion = self._expansion(in_quotes=True)
                certain &= expansion == "$"
                parts.append(expansion)
            elif character == "\\":
                self.plain = False
                pair = self._take(2)
                parts.append(pair[1:].replace("\n", "") if pair[1:] in tuple('$`"\\\n') else pair)
            else:
                parts.append(self._take())
        if bool(closing) != bool(character):
            raise self._unreadable()
        self._take()
        text = "".join(parts)
        self._note_quoted(text)
        return text, certain

    # Expansions

    def _expansion(self, *, in_quotes: bool) -> str:
        """Read an expansion and the commands in it; return it as written."""
        self.plain = False
        start = self._at
        self._deeper()
        if self._take() == "`":
            self._backquoted(in_quotes=in_quotes)
        elif self._peek(2) == "((":
            self._arithmetic()
        elif self._peek() == "(":
            self._take()
            inner = _Reader(self._text, self._depth)
            inner._at = self._at
            inner.commands_until(")")
            self._at = inner._at
            self._adopt(inner)
        elif self._peek() == "{":
            self._parameter(in_quotes=in_quotes)
        elif self._peek() == "'" and not in_quotes:
            self._take()
            if "\\" in self._until("'"):
                raise self._unreadable()  # only some shells have escapes here
        elif self._peek() == "[" and not in_quotes:
            raise self._unreadable()  # arithmetic of older shells
        elif re.fullmatch(r"[\w@*#?$!-]", self._peek()):
            self._take()
        self._depth -= 1
        return self._text[start : self._at]

    def _backquoted(self, *, in_quotes: bool) -> None:
        found = re.compile(r"((?:[^`\\]|\\.)*)`", re.DOTALL).match(self._text, self._at)
        if found is None or (in_quotes and '\\"' in found[1]):  # shells differ here
            raise self._unreadable()
        self._at = found.end()
        self._adopt(read_script(re.sub(r"\\([`\\$])", r"\1", found[1]), self._depth))

    def _arithmetic(self) -> None:
        """Read ``((…))``. Some shells take it for a group of commands if it is not valid arithmetic."""
        self._take(2)
        start = self._at
        opened = 0
        while self._peek(2) != "))" or opened:
            character = self._peek()
            if not character or character in "'\"\\\n" or (character == ")" and not opened):
                raise self._unreadable()
            opened += {"(": 1, ")": -1}.get(character, 0)
            if character in "$`":
                self._expansion(in_quotes=True)
            else:
                self._take()
        self._adopt(read_script(self._text[start : self._at], self._depth))
        self._take(2)

    def _parameter(self, *, in_quotes: bool) -> None:
        """Read ``{…}`` after a dollar sign."""
        self._take()
        if self._peek() in tuple(" \t\n|"):
            raise self._unreadable()  # a substitution of newer shells
        while (character := self._peek()) != "}":
            if character in ("", "'", "\\") or (character == '"' and in_quotes):
                raise self._unreadable()
            if character in "$`":
                self._expansion(in_quotes=in_quotes)
            elif character == '"':
                self._take()
                self.quoted('"')
            else:
                self._take()
        self._take()
