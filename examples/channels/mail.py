"""A channel that sends whole messages: mails, into an outbox in the current folder.

    python examples/channels/mail.py

The result of the run is a value, and ``text=`` makes the mail's text from it. A real channel would pass the
message to a server (``smtplib.SMTP.send_message``, in a thread too, because it blocks).
"""

from __future__ import annotations

from email.message import EmailMessage
from mailbox import Maildir

import anyio
from anyio import to_thread
from pydantic import BaseModel

from thinkwell import open_agent
from thinkwell.channels import DeliverySettings, deliver


class Mail:
    """Writes mails. A user's name is the address."""

    settings = DeliverySettings(stalled_after=600, attempts=10)  # a mail may take its time, and has to arrive

    def __init__(self, outbox: str, sender: str) -> None:
        self._outbox = outbox
        self._sender = sender

    async def send(self, user_id: str, text: str) -> None:
        """Send a mail; its first line is the subject too."""
        mail = EmailMessage()
        mail["From"] = self._sender
        mail["To"] = user_id  # refused with ValueError where it has a line break
        mail["Subject"] = text.partition("\n")[0][:70]
        mail.set_content(text)
        await to_thread.run_sync(lambda: Maildir(self._outbox).add(mail))


class Review(BaseModel):
    """The result that we want."""

    title: str
    suggestions: list[str]


def in_words(review: Review) -> str:
    """Return the text of the mail."""
    return "\n".join([review.title, "", *(f"- {suggestion}" for suggestion in review.suggestions)])


async def main() -> None:
    async with open_agent() as agent:
        stream = agent.think(Review).text("Review this folder.").stream()
        delivery = await deliver(
            stream, Mail("outbox", "agent@example.org"), "ada@example.org", text=in_words
        )
    print(f"{delivery.status} after {delivery.metrics.attempts} attempt: a mail to {delivery.user_id}")


if __name__ == "__main__":
    anyio.run(main)
