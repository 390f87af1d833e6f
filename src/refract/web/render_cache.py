"""A cache of images that are drawn on request, in an extraction process."""

from collections import OrderedDict
from typing import Any

from refract.core.errors import Unavailable
from refract.core.extraction.pool import ExtractionPool
from refract.core.extraction.tasks import ExtractionError, ExtractionTask, TaskRefused
from refract.core.runtime import Runtime
from refract.limits.shared_limits import RenderLimit

MAX_CACHED_IMAGES = 1_000
MAX_CACHED_BYTES = 16 * 1024 * 1024
"""Size of all cached images of a process."""


class ImageUnavailable(Unavailable):
    """The image can't be drawn right now. Try again in a moment."""


class RenderCache:
    """The images of a process (LRU). Drawing a new one is charged to the client's network."""

    def __init__(self, rt: Runtime) -> None:
        self._pool = rt.singleton(ExtractionPool)
        self._limit = rt.singleton(RenderLimit)
        self._images: OrderedDict[tuple[Any, ...], bytes] = OrderedDict()
        self._size = 0

    async def render(
        self, task: ExtractionTask, text: str, network: str, **arguments: str | int
    ) -> bytes:
        """Return the image that a task draws of a text. Raises `TaskRefused`.

        A cached image is not charged.
        """
        key = (task.kind, text, *arguments.values())
        if (image := self._images.get(key)) is not None:
            self._images.move_to_end(key)
            return image
        await self._limit.charge(network)
        try:
            image = b"".join(await self._pool.run(task, text.encode(), owner=network, **arguments))
        except TaskRefused:
            raise
        except ExtractionError as exc:
            raise ImageUnavailable from exc
        self._store(key, image)
        return image

    def _store(self, key: tuple[Any, ...], image: bytes) -> None:
        self._size += len(image) - len(
            self._images.pop(key, b"")
        )  # two requests may have drawn the same image
        self._images[key] = image
        while len(self._images) > MAX_CACHED_IMAGES or self._size > MAX_CACHED_BYTES:
            self._size -= len(self._images.popitem(last=False)[1])
