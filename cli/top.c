/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* kiln top: asks what happens in a second, and shows it, again and again. */
#include <ncurses.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/exchange.h"
#include "cli/kiln.h"
#include "cli/top.h"

enum { PERIOD_MS = 1000, LINE_BYTES = 8192, WIDTH_MIN = 80, WIDTH_UNBUILT = 160 };

struct screen {
    unsigned view, sorted_by;
    bool is_reversed, is_over;
};

/* ---- once ------------------------------------------------------------------------------------ */

static void
print_view(const struct top_view *view, const json_t *rates, int width)
{
    json_t *rows = top_rows(view, rates, view->sorted_by, false), *row;
    char line[LINE_BYTES];
    size_t i;

    top_line(view, NULL, view->sorted_by, width, line, sizeof line);
    printf("\n%s\n", line);
    json_array_foreach(rows, i, row)
    {
        top_line(view, row, view->sorted_by, width, line, sizeof line);
        printf("%s\n", line);
    }
    json_decref(rows);
}

static void
print_rates(const json_t *rates)
{
    char line[LINE_BYTES];

    top_summary(rates, line, sizeof line);
    printf("%s\n", line);
    for (unsigned i = 0; i < TOP_VIEWS; i++) {
        if (i != TOP_UNBUILT || strstr(line, "NOT BUILT")) /* most have nothing there */
            print_view(&top_views[i], rates, i == TOP_UNBUILT ? WIDTH_UNBUILT : WIDTH_MIN);
    }
}

/* What happens in one second. As JSON it is printed as kilnd has written it. */
static int
top_once(void)
{
    json_t *rates = NULL;
    struct exchange x;
    int err = top_ask(&x, PERIOD_MS), status = top_take(&x, err, kiln_options.is_json ? NULL : &rates, false);

    if (rates)
        print_rates(rates);
    json_decref(rates);
    return status;
}

/* ---- the screen ------------------------------------------------------------------------------ */

static void
draw(const struct screen *s, const json_t *rates)
{
    const struct top_view *view = &top_views[s->view];
    json_t *rows = top_rows(view, rates, s->sorted_by, s->is_reversed);
    char line[LINE_BYTES];
    size_t count = json_array_size(rows);

    erase();
    top_summary(rates, line, sizeof line);
    mvaddnstr(0, 0, line, COLS);
    top_line(view, NULL, s->sorted_by, COLS, line, sizeof line);
    attron(A_REVERSE);
    mvaddnstr(1, 0, line, COLS);
    attroff(A_REVERSE);
    for (size_t i = 0; i < count && (int)i < LINES - 3; i++) {
        top_line(view, json_array_get(rows, i), s->sorted_by, COLS, line, sizeof line);
        mvaddnstr((int)i + 2, 0, line, COLS);
    }
    snprintf(line, sizeof line,
             "%s: %zu  b bricks  f fops  c clients  w slowest  n not built  s sort  r reverse  q quit",
             view->name, count);
    mvaddnstr(LINES - 1, 0, line, COLS);
    refresh();
    json_decref(rows);
}

static void
switch_view(struct screen *s, unsigned view)
{
    s->view = view;
    s->sorted_by = top_views[view].sorted_by;
    s->is_reversed = false;
}

/* Of top_views, in their order. */
static const char view_keys[TOP_VIEWS + 1] = "bfcwn";

static void
take_key(struct screen *s, int key)
{
    switch (key) {
    case 'b':
    case 'f':
    case 'c':
    case 'w':
    case 'n':
        switch_view(s, (unsigned)(strchr(view_keys, key) - view_keys));
        break;
    case 's':
        s->sorted_by = (s->sorted_by + 1) % top_views[s->view].column_count;
        break;
    case 'r':
        s->is_reversed = !s->is_reversed;
        break;
    case 'q':
        s->is_over = true;
        break;
    default: /* KEY_RESIZE too: it is drawn anew */
        break;
    }
}

/* Takes keys until the next figures are there, which are on their way. What exchange_read() says. */
static int
wait_for_figures(struct screen *s, const json_t *rates, struct exchange *x)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = x->fd, .events = POLLIN}};
    int came = 0;

    while (!came && !s->is_over) {
        if (poll(fds, 2, -1) > 0 && fds[1].revents)
            came = exchange_read(x);
        int key = getch(); /* also when a signal has interrupted: KEY_RESIZE */
        if (key == ERR)
            continue;
        take_key(s, key);
        if (!s->is_over)
            draw(s, rates);
    }
    return came;
}

/* Since the start of kilnd, to begin with; then of each second. 0, or an exit status of what nobody has said
 * yet: the screen is not the place. Takes `rates` over. */
static int
run_screen(struct screen *s, json_t *rates)
{
    int status = KILN_DONE;

    while (!status && !s->is_over) {
        struct exchange x;
        int err = top_ask(&x, PERIOD_MS);

        draw(s, rates);
        if (!err)
            err = wait_for_figures(s, rates, &x);
        if (s->is_over) {
            exchange_end(&x);
            break;
        }
        json_t *next;
        status = top_take(&x, err, &next, true);
        if (status)
            break;
        json_decref(rates);
        rates = next;
    }
    json_decref(rates);
    return status;
}

static int
top_screen(void)
{
    struct screen s = {0};
    json_t *rates;
    struct exchange x;

    if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
        return refuse(KILN_USAGE, "a terminal", "kiln top --once", "top wants a terminal");
    int err = top_ask(&x, 0), status = top_take(&x, err, &rates, false);
    if (status)
        return status;
    switch_view(&s, 0);
    SCREEN *terminal = newterm(NULL, stdout, stdin);
    if (!terminal) {
        json_decref(rates);
        return refuse(KILN_REFUSED, "a terminal that ncurses knows", "kiln top --once",
                      "the terminal (TERM) is not known");
    }
    cbreak();
    noecho();
    keypad(stdscr, true);
    timeout(0); /* poll(2) waits */
    curs_set(0);
    status = run_screen(&s, rates);
    endwin();
    delscreen(terminal);
    return status ? refuse(status, NULL, NULL, "kilnd does not answer any more, or not with figures")
                  : KILN_DONE;
}

int
top(const struct verb *v, int argc, char **argv)
{
    bool is_once = argc > 0 && strcmp(argv[0], "--once") == 0;

    if (argc > 1 && !is_once) /* gluster volume top NAME open|read|... */
        return refuse(KILN_REFUSED, "what bricks, operations and clients do", "kiln top --once",
                      "top of files is not built");
    if (argc > 0 && (argc > 1 || !is_once))
        return usage(v, "'%s' is not known", argv[is_once]);
    return argc > 0 || kiln_options.is_json ? top_once() : top_screen();
}
