/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* must(): an assertion for any thread of a unit test, as often as needed. Check's own ck_assert belongs to
 * the thread that runs the test: each call writes its place into a file that the test's parent reads at
 * the end, so 100 million calls are more than the parent can read, and a failing call ends the test by
 * exit() while other threads run. must() prints the failed condition and aborts: Check then reports a
 * signal. */
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
