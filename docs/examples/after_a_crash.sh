#!/bin/sh
# The same from curl: a session with a name, a prompt with a key, its events from where one got to.
#
#   sh after_a_crash.sh JOB PROMPT
set -eu
job=$1 prompt=$2
socket=$(termald status --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["daemon"]["socket"])')

ask() { path=$1; shift; curl --silent --show-error --fail-with-body --unix-socket "$socket" "http://localhost$path" "$@"; }
json() { python3 -c 'import json, sys; print(json.dumps(dict(zip(sys.argv[1::2], sys.argv[2::2]))))' "$@"; }

# Made at most once: the second time the key gives the first answer again.
json id "$job" cwd "$PWD" |
    ask /api/sessions -H 'Content-Type: application/json' -H "Idempotency-Key: $job" --data @- > /dev/null
id=$(json input "$prompt" |
    ask "/api/sessions/$job/prompts" -H 'Content-Type: application/json' -H "Idempotency-Key: $job-prompt" --data @- |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["prompt"]["id"])')

folder=$(mktemp -d)
mkfifo "$folder/events"
trap 'rm -r "$folder"' EXIT

# `after=0` is the beginning of the log. Where the daemon goes away, the stream ends: then it is asked for again, behind
# the last number that was seen.
echo 0 > "$folder/last"
while :; do
    ask "/api/sessions/$job/events?after=$(cat "$folder/last")" --no-buffer > "$folder/events" &
    curl=$!
    code=0
    python3 -c '
import json, sys
prompt, last = sys.argv[1:]
for line in sys.stdin:
    if line.startswith("data: "):
        event = json.loads(line[6:])
        with open(last, "w") as seen:
            print(event["seq"], file=seen)
        if event["kind"] == "item/completed" and event["item"]["type"] == "agentMessage":
            print(event["item"]["text"], flush=True)
        if event.get("promptId") == prompt and event.get("state") in ("done", "failed", "cancelled", "not_delivered"):
            sys.exit(0 if event["state"] == "done" else 4)
sys.exit(9)' "$id" "$folder/last" < "$folder/events" || code=$?
    kill "$curl" 2> /dev/null || true
    [ "$code" = 9 ] || exit "$code"
    sleep 1
done
