/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* must(): what any thread of a unit test may claim, as often as it likes.
 *
 * Check's own ck_assert belongs to the thread that runs the test. Each one writes its place into a file that
 * the test's parent reads at the end: 100 million of them are more than that can read, and one that fails
 * leaves its test by exit(), beside the other threads. This says what does not hold, and aborts: Check then
 * reports a signal. */
#ifndef KILN_BASE_TEST_MUST_H
#define KILN_BASE_TEST_MUST_H

#include <stdio.h>
#include <stdlib.h>

#define must(claim) ((claim) ? (void)0 : must_have_held(__FILE__, __LINE__, #claim))

static inline _Noreturn void
must_have_held(const char *file, int line, const char *claim)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, claim);
    abort();
}

#endif
