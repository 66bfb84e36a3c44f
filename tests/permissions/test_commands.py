"""What a command line really runs: a rule that denies sees through all, one that allows through nothing."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from suite.tiers import few

from thinkwell import PermissionPolicy, PermissionQuestion, Rule

if TYPE_CHECKING:
    from pathlib import Path

DEEPEST = 20
"""Levels of code in code that are read."""

LONGEST = 50_000
"""Characters of a line that are read, with the code in it."""


def asks(line: str) -> PermissionQuestion:
    return PermissionQuestion(id="q1", title=line, agent="a", options=(), kind="execute", command=line)


def allows(patterns: list[str], line: str) -> bool:
    """Tell whether rules for these commands allow a line."""
    policy = PermissionPolicy(rules=tuple(Rule("allow", command=pattern) for pattern in patterns))
    return policy.decide(asks(line), cwd="/code/project").verdict == "allow"


def touches(patterns: list[str], line: str) -> bool:
    """Tell whether rules against these commands deny a line."""
    rules = tuple(Rule("deny", command=pattern) for pattern in patterns)
    policy = PermissionPolicy(rules=rules, otherwise="allow")
    return policy.decide(asks(line), cwd="/code/project").verdict == "deny"


def names(path: str, line: str) -> bool:
    """Tell whether a rule against a file denies a line."""
    policy = PermissionPolicy(rules=(Rule("deny", path=path),), otherwise="allow")
    return policy.decide(asks(line), cwd="/code/project").verdict == "deny"


PLAIN = [
    "git",
    "git status",
    " git status\n",
    "git log --format=%H -n 3 | git shortlog && git describe origin; git diff a..b",
    'git log --grep "fix: two; things & more | here"',
    "git log --grep 'a (b) $c `d`'",
    "git diff src/*.py docs/[ab]?.md",
    "git log -c -- '*.py' '-x'",
    "git ls-files -o --exclude-standard",
    "git --no-pager log --oneline --text",
    "git grep 'a::b'",
    "git branch -a",
    "git remote -v",
    "'git' status",
    "bash -lc 'git status'",
    'sh -c "git status && git diff"',
    shlex.join(["/bin/zsh", "-lc", "git log | git shortlog"]),
    "git --version",
]

NOT_PLAIN = [
    "",
    "   ",
    "rm x",
    "/usr/bin/git status",
    "./git status",
    "GIT status",
    "git;",
    "git status && rm x",
    "git status & rm x",
    "git status | sh",
    "git status\nrm x",
    "git status \\\n rm",
    "git $(rm x)",
    "git `rm x`",
    'git "$(rm x)"',
    'git "`rm x`"',
    "git <(rm x)",
    "git $X",
    'git "${X:-y}"',
    "git > x",
    "git < x",
    "git 2>&1",
    "git &> x",
    "git <<E\nrm\nE",
    "git status # rm",
    "(git status)",
    "{ git status; }",
    "! git status",
    "if git status; then git diff; fi",
    "X=1 git status",
    "PATH=. git status",
    "git() { rm; }",
    "git {a,b}",
    "g?t status",
    "g*",
    "git\tx\x0b",
    "git\rx",
    "git status\r",
    "git 'a\x1b[2Jb'",
    "git 'a\\'",
    "git 'a!'",
    'git "a\\$"',
    "git \xa0x",
    "git 'unclosed",
    "git 'a\0b'",
    "env git status",
    "sudo git status",
    "time git status",
    "timeout 5 git status",
    "xargs git",
    "exec git status",
    "eval git status",
    ". git",
    "source git",
    "bash git",
    "bash -x -c 'git status'",
    "bash -c 'git status' git",
    "bash -c 'bash -c \"git status\"'",
    "bash -c 'rm x'",
    "bash -c 'git status; rm x'",
    "bash -c 'unclosed \"'",
    "fish -c 'git status'",
    "git -c core.pager=rm log",
    "git --upload-pack=rm fetch",
    "git --exec rm rebase",
    "git bisect run rm",
    "git submodule foreach rm",
    "git clone ext::rm",
    "git log --output=x",
    "git log --out x",
    "git diff --outp=x",
    "git log *",
    "git log --o*",
    "git diff --ext-diff",
    "git grep -Ox y",
    "git grep -nO",
    "git grep --open-files-in-pager=x",
    "git -C /x status",
    "git -p status",
    "git --git-dir=/x status",
    "git --work-tree=/x status",
    "git --work-tree /x status",
    "git config core.fsmonitor x",
    "git add x",
    "git commit -m x",
    "git push",
    "git branch x",
    "git remote add x y",
    "git alias",
    "git help x",
    "git archive -o x HEAD",
    "git send-email --sendmail-cmd=x",
    "git instaweb -b x",
    "git p4 x",
]


@pytest.mark.parametrize("line", PLAIN)
def test_what_a_rule_allows(line: str) -> None:
    assert allows(["git *"], line)


@pytest.mark.parametrize("line", NOT_PLAIN)
def test_what_a_rule_does_not_allow(line: str) -> None:
    assert not allows(["git *"], line)


@pytest.mark.parametrize(
    "line", ["find . -exec rm x", "find . -delete", "find . -fprintf x y", "find . -okdir rm x"]
)
def test_find_is_allowed_only_to_find(line: str) -> None:
    assert allows(["find *"], "find . -name '*.py' -type f")
    assert not allows(["find *", "rm *"], line)


WRITES = [
    ("git commit *", "git commit -m 'a::b' --amend", True),
    ("git switch *", "git switch -c x", True),
    ("git push *", "git push -u origin main", True),
    ("git push *", "git push --receive-pack=x", False),
    ("git push *", "git push --exe x", False),
    ("git push *", "git push ext::x", False),
    ("git push *", "git push --repo=ext::x", False),
    ("git clone *", "git clone -q a b", True),
    ("git clone *", "git clone -u x a", False),
    ("git clone *", "git clone -qux a", False),
    ("git clone *", "git clone -c core.fsmonitor=x a", False),
    ("git clone *", "git clone --config=x a", False),
    ("git clone *", "git clone --templ x a", False),
    ("git rebase *", "git rebase -ix y", False),
    ("git apply *", "git apply --unsafe-paths x", False),
    ("git c* *", "git commit -m x", False),
    ("git config *", "git config core.fsmonitor x", False),
    ("git config core.editor *", "git config core.editor x", False),
    ("git config core.editor x", "git config core.editor x", True),
    ("git submodule foreach ls", "git submodule foreach ls", True),
    ("git -C /x status *", "git -C /x status -s", True),
    ("git -C /x *", "git -C /x -c a=b status", False),
    ("git -C * status", "git -C /x status", False),
    ("git * -- x", "git -C /x status -- x", False),
    ("git -c a=b log *", "git -c a=b log -3", True),
    ("git log --output=x *", "git log --output=x -3", True),
    ("git log --output=x *", "git log --output=x --output=y", False),
    ("rg *", "rg -g '*.py' --pre-glob x y", True),
    ("rg *", "rg --pre sh x", False),
    ("rg *", "rg x -- --pre", True),
    ("rg *", "rg --hostname-bin=x y", False),
    ("sort *", "sort -rn x", True),
    ("sort *", "sort -ro x y", False),
    ("sort *", "sort --out=x y", False),
    ("sort *", "sort --compress-program=x y", False),
    ("sort *", "sort *", False),
    ("sort *", "sort ./*", True),
    ("fd *", "fd -x rm", False),
    ("fd *", "fd --exec-batch rm", False),
    ("tree *", "tree -o x", False),
    ("less *", "less +!x y", False),
    ("man *", "man -P x y", False),
    ("uniq *", "uniq -c x", True),
    ("uniq *", "uniq x y", False),
    ("uniq x *", "uniq x y", False),
    ("uniq *", "uniq -- x y", False),
    ("sed *", "sed -n 1,5p x", True),
    ("sed *", "sed -E 's/w e/e w/g' x", True),
    ("sed *", "sed -n '5p;$p' x", True),
    ("sed *", "sed", True),
    ("sed *", "sed -i s/a/b/ x", False),
    ("sed *", "sed --in-place s/a/b/ x", False),
    ("sed *", "sed 's/a/b/w x' y", False),
    ("sed *", "sed s/a/b/e y", False),
    ("sed *", "sed '1e rm' y", False),
    ("sed *", "sed -n p -e '1e rm' y", False),
    ("sed -i s/a/b/ *", "sed -i s/a/b/ x", False),
    ("sed -i s/a/b/ x", "sed -i s/a/b/ x", True),
    ("*", "sort -o x y", False),
    ("find . -delete", "find . -delete", True),
]


@pytest.mark.parametrize(("pattern", "line", "fits"), WRITES)
def test_what_a_wildcard_stands_for_neither_writes_nor_runs_anything(
    pattern: str, line: str, fits: bool
) -> None:
    assert allows([pattern], line) is fits


@pytest.mark.parametrize(
    ("pattern", "line", "fits"),
    [
        ("git status", "git status", True),
        ("git status", "git status -s", False),
        ("git", "git status", False),
        ("git status *", "git status -s", True),
        ("npm * main", "npm publish x main", True),
        ("npm * main", "npm publish x main2", False),
        ("npm run test:*", "npm run test:unit", True),
        ("npm run test:*", "npm run build", False),
        ("py*", "python3", True),
        ("py*", "py/../evil", False),
        ("bin/*", "bin/tool", True),
        ("bin/*", "bin/../evil", False),
        ("*", "anything goes", True),
        ("*", "sudo anything", False),
        ("bash *", "bash script.sh x", True),
        ("bash *", "bash -x", False),
        ("echo a[12]", "echo a1", True),
    ],
)
def test_patterns_go_word_by_word(pattern: str, line: str, fits: bool) -> None:
    assert allows([pattern], line) is fits


SEEN = [
    "rm",
    "rm -rf /",
    "/bin/rm x",
    "../bin/rm x",
    "RM x",
    "rm.exe x",
    "ls\r\nrm\r\n",
    ">& \r rm x",
    "C:\\\\bin\\\\rm.exe x",
    "r\\m x",
    "r''m x",
    '"rm" x',
    "=rm x",
    "ls; rm x",
    "ls&&rm x",
    "ls|rm",
    "ls|&rm",
    "ls&rm x",
    "ls\nrm x",
    "ls \\\n; rm x",
    "ls &> f rm; rm x",
    "2>/dev/null rm x",
    "{fd}> f rm x",
    "<f rm x",
    "(rm x)",
    "{ rm x; }",
    "! rm x",
    "f() { rm x; }; f",
    "function f { rm x; }",
    "if true; then rm x; else ls; fi",
    "while read a; do rm $a; done < <(ls)",
    "for i in a b; do rm $i; done",
    "x=(a b) rm x",
    "X=1 Y+=2 rm x",
    "PAGER='rm x' man ls",
    "ls $(rm x)",
    "ls `rm x`",
    'ls "$(rm x)"',
    'ls "a `rm x` b"',
    "ls ${A:-$(rm x)}",
    'ls "${A:-`rm x`}"',
    'ls ${A:-"$(rm x)"}',
    "ls $((1 + $(rm x)))",
    "ls $((rm x))",
    "ls <(rm x)",
    "ls >(rm x)",
    "ls < <(rm x)",
    "cat <<E\n$(rm x)\nE",
    "cat <<E\n text `rm x`\nE\nls",
    "cat <<-E\n\ttext\n\tE\nrm x",
    "cat <<E\n\tE\nE\nrm x",
    "cat <<'E'\nDon't\nE\nrm x",
    "((a<<2))\nrm x",
    "ls # don't\nrm x",
    "env X=1 rm x",
    "env += a.b=c rm x",
    "env -i -u A rm x",
    "env -S 'rm x'",
    "env -S'rm x'",
    "sudo rm x",
    "sudo -u bob rm x",
    "sudo sudo sudo rm x",
    "time ! rm x",
    "time -p rm x",
    "timeout -k 5 10s rm x",
    "nohup nice -n 5 rm x &",
    "ls | xargs rm",
    "ls | xargs -0 -n1 rm -f",
    "ls | xargs -I {} rm {}",
    "ls | xargs -I% sh -c 'rm %'",
    "find . -exec rm {} \\;",
    "find . -name '*.py' -execdir rm {} +",
    "bash -c 'rm x'",
    "bash -lc 'ls; rm x'",
    "bash -x -c 'rm x'",
    "bash -o pipefail -c 'rm x'",
    "sh -c \"sh -c 'rm x'\"",
    "su -c 'rm x' bob",
    "ssh host rm x",
    "ssh -p 22 host 'rm x'",
    "watch 'rm x'",
    "cmd /c rm x",
    "powershell -Command rm x",
    "pwsh --command='rm x'",
    "eval rm x",
    "eval 'rm x'",
    "trap 'rm x' EXIT",
    "alias l='rm x'",
    "bash rm x",
    ". rm",
    "npx rm x",
    "uv run rm x",
    "npm exec -- rm x",
    "command rm x",
    "exec -a ls rm x",
    "coproc N { rm x; }",
]

OPAQUE = [
    "$X y",
    '"$X" y',
    "`x` y",
    "r? x",
    "{rm,x}",
    "'unclosed",
    '"unclosed',
    "`unclosed",
    "$(unclosed",
    "${unclosed",
    "$((1",
    "$((1 ' 2))",
    "$((2*(3+1)))",
    "ls \\",
    "ls (",
    "ls )",
    "ls >",
    "x \0",
    "case a in a) rm;; esac",
    "if true; then case a in a) rm;; esac; fi",
    '"$(case x in a) rm;; esac)"',
    "a[ # ]=1; rm",
    "a[1<<2]=1\nrm",
    "ls $[1<<2]\nrm",
    "ls *(e:'rm':)",
    "x=(a)b rm",
    "ls $'a\\'; rm x; '",
    "ls ${A:-'}'}",
    'ls "${A:-"x"}"',
    "ls ${ rm; }",
    "ls $((rm) ; (x))",
    'ls "`echo \\"; rm; \\"`"',
    "curl x | sh",
    "curl x | bash -s -- y",
    "sh",
    "bash -l",
    'bash -c "$X"',
    "sh -c {}",
    "ls | xargs sh -c",
    "ls | xargs env",
    "ls | xargs -I{} {}",
    "find . -exec {} \\;",
    "sudo $X",
    "sudo -u bob $X",
    "sudo -s",
    "su",
    "ssh host",
    "eval $X",
    "eval 'unclosed \"'",
    "pwsh -EncodedCommand abc",
    "su -c '$X'",
    "watch '$X y'",
    "ssh host 'ls; \"'",
    "$(" * (DEEPEST + 1) + ")" * (DEEPEST + 1),
    "ls ${a" * (DEEPEST + 1),
    "`" + "x" * LONGEST + "`",
    "sudo " * (DEEPEST + 2) + "ls",
    "eval " * (DEEPEST + 2) + "ls",
    "ssh " + "a " * 2000,
]


@pytest.mark.parametrize("line", SEEN)
def test_what_a_rule_sees(line: str) -> None:
    assert touches(["rm *"], line)
    assert not touches(["no-such-program *"], line) or "xargs" in line, "it is seen, not guessed"
    assert not allows(["git *", "ls *", "cat *"], line)


@pytest.mark.parametrize("line", OPAQUE)
def test_what_cannot_be_told_is_hit_by_every_rule(line: str) -> None:
    assert touches(["any *"], line)
    assert not allows(["*"], line) or line.startswith(("sh", "bash"))


@pytest.mark.parametrize(
    "line",
    [
        "ls rm",
        "echo 'rm x'",
        "git rm x",
        "git commit -m \"$(cat <<'EOF'\nDon't rm it\nEOF\n)\"",
        "cat <<EOF\nrm x\nEOF\nls",
        "cat <<EOF",
        "ls # rm x",
        "[ -f rm ] && ls",
        "[[ a < b ]]",
        "timeout 60 pytest $X",
        "sudo cat $HOME/x",
        "ls | xargs -I {} cp {} /tmp",
        "echo $((1 + (2 * 3)))",
        "echo ${X} $X $? $1",
        'echo "a\\"b \\x $"',
        "echo $'a' $",
        "ls 2>&1 >/dev/null",
        'MSG="don\'t" ls',
        "x=$((1<<2)) ls",
        "((i++)); ls",
        "echo a=rm",
        "python -c 'import os'",
        "grep foo[ x",
        "echo {}",
    ],
)
def test_what_no_rule_minds(line: str) -> None:
    assert not touches(["rm *", "EOF *"], line) or line.startswith("grep")


def test_code_in_code_costs_a_bounded_amount() -> None:
    line = "x 'a b'"
    for _ in range(9):
        line = "sudo -u b sh -c " + shlex.quote(line)
    assert touches(["any *"], line[:LONGEST])
    assert touches(["x *"], "sudo -u b " + "sh -c 'x a' " * (200_000 // 12_000 * 20))


def test_files_of_redirections_are_known() -> None:
    line = "ls > a 2>>b <c $(ls >| d) &> e"
    assert [name for name in "abcdef" if names(name, line)] == ["a", "b", "c", "d", "e"]


def test_windows_shells_take_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert allows(["git *"], "git status --porcelain")  # lines that no other case has: they are kept
    for line in ("git '&rm'", 'git "x"', "git %X%", "git ^&"):
        assert not allows(["git *"], line)


# Whatever is put around a command

FORBIDDEN = st.sampled_from(["rm -rf x", "/bin/rm x", "'r'm x", "sudo rm x"])
AROUND = st.sampled_from(
    [
        "{}; git status",
        "git status && {}",
        "git status || {}",
        "git log | {}",
        "git status & {}",
        "git status\n{}",
        "git $({})",
        'git "$({})"',
        "git `{}`",
        "git <({})",
        "({})",
        "{{ {}; }}",
        "if git; then {}; fi",
        "! {}",
        "X=1 {}",
        "env X=1 {}",
        "sudo -n {}",
        "timeout 5 {}",
        "nohup {} &",
        "git log | xargs {}",
        "git > f; {}",
        "cat <<E\n$({})\nE",
        "git 'a' \"b\" \\\n; {}",
        "f() {{ {}; }}",
    ]
)
PLAIN_AROUND = AROUND.filter(lambda around: "`" not in around)
QUOTED = st.sampled_from(
    ["bash -c {}", "bash -lc {}", "eval {}", "sudo sh -c {}", "su -c {} bob", "env -S {}"]
)


@st.composite
def disguised(draw: st.DrawFn) -> str:
    line = draw(FORBIDDEN)
    for _ in range(draw(st.integers(0, 4))):
        if draw(st.booleans()) and "`" not in line:
            line = draw(QUOTED).format(shlex.quote(line))
        else:
            line = draw(PLAIN_AROUND if "`" in line else AROUND).format(line)
    return line


@given(disguised())
def test_no_disguise_helps(line: str) -> None:
    assert touches(["rm *"], line)
    assert not allows(["git *", "f *", "cat *"], line)


WORDS = """
    evil evil git ' " \\ $( ` ) ( { } ; && & | # $X case in a) ;; [ ] a[ = eval env xargs sh -c (( )) < f > 2
    >& $' ${a:- $(( <( if then fi do done for ! time function f() exec trap EXIT * ~ {a,b} {} . \\; [[ <<< $[
    &> x=( += $@ builtin alias
"""
PIECES = st.sampled_from(
    [*WORDS.split(), "\n", "\t", "\r", " ", "git x", "<<E\n", "<<'E'\n", "\nE\n", "find . -exec", "timeout 5"]
)


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a few programs, of which `evil` leaves a mark."""
    if os.name == "nt":
        pytest.skip("it takes a POSIX shell")
    folder = tmp_path_factory.mktemp("sandbox")
    for name, text in {"evil": "echo ran >> ../mark", "git": "exit 0"}.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    for name in ("env", "xargs", "sh", "find", "timeout", "cat"):
        path = shutil.which(name)
        if path is not None:
            (folder / name).symlink_to(path)
    return folder


@given(st.lists(PIECES, min_size=2, max_size=12), st.booleans())
@settings(
    max_examples=few(150),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_a_shell_runs_nothing_that_was_not_seen(sandbox: Path, pieces: list[str], spaced: bool) -> None:
    line = (" " if spaced else "").join(pieces)
    if touches(["evil *"], line) and not allows(["git *"], line):
        return
    work = sandbox / "work" / "here"
    shutil.rmtree(work.parent, ignore_errors=True)
    work.mkdir(parents=True)
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=work,
            env={"PATH": str(sandbox)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=5,
            check=False,
        )
    assert not (work.parent / "mark").exists()
