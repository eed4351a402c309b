/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* sandbox-calls: the lists of the system calls and capabilities that each role of a process keeps. The tables
 * are constant, so any thread may read them. */
#ifndef KILN_DAEMON_SANDBOX_CALLS_H
#define KILN_DAEMON_SANDBOX_CALLS_H

#include <stdint.h>

#include "daemon/sandbox.h"

/* Whether the handler of SIGSYS knows the register of a call's result. Elsewhere refused calls fail without a
 * signal, and the kernel's audit log has the number. */
#if defined(__x86_64__) || defined(__aarch64__)
#define SANDBOX_CAN_TRAP 1
#else
#define SANDBOX_CAN_TRAP 0
#endif

/* A row: the call is allowed, or allowed if an argument passes the check. A call with several rows is allowed
 * if one of the rows allows it. */
struct sandbox_call {
    const char *name; /* NULL ends the table */
    int number;       /* of calls that libseccomp 2.5.4 does not know; else 0 */
    unsigned argument;
    struct {
        int op; /* enum scmp_compare; 0: no check */
        uint64_t mask_or_value, value;
    } check;
};

/* Returns the tables of a role; NULL ends the array. */
const struct sandbox_call *const *sandbox_tables(enum sandbox_role role);
/* Returns the capabilities that a role keeps; -1 ends the array. */
const int *sandbox_capabilities(enum sandbox_role role);

#endif
