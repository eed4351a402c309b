/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* realloc() that fails when scene_starve() says so, for tests that are linked with --wrap=realloc. */
#include <stddef.h>

#include "mem/mem-shared.h"

void *__real_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size);

void *
__wrap_realloc(void *block, size_t size)
{
    return mem_test_fails() ? NULL : __real_realloc(block, size);
}
