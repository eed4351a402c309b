/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* reason: why something was refused, in words, on its way up to whoever asked: the one place that logs it or
 * answers with it. A struct of the caller's, empty to begin with; an -errno goes beside it as the function's
 * result. thread: whoever has the struct, which holds its text itself. */
#ifndef KILN_BASE_REASON_H
#define KILN_BASE_REASON_H

struct reason {
    char text[512]; /* "": nothing was said, the errno is all there is */
};

/* Says it, in place of what was said before; a longer text is cut. Returns `err` (-errno), so that a refusal
 * is one line:
 *     return reason_set(why, -EINVAL, "option index-base is missing");
 */
int reason_set(struct reason *why, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
