/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* top-answer: GET /top, the figures of `kiln top`. thread: a handler's (daemon/http.h). */
#ifndef KILN_BRICKS_TOP_ANSWER_H
#define KILN_BRICKS_TOP_ANSWER_H

#include <stddef.h>

struct http_answer;
struct http_request;

/* A handler of daemon/http.h, which asks no disk. */
void top_answer(const struct http_request *req, struct http_answer *answer);
/* The same as a text, which the caller frees. NULL: no memory, or kilnd ends meanwhile. */
char *top_text(unsigned ms, size_t slow);

#endif
