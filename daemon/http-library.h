/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* http-library: libmicrohttpd, loaded for the first HTTP listener.
 *
 * A brick process under glusterd does not load the library. Linked at the start, the library and its ten
 * dependencies (TLS, certificates) would take 2.7 MB of each process, and run their constructors there.
 *
 * thread: http_library_load() one at a time; afterwards `mhd` is only read. The library is never
 * unloaded. */
#ifndef KILN_DAEMON_HTTP_LIBRARY_H
#define KILN_DAEMON_HTTP_LIBRARY_H

#include <microhttpd.h>

/* The functions that http.c calls. */
#define HTTP_LIBRARY_FUNCTIONS(ROW)                                                                          \
    ROW(add_response_header)                                                                                 \
    ROW(create_response_from_buffer)                                                                         \
    ROW(create_response_from_callback)                                                                       \
    ROW(destroy_response)                                                                                    \
    ROW(get_connection_info)                                                                                 \
    ROW(lookup_connection_value)                                                                             \
    ROW(lookup_connection_value_n)                                                                           \
    ROW(queue_response)                                                                                      \
    ROW(resume_connection)                                                                                   \
    ROW(start_daemon)                                                                                        \
    ROW(stop_daemon)                                                                                         \
    ROW(suspend_connection)

struct http_library {
#define ROW(name) __typeof__(&MHD_##name) name;
    HTTP_LIBRARY_FUNCTIONS(ROW)
#undef ROW
};
extern struct http_library mhd;

/* Loads the library; a second call does nothing. 0; -ELIBACC: the library is missing, or of the wrong
 * version; the log says which. */
int http_library_load(void);

#endif
