/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* read-section: RCU (liburcu's default flavour), made visible to ThreadSanitizer.
 *
 * liburcu orders a reader's last access before the return of synchronize_rcu() with membarrier(2), which
 * TSan does not know: it would report every free after a grace period. So in TSan's builds the end of a
 * section is a release and the end of the wait an acquire of one address. That adds an order only between
 * readers and the waiting thread, which really exists: races between two readers are still reported. */
#ifndef KILN_BASE_READ_SECTION_H
#define KILN_BASE_READ_SECTION_H

#include <urcu.h>

#if defined(__SANITIZE_THREAD__)
#define READ_SECTION_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define READ_SECTION_TSAN 1
#endif
#endif
#ifdef READ_SECTION_TSAN
#include <sanitizer/tsan_interface.h>
#define READ_SECTION_TELL(what) __tsan_##what((void *)synchronize_rcu) /* any address that all threads
                                                                        * share */
#else
#define READ_SECTION_TELL(what) ((void)0)
#endif

/* Mark a section that reads data guarded by RCU; for threads that are registered with RCU. Sections may be
 * nested. The data is valid until the end of the section. */
static inline void
read_section_begin(void)
{
    rcu_read_lock();
}
static inline void
read_section_end(void)
{
    READ_SECTION_TELL(release);
    rcu_read_unlock();
}

/* Returns when every section that was open at the call has ended. Not from inside a section. */
static inline void
read_sections_wait(void)
{
    synchronize_rcu();
    READ_SECTION_TELL(acquire);
}

#endif
