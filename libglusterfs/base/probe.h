/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#ifndef KILN_BASE_PROBE_H
#define KILN_BASE_PROBE_H

/* Static probes (USDT), provider `kiln`, for perf, bpftrace and SystemTap: each is a nop and a note in the
 * binary.
 *
 *   pool_get_slow(pool's name, id)          a get that did not find an object in the thread's loaded magazine
 *   pool_sweep(microseconds, cached bytes)  a pass of the sweeper, at its end
 *   pool_trim(level, bytes released)        an explicit trim or one under memory pressure, at its end
 *   fop_start(fop, call stack, client)      a file operation, before its arguments are decoded
 *   fop_done(fop, call stack, client, op_ret, op_errno)   its answer is complete and about to be encoded
 *
 * `fop` is the number on the wire (stack/fops.def). extras/perf has scripts that use the probes. Without
 * <sys/sdt.h>, or with KILN_NO_PROBES defined, the macros do nothing; their arguments must not have side
 * effects. */

#if !defined(KILN_NO_PROBES) && defined(__has_include)
#if __has_include(<sys/sdt.h>)
#define KILN_HAS_PROBES 1
#endif
#endif

#ifdef KILN_HAS_PROBES
#include <sys/sdt.h>
#define PROBE2(name, a, b) DTRACE_PROBE2(kiln, name, a, b)
#define PROBE3(name, a, b, c) DTRACE_PROBE3(kiln, name, a, b, c)
#define PROBE5(name, a, b, c, d, e) DTRACE_PROBE5(kiln, name, a, b, c, d, e)
#else
#define PROBE2(name, a, b) ((void)(a), (void)(b))
#define PROBE3(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#define PROBE5(name, a, b, c, d, e) ((void)(a), (void)(b), (void)(c), (void)(d), (void)(e))
#endif

#endif
