/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The main() of a unit test: include it last, after a function `Suite *test_suite(void)`. */
#ifndef KILN_BASE_TEST_MAIN_H
#define KILN_BASE_TEST_MAIN_H

#include <check.h>
#include <stdlib.h>

int
main(void)
{
    /* Check's limits, by default four seconds a test, assume an otherwise idle machine. The limit exists
     * only to end a test that hangs. */
    setenv("CK_TIMEOUT_MULTIPLIER", "10", 0);

    SRunner *runner = srunner_create(test_suite());

    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
