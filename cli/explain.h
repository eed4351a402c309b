/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* explain: a statedump in plain words: the owners of memory, the calls that wait and the reasons. */
#ifndef KILN_CLI_EXPLAIN_H
#define KILN_CLI_EXPLAIN_H

#include <jansson.h>
#include <stddef.h>

/* Reads a statedump's text or /statedump.json's answer, and returns {"sections": [{"section", "lines":
 * [[key, value], ...]}, ...], "memory": {brick: bytes}, "resident_bytes", "top"}; the last two of JSON alone.
 * The caller owns the result. NULL: the text is neither, or there is no memory. */
json_t *explain_read(const char *text, size_t size);
/* Returns {"memory": [sentence, ...], "waits": [...], "slow": [...], "bricks": [...]}, which the caller owns.
 * NULL: no memory. */
json_t *explain_say(const json_t *dump);

#endif
