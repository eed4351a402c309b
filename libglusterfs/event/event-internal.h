/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Declarations shared by source.c (the epoll set and the right to call a handler) and worker.c (the
 * threads). */
#ifndef KILN_EVENT_INTERNAL_H
#define KILN_EVENT_INTERNAL_H

#include <sys/epoll.h>

#include "event/worker.h"

int sources_open(void);  /* the epoll set; 0 or -errno */
void sources_close(void);
int sources_epoll_fd(void);
/* Adds a descriptor that is not an event source: `tag` comes back as event data, with the high half all
 * ones. */
int sources_add_tag(int fd, uint32_t events, uint32_t tag);
#define EVENT_TAG(tag) (0xffffffff00000000u | (tag))

/* Runs the handler of the event's source, unless the source has been removed meanwhile. */
void source_run(const struct epoll_event *event);

#endif
