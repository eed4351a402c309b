/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* reason: the text of a refusal, on its way up to the caller that logs the text or sends it to the peer. The
 * struct belongs to the caller and is empty at first; the function returns an -errno in addition. thread: the
 * owner of the struct, which contains the text itself. */
#ifndef KILN_BASE_REASON_H
#define KILN_BASE_REASON_H

struct reason {
    char text[512]; /* "": no explanation besides the errno */
};

/* Sets the text, replacing an earlier one; a longer text is cut. Returns `err` (-errno), so that a refusal
 * is one line:
 *     return reason_set(why, -EINVAL, "option index-base is missing"); */
int reason_set(struct reason *why, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
