/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <config.h>

#include "volumes/cluster/curl-library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

struct curl_library curl;

static const struct {
    const char *name;
    void **place;
} functions[] = {
#define ROW(name) {"curl_" #name, (void **)&curl.name},
    CURL_LIBRARY_FUNCTIONS(ROW)
#undef ROW
};

const char *
curl_library_load(void)
{
    static bool is_loaded;
    void *library = is_loaded ? NULL : dlopen(CURL_SONAME, RTLD_NOW | RTLD_LOCAL);

    if (is_loaded)
        return NULL;
    if (!library)
        return dlerror();
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (!(*functions[i].place = dlsym(library, functions[i].name)))
            return dlerror();
    }
    if (curl.global_init(CURL_GLOBAL_DEFAULT))
        return "libcurl cannot be initialised";
    is_loaded = true;
    return NULL;
}
