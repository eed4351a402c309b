/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <config.h>

#include "daemon/http-library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>

#include "log/log.h"

struct http_library mhd;

static const struct {
    const char *name;
    void **place;
} functions[] = {
#define ROW(name) {"MHD_" #name, (void **)&mhd.name},
    HTTP_LIBRARY_FUNCTIONS(ROW)
#undef ROW
};

int
http_library_load(void)
{
    static bool is_loaded;
    void *library = is_loaded ? NULL : dlopen(MICROHTTPD_SONAME, RTLD_NOW | RTLD_LOCAL);

    if (is_loaded)
        return 0;
    is_loaded = library != NULL;
    for (size_t i = 0; is_loaded && i < sizeof functions / sizeof functions[0]; i++)
        is_loaded = (*functions[i].place = dlsym(library, functions[i].name)) != NULL;
    if (is_loaded)
        return 0;
    log_event(LOG_ERROR, NULL, "http-no-library", "libmicrohttpd cannot be loaded: %s", dlerror());
    return -ELIBACC;
}
