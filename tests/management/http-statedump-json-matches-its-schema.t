#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# /statedump.json has the contents of the statedump of SIGUSR1, for all bricks or one, with a bounded size, in the
# form of doc/statedump-schema.json. Only the management socket serves it.
# Covers: bricks/statedump-json.c, glusterfsd/http-routes.c, doc/statedump-schema.json

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"
export KILN_POOLS=on # in a build with ASan they are off if nobody says so, and then have no figures

kilnd_options=(--management-socket "$T/http" --metrics-address 127.0.0.1:9421)
volume_new v 1x2
volume_start v
mount_volume v "$T/mnt" plain
echo some >"$T/mnt/file"
read -r first second <<<"${volume_bricks[v]}"

get() {
    curl -sS --max-time 120 --unix-socket "$T/http" -o "$T/json" -w '%{http_code}' "http://kiln/statedump.json$1"
}
is "$(get "")" 200 "/statedump.json answers for all bricks"

# Every brick has the sections and keys of the text, in their order.
same_as_text() {
    python3 - "$T/json" "$1" "$source_dir/doc/statedump-schema.json" "$first" "$second" <<'PY'
import json, re, sys

def check(value, schema, where):
    """As much of JSON schema as the file uses."""
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
    assert isinstance(value, kinds[schema["type"]]), where
    if schema["type"] == "object":
        assert set(schema["required"]) <= set(value) <= set(schema["properties"]), (where, sorted(value))
        for key, inner in value.items():
            check(inner, schema["properties"][key], where + "." + key)
    if schema["type"] == "array":
        assert schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)), where
        for i, inner in enumerate(value):
            check(inner, schema["items"], "%s[%d]" % (where, i))
    if "minimum" in schema:
        assert value >= schema["minimum"], where

state = json.load(open(sys.argv[1]))
check(state, json.load(open(sys.argv[3])), "")
text = []
for line in open(sys.argv[2]):
    line = line.rstrip("\n")
    if line.startswith("["):
        text.append((line[1:-1], []))
    elif "=" in line:
        text[-1][1].append(line.split("=", 1)[0])
text = text[[title.startswith("brick.") for title, _ in text].index(True):]
assert [b["brick"] for b in state["bricks"]] == sys.argv[4:]
for brick in state["bricks"]:
    assert not brick["is_cut"] and brick["memory_bytes"] > 0 and brick["volume"] == "v"
    assert len(brick["sections"]) > 5
told = [(s["section"], [key for key, _ in s["lines"]]) for b in state["bricks"] for s in b["sections"]]
assert told == text, (told, text)
sizes = [p["bytes"] for p in state["top"]]
assert sizes == sorted(sizes, reverse=True) and len(sizes) == 20, sizes
PY
}
t "the JSON has the figures of the text, and matches the schema" same_as_text "$(dump_take "${daemon_pid[$(volume_daemons v)]}" "$T")"

bricks_in() {
    python3 -c 'import json, sys; print(*[(b["brick"], b["is_cut"]) for b in json.load(open(sys.argv[1]))["bricks"]])' "$T/json"
}
is "$(get "?brick=$second")" 200 "/statedump.json answers for a single brick"
is "$(bricks_in)" "('$second', False)" "the answer has only that brick"
is "$(get "?brick=$first&max_bytes=100")" 200 "/statedump.json answers with a bound on the size"
is "$(bricks_in)" "('$first', True)" "the answer is cut, and says so"
is "$(get "?brick=/none")" 404 "an unknown brick is 404"
for bad in 0 -1 x 99999999999999999999 1k; do
    is "$(get "?max_bytes=$bad")" 400 "max_bytes=$bad is refused"
done
is "$(curl -sS --max-time 120 -o /dev/null -w '%{http_code}' http://127.0.0.1:9421/statedump.json)" 404 "the TCP address does not serve /statedump.json"
