/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Runs one fuzz target over its corpus, without a fuzzer: each line of the file is one input in base64.
 * $top_srcdir/tests/wire/corpus/TARGET is found by the program's own name, replay-TARGET; or FILE... are
 * given. */
#include <errno.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
run_line(char *line, size_t len)
{
    unsigned char *bytes = malloc(len + 1);
    int n = EVP_DecodeBlock(bytes, (unsigned char *)line, (int)len);

    if (n < 0 || len % 4) {
        fprintf(stderr, "no base64: %s\n", line);
        exit(1);
    }
    for (size_t i = len; i > 0 && line[i - 1] == '='; i--)
        n--;
    unsigned char *exact = malloc(n ? (size_t)n : 1); /* so that a sanitizer sees a step outside */

    memcpy(exact, bytes, (size_t)n);
    LLVMFuzzerTestOneInput(exact, (size_t)n);
    free(exact);
    free(bytes);
}

static unsigned
run_file(const char *path)
{
    FILE *in = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;
    unsigned count = 0;
    ssize_t len;

    if (!in) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    for (; (len = getline(&line, &size, in)) > 0; count++)
        run_line(line, strcspn(line, "\n"));
    free(line);
    fclose(in);
    return count;
}

int
main(int argc, char **argv)
{
    const char *top = getenv("top_srcdir"), *name = strstr(argv[0], "replay-");
    char path[4096];
    unsigned count = 0;

    LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++)
        count += run_file(argv[i]);
    if (argc == 1) {
        snprintf(path, sizeof path, "%s/tests/wire/corpus/%s", top ? top : ".", name ? name + 7 : "");
        count = run_file(path);
    }
    printf("%s - %u inputs of the corpus run through\n", count ? "ok 1" : "not ok 1", count);
    return !count;
}
