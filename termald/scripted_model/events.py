"""The events of one Responses stream, as bytes.

The shapes are those of the public Responses API; Codex needs only some of them (`output_item.added`,
`output_text.delta`, `output_item.done`, `completed`), other clients need the rest.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from termald.scripted_model.plan import Usage

Item = dict[str, Any]

BATCH_BYTES = 32_768  # about 160 deltas a write: past this size the writes no longer cost anything that can be measured

# An arguments event per kind of tool call: (event, field of the item that holds the arguments).
_ARGUMENT_EVENTS = {
    "function_call": ("response.function_call_arguments", "arguments"),
    "custom_tool_call": ("response.custom_tool_call_input", "input"),
}


def sse(event: str, data: bytes) -> bytes:
    """Return one server-sent event; each line of the data becomes a `data:` line."""
    lines = data.split(b"\n")
    return b"event: " + event.encode() + b"\n" + b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"


class ResponseEvents:
    """Writes the events of one response, in order, and remembers the output they add up to.

    At most one message or reasoning item is open at a time; opening another item closes it.
    """

    def __init__(self, response_id: str, model: str, created_at_s: int) -> None:
        self._id = response_id
        self._model = model
        self._created_at_s = created_at_s
        self._sequence = 0
        self._output: list[Item] = []
        self._open: Item | None = None
        self._text: list[str] = []

    def created(self) -> bytes:
        """The first event."""
        return self._event("response.created", response=self._response("in_progress"))

    def text(self, pieces: tuple[str, ...]) -> Iterator[bytes]:
        """Text of the current message, one delta each, several to a chunk; opens the message if none is open."""
        if self._open is None or self._open["type"] != "message":
            yield self.close_item() + self._open_message()
        yield from self._deltas("response.output_text.delta", "content_index", pieces)

    def reasoning(self, pieces: tuple[str, ...]) -> Iterator[bytes]:
        """The summary of the current reasoning item; opens one if none is open."""
        if self._open is None or self._open["type"] != "reasoning":
            yield self.close_item() + self._open_reasoning()
        yield from self._deltas("response.reasoning_summary_text.delta", "summary_index", pieces)

    def close_item(self) -> bytes:
        """End the open item, if there is one."""
        item, self._open = self._open, None
        if item is None:
            return b""
        text, self._text = "".join(self._text), []
        if item["type"] == "message":
            return self._close_message(item, text)
        return self._close_reasoning(item, text)

    def tool_call(self, item: Item) -> bytes:
        """A whole tool call; `item` is one of `tools.tool_item`."""
        closing = self.close_item()
        index, item = len(self._output), {"id": self._item_id("call"), **item}
        chunks = [
            closing,
            self._event("response.output_item.added", output_index=index, item={**item, "status": "in_progress"}),
        ]
        if item["type"] in _ARGUMENT_EVENTS:
            event, field = _ARGUMENT_EVENTS[item["type"]]
            place = {"item_id": item["id"], "output_index": index}
            chunks.append(self._event(f"{event}.delta", **place, delta=item[field]))
            chunks.append(self._event(f"{event}.done", **place, **{field: item[field]}))
        chunks.append(self._done(item))
        return b"".join(chunks)

    def completed(self, usage: Usage) -> bytes:
        """The last event of an answer that came to its end."""
        closing = self.close_item()
        return closing + self._event("response.completed", response=self._response("completed", usage=_usage(usage)))

    def incomplete(self, usage: Usage, reason: str) -> bytes:
        """The last event of an answer that was cut short and says so."""
        closing = self.close_item()
        details = {"reason": reason}
        response = self._response("incomplete", usage=_usage(usage), incomplete_details=details)
        return closing + self._event("response.incomplete", response=response)

    def failed(self, error: dict[str, Any]) -> bytes:
        """The last event of an answer that failed; an open item stays open."""
        return self._event("response.failed", response=self._response("failed", error=error))

    def _open_message(self) -> bytes:
        item: Item = {
            "type": "message",
            "id": self._item_id("msg"),
            "role": "assistant",
            "status": "in_progress",
            "content": [],
        }
        self._open = item
        index = len(self._output)
        added = self._event("response.output_item.added", output_index=index, item=item)
        part = {"type": "output_text", "text": "", "annotations": []}
        place = {"item_id": item["id"], "output_index": index, "content_index": 0}
        return added + self._event("response.content_part.added", **place, part=part)

    def _close_message(self, item: Item, text: str) -> bytes:
        place = {"item_id": item["id"], "output_index": len(self._output), "content_index": 0}
        part = {"type": "output_text", "text": text, "annotations": []}
        said = self._event("response.output_text.done", **place, text=text)
        ended = self._event("response.content_part.done", **place, part=part)
        return said + ended + self._done({**item, "status": "completed", "content": [part]})

    def _open_reasoning(self) -> bytes:
        item: Item = {"type": "reasoning", "id": self._item_id("rs"), "summary": []}
        self._open = item
        index = len(self._output)
        added = self._event("response.output_item.added", output_index=index, item=item)
        place = {"item_id": item["id"], "output_index": index, "summary_index": 0}
        part = {"type": "summary_text", "text": ""}
        return added + self._event("response.reasoning_summary_part.added", **place, part=part)

    def _close_reasoning(self, item: Item, text: str) -> bytes:
        place = {"item_id": item["id"], "output_index": len(self._output), "summary_index": 0}
        part = {"type": "summary_text", "text": text}
        said = self._event("response.reasoning_summary_text.done", **place, text=text)
        ended = self._event("response.reasoning_summary_part.done", **place, part=part)
        return said + ended + self._done({**item, "summary": [part]})

    def _done(self, item: Item) -> bytes:
        event = self._event("response.output_item.done", output_index=len(self._output), item=item)
        self._output.append(item)
        return event

    def _deltas(self, event: str, part_index: str, pieces: tuple[str, ...]) -> Iterator[bytes]:
        """One event per piece, put together by hand: benchmarks run this loop, and only two values change."""
        assert self._open is not None, "the item is opened before its deltas"
        self._text.extend(pieces)
        place = {"item_id": self._open["id"], "output_index": len(self._output), part_index: 0}
        head = (
            f"event: {event}\ndata: ".encode()
            + msgspec.json.encode({"type": event, **place})[:-1]
            + b',"sequence_number":'
        )
        encode = msgspec.json.encode
        batch, size = [], 0
        for piece in pieces:
            line = b'%b%d,"delta":%b}\n\n' % (head, self._sequence, encode(piece))
            self._sequence += 1
            batch.append(line)
            size += len(line)
            if size >= BATCH_BYTES:
                yield b"".join(batch)
                batch, size = [], 0
        if batch:
            yield b"".join(batch)

    def _event(self, event: str, **fields: object) -> bytes:
        data = msgspec.json.encode({"type": event, "sequence_number": self._sequence, **fields})
        self._sequence += 1
        return sse(event, data)

    def _item_id(self, prefix: str) -> str:
        return f"{prefix}_{self._id.removeprefix('resp_')}_{len(self._output)}"

    def _response(self, status: str, **more: object) -> dict[str, object]:
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created_at_s,
            "status": status,
            "model": self._model,
            "output": self._output,
            "usage": None,
            "error": None,
            "incomplete_details": None,
            **more,
        }


def _usage(usage: Usage) -> dict[str, object]:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }
