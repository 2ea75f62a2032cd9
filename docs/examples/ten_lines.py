"""A session, a prompt, the answer as it comes."""

from termald.client.blocking import connect
from termald.client.events import ItemDelta

with connect(start=True) as termald:
    session = termald.session("ten-lines", title="Ten lines")
    for event in session.run("What is in this folder?"):
        if isinstance(event, ItemDelta) and event.channel == "text":
            print(event.delta, end="", flush=True)
    print(f"\n{session.info().message_count} messages so far")
