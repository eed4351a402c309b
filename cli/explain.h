/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* explain: a statedump in plain words: where memory is, and what waits on what. */
#ifndef KILN_CLI_EXPLAIN_H
#define KILN_CLI_EXPLAIN_H

#include <jansson.h>
#include <stddef.h>

/* A statedump's text, or /statedump.json's answer, as one of these: {"sections": [{"section", "lines":
 * [[key, value], ...]}, ...], "memory": {brick: bytes}, "resident_bytes", "top"}; the last two of JSON alone.
 * The caller's; NULL: it is neither, or there is no memory. */
json_t *explain_read(const char *text, size_t size);
/* {"memory": [sentence, ...], "waits": [...], "slow": [...], "bricks": [...]}: the caller's; NULL: no
 * memory. */
json_t *explain_say(const json_t *dump);

#endif
