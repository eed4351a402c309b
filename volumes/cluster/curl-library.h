/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* curl-library: libcurl, loaded for a store (store.h).
 *
 * A kilnd without a store does not load the library, which brings 35 others.
 *
 * thread: curl_library_load() one at a time; afterwards `curl` is only read. The library is never unloaded.
 * */
#ifndef KILN_VOLUMES_CURL_LIBRARY_H
#define KILN_VOLUMES_CURL_LIBRARY_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#undef curl_easy_setopt
#undef curl_easy_getinfo

/* The functions that store-etcd.c calls. */
#define CURL_LIBRARY_FUNCTIONS(ROW)                                                                          \
    ROW(global_init)                                                                                         \
    ROW(easy_init)                                                                                           \
    ROW(easy_setopt)                                                                                         \
    ROW(easy_perform)                                                                                        \
    ROW(easy_getinfo)                                                                                        \
    ROW(easy_cleanup)                                                                                        \
    ROW(easy_strerror)                                                                                       \
    ROW(slist_append)                                                                                        \
    ROW(slist_free_all)

struct curl_library {
#define ROW(name) __typeof__(&curl_##name) name;
    CURL_LIBRARY_FUNCTIONS(ROW)
#undef ROW
};
extern struct curl_library curl;

/* Loads the library; a second call does nothing. Returns NULL, or the reason of a failure, which is static or
 * the dynamic linker's. */
const char *curl_library_load(void);

#endif
