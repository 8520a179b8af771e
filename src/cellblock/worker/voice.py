"""What is said to the host: one message at a time, each of them whole, by this process alone."""

from __future__ import annotations

from os import getpid
from threading import RLock

from cellblock.wire.messages import Event
from cellblock.worker.channel import Channel
from cellblock.worker.interrupts import whole
from cellblock.worker.show.mime import Bundle
from cellblock.worker.streams import Streams


class Voice:
    """Speaks on a channel. Threads of the cells show things too, and live on between requests."""

    __slots__ = ("_channel", "_lock", "_pid", "_speaking", "_streams")

    def __init__(self, channel: Channel, streams: Streams) -> None:
        self._channel = channel
        self._streams = streams
        self.move()

    def move(self) -> None:
        """This process is the one that speaks: a new one, or one that was a copy, where no other thread goes on."""
        self._pid = getpid()
        self._lock = RLock()
        self._speaking = False

    def show(self, shown: Bundle, is_result: bool = False) -> None:
        """Show a bundle at this place of the text. A forked child shows nothing: the host takes nothing of it."""
        if getpid() != self._pid:
            return
        whole(self.speak, shown.display(is_result=is_result, mark=self._streams.place()))

    def speak(self, event: Event) -> None:
        """Send one event: not between another thread's packets, and not left half said."""
        with self._lock:
            if self._speaking:  # a finalizer that shows something ran in the middle of a message
                return
            self._speaking = True
            try:
                self._channel.send(event)
            finally:
                self._speaking = False
