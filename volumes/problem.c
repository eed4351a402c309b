/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/problem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int
problem_set(struct problem *p, int err, const char *fmt, ...)
{
    va_list ap;

    p->err = err;
    p->expected[0] = p->type[0] = '\0';
    va_start(ap, fmt);
    vsnprintf(p->wrong, sizeof p->wrong, fmt, ap);
    va_end(ap);
    return err;
}

void
problem_expected(struct problem *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(p->expected, sizeof p->expected, fmt, ap);
    va_end(ap);
}

void
problem_type(struct problem *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(p->type, sizeof p->type, fmt, ap);
    va_end(ap);
}

void
problem_also(struct problem *p, const char *fmt, ...)
{
    size_t used = strlen(p->wrong);
    va_list ap;

    used += (size_t)snprintf(p->wrong + used, sizeof p->wrong - used, "%s", used ? "; " : "");
    if (used >= sizeof p->wrong)
        return;
    va_start(ap, fmt);
    vsnprintf(p->wrong + used, sizeof p->wrong - used, fmt, ap);
    va_end(ap);
}

int
problem_no_memory(struct problem *p)
{
    return problem_set(p, -ENOMEM, "kilnd has no memory for this");
}
