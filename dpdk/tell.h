/* Output: events as JSON lines on standard output, errors on standard error. */
#ifndef TELL_H
#define TELL_H

#include <stddef.h>

/* Exit codes, those of tailtrim-agent. */
enum ending {
	DONE = 0,
	/* The request or its input is wrong. */
	USAGE = 2,
	/* This host cannot do it. */
	IMPOSSIBLE = 3,
	/* It worked, and then something broke. */
	DISTURBED = 4,
};

/* A line of JSON that is being composed: of the largest one, eight taps with paths of their files and devices. */
struct line {
	char text[1 << 15];
	size_t length;
};

/* Adds text; what does not fit is an error of this program and ends it. */
void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a string as JSON has it. */
void add_string(struct line *line, const char *text);

/* Prints the line and empties it. A reader that has gone is not an error: it ends this process by other means. */
void tell(struct line *line);

/* Catches what DPDK logs, which `fail` prints behind its own words. */
void catch_log(void);

/* Prints `error: …` and ends the process. */
_Noreturn void fail(enum ending ending, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
