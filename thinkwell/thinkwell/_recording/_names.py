"""Which names promise a secret, and which values are none whatever they are called.

A name is split into words at case and punctuation, so `apiKey`, `API_KEY` and `x-api-key` are alike.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NameKind: TypeAlias = Literal["plain", "secret", "password", "authorization", "cookie"]
"""What a name says of its value: nothing, or which sort of secret."""

SHORTEST: Final = 6
"""Characters below which a value is no *known* secret: it would be found in too many innocent words."""

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NAME_LIMIT: Final = 80
_PASSWORDS: Final = ("password", "passwd", "passphrase", "passcode", "pwd")
_SECRETS: Final = (
    "secret",
    "secrets",
    "apikey",
    "accesskey",
    "privatekey",
    "secretkey",
    "credential",
    "credentials",
)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ALONE: Final = frozenset({"auth", "bearer", "dsn", "mnemonic", "otp", "totp"})
_PAIRS: Final = frozenset({("connection", "string"), ("conn", "string"), ("conn", "str")})

# A last word that speaks about a secret: TOKEN_URL, KEY_ID, PASSWORD_FILE, tokenCount, SSH_AUTH_SOCK.
_ABOUT: Final = _set(
    """age alg algorithm at board budget cmd command count counts description dir directory enabled endpoint
    env expiration expires expiry field file files format header helper hint host id ids in index info kind
    label len length limit limits map max method methods min mode name names param path paths pid policy port
    prefix program provider required ring scheme scope scopes size sock socket state status supported timeout
    title ttl type types uri url usage used valid var version"""
)

# A word before "token" that makes it one of text, of a page or of a request: no secret.
_COUNTED: Final = _set(
    """bos cached cancellation completion context continuation cursor eos input last mask max min next num
    output pad page per progress prompt reasoning sep special stop sync text thought total unk"""
)
_KEY_KINDS: Final = _set(
    """access account admin api app application auth client consumer decryption deploy ecdsa encrypt
    encryption hmac integration jwt license licence master private rsa secret server service session shared
    signing ssh ssl storage subscription tls webhook"""
)
# GPG_KEY is the public fingerprint that official images of languages set.
_OPEN_KEYS: Final = _set("cache foreign gpg group hot order partition primary pub public registry sort")

_WORDS: Final = _set(
    """any auto basic bearer bool boolean bytes credential credentials default disabled enabled failed false
    file header hidden incorrect invalid key keychain keyring missing nil none not null oauth off on optional
    parameter password passwords prompt protected required secret secrets secretstr str string success text
    the token tokens true undefined unknown unset valid value wrong yes no"""
)

_HARMLESS: Final = _set(
    """COLORTERM COLUMNS DISPLAY EDITOR HOME HOSTNAME LANG LANGUAGE LINES LOGNAME MAIL NODE_ENV OLDPWD OSTYPE
    PAGER PATH PWD SHELL SHLVL TEMP TERM TERM_PROGRAM TMP TMPDIR TZ USER USERNAME VIRTUAL_ENV VISUAL
    accept accept-encoding accept-language cache-control connection content-encoding content-length
    content-type date host mcp-protocol-version user-agent"""
)

_ROOTED: Final = re.compile(
    r"(?:~|[A-Za-z]:|/(?:Applications|Library|Users|Volumes|app|data|etc|home|mnt|nix|opt|private|root|run|srv"
    r"|tmp|usr|var|workspace))(?:[/\\][\w .@~-]*)*"
)
_PATHS: Final = re.compile(
    r"(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w .@~-]{0,80})+(?::(?:[/\\][\w .@~-]{0,80})+)*"
)
_PLAIN_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[\w.-]+(?::\d+)?(?:/[\w.-]{0,24})*")
_NUMBER: Final = re.compile(r"[+-]?[0-9][0-9.,_:%]*")
_MEDIA_TYPE: Final = re.compile(r"(?:application|audio|image|model|text|video)/[a-z0-9.+-]+(?:;.*)?")
_USERINFO: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^\s/?#]*)@")
_SCHEME: Final = re.compile(r"(?i:bearer|basic|token|digest|apikey|negotiate)\s+(?=\S)")


def name_kind(name: str) -> NameKind:
    """Say what the name of a variable, key, header, flag or parameter tells about its value."""
    return _kind(name[-_NAME_LIMIT:])


@lru_cache(maxsize=4096)
def _kind(name: str) -> NameKind:
    words = [word.lower() for word in _WORD.findall(name)]
    while words and words[-1].isdigit():
        words.pop()
    if not words or name in ("PWD", "OLDPWD") or (words[-1] in _ABOUT and words[-2:] != ["secret", "id"]):
        return "plain"
    if any(word.endswith(_PASSWORDS) for word in words) or (len(words) > 1 and words[-1] == "pass"):
        return "password"
    if "cookie" in words or "cookies" in words:
        return "cookie"
    if words[-1] == "authorization":
        return "authorization"
    if any(word.endswith(_SECRETS) or word in _ALONE for word in words) or tuple(words[-2:]) in _PAIRS:
        return "secret"
    if words[-1] == "jwt" or (words[-1] == "pat" and len(words) > 1 and name.isupper()):
        return "secret"
    return "secret" if _is_token(words) or _is_key(words, upper=name.isupper()) else "plain"


def _is_token(words: list[str]) -> bool:
    if words[-1] == "tokens":
        return words[-2:-1] in (["access"], ["api"], ["auth"], ["bearer"], ["refresh"])
    return any(word.endswith("token") for word in words) and _COUNTED.isdisjoint(words)


def _is_key(words: list[str], *, upper: bool) -> bool:
    """Whether a key is meant that opens something; of variables each `…_KEY` is taken for one."""
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        if word in ("key", "keys") and (before in _KEY_KINDS or (upper and place == len(words) - 1)):
            return before not in _OPEN_KEYS and "public" not in words
    return False


def is_word(value: str) -> bool:
    """Whether a value is a word that settings and prose are full of, such as `true`, `none` or `required`."""
    return value.lower() in _WORDS


def is_rooted(value: str) -> bool:
    """Whether a value is a path below one of the usual roots."""
    return _ROOTED.fullmatch(value) is not None


def is_plain(value: str) -> bool:
    """Whether a value is no secret by its look: a setting's word, a number, paths, a bare URL."""
    return not value or is_word(value) or any(look.fullmatch(value) for look in (_NUMBER, _PATHS, _PLAIN_URL))


def is_harmless(name: str) -> bool:
    """Whether this variable or header is known to hold no secret."""
    return name in _HARMLESS or name.lower() in _HARMLESS or name.startswith("LC_")


def credential(value: str) -> str:
    """The part of an Authorization value behind the scheme, or all of it."""
    scheme = _SCHEME.match(value)
    return value[scheme.end() :] if scheme else value


def parts(value: str) -> Iterator[str]:
    """What may be secret by itself in a secret value: all of it, the credential, the values of cookies."""
    yield value
    yield credential(value)
    for pair in value.split(";"):
        yield pair.partition("=")[2].strip()


def is_learnable(value: str) -> bool:
    """Whether a value found under a secret's name may be looked for everywhere else.

    It has eight characters or more, is no plain value (see `is_plain`), no media type and no single word.
    """
    word = (len(value) <= 16 and value.isalpha()) or _MEDIA_TYPE.fullmatch(value)
    return len(value) >= 8 and not is_plain(value) and not word


def known_secrets(environment: Mapping[str, str], explicit: Mapping[str, str]) -> dict[str, str]:
    """Pick the secrets out of variables: by value, with the variable's name."""
    found: dict[str, str] = {}
    for name, value in environment.items():
        found.update((secret, name) for secret in _by_name(name, value.strip()))
    for name, value in explicit.items():
        secrets = list(_by_name(name, value.strip())) or list(_by_value(name, value.strip()))
        found.update((secret, name) for secret in secrets)
    return found


def _by_name(name: str, value: str) -> Iterator[str]:
    if name_kind(name) != "plain" and not is_word(value) and not is_rooted(value):
        yield from (part for part in parts(value) if len(part) >= SHORTEST)
    userinfo = _USERINFO.match(value)
    if userinfo:
        password = userinfo[1].partition(":")[2]
        yield from (part for part in (password, unquote(password)) if len(part) >= SHORTEST)


def _by_value(name: str, value: str) -> Iterator[str]:
    """The caller's own values: all but those that are no secret by name or look, or one short word."""
    word = len(value) <= 12 and value.isalpha()
    if len(value) >= SHORTEST and not word and not is_harmless(name) and not is_plain(value):
        yield value
