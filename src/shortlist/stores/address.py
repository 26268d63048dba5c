"""The address of a PostgreSQL store: checked, and shown without its password.

Ambiguous addresses are refused: PostgreSQL's library might quote a piece of the password as a host
or a port in its messages."""

import re
from urllib.parse import parse_qsl, unquote, urlsplit

from shortlist.errors import InvalidInput

SCHEMES = ("postgresql://", "postgres://")
SECRETS = ("password", "sslpassword")  # settings that the query may contain
HOST = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\[\]:@]*)(:[0-9]*)?")
UNREADABLE = re.compile(r"[\s#]|%00|%(?![0-9A-Fa-f]{2})")
SHORTEST = 3  # characters of a password that is removed from messages


def is_postgres(place: object) -> bool:
    """Whether this is the address of a PostgreSQL store."""
    return isinstance(place, str) and place.startswith(SCHEMES)


def shown_place(place: str) -> str:
    """The address of a store without password and settings; the path of a file as it is."""
    if not is_postgres(place):
        return place
    address = urlsplit(re.split(r"[\s#]", place)[0])
    credentials, at, hosts = address.netloc.rpartition("@")
    if "@" in f"{address.path}{address.query}" or not _are_hosts(hosts):
        return "postgresql://…"
    return f"postgresql://{credentials.partition(':')[0]}{at}{hosts}{address.path}"


def check_address(url: str) -> None:
    """Refuse an ambiguous address."""
    address = urlsplit(url)
    credentials, _, hosts = address.netloc.rpartition("@")
    elsewhere = f"{credentials}{address.path}{address.query}"
    if UNREADABLE.search(url) or "@" in elsewhere or not _are_hosts(hosts):
        raise InvalidInput(
            f"`store` is {shown_place(url)}, but must be like postgresql://user@host:5432/database,"
            " with %40 for @, %2F for / and so on in names and passwords"
        )


def without_secrets(message: str, url: str) -> str:
    """A message about an address, without the passwords in it."""
    address = urlsplit(url)
    own = address.netloc.rpartition("@")[0].partition(":")[2]
    given = [value for name, value in parse_qsl(address.query) if name in SECRETS]
    for secret in {own, unquote(own), *given}:
        if len(secret) >= SHORTEST:
            message = message.replace(secret, "…")
    return message


def _are_hosts(hosts: str) -> bool:
    return all(HOST.fullmatch(host) for host in hosts.split(","))
