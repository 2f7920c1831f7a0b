#include "tell.h"

#include <rte_log.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *caught;
static size_t caught_length;
static FILE *catching;

void add(struct line *line, const char *format, ...)
{
	size_t room = sizeof(line->text) - line->length;
	va_list values;

	va_start(values, format);
	int length = vsnprintf(line->text + line->length, room, format, values);
	va_end(values);
	if (length < 0 || (size_t)length >= room)
		fail(DISTURBED, "an event has more than %zu bytes", sizeof(line->text));
	line->length += (size_t)length;
}

void add_string(struct line *line, const char *text)
{
	add(line, "\"");
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte < 0x20 || byte == 0x7f)
			add(line, "\\u%04x", byte);
		else
			add(line, byte == '"' || byte == '\\' ? "\\%c" : "%c", byte);
	}
	add(line, "\"");
}

void tell(struct line *line)
{
	add(line, "\n");
	for (size_t done = 0; done < line->length;) {
		ssize_t wrote = write(STDOUT_FILENO, line->text + done, line->length - done);

		if (wrote <= 0)
			break;
		done += (size_t)wrote;
	}
	line->length = 0;
}

void catch_log(void)
{
	catching = open_memstream(&caught, &caught_length);
	if (catching)
		rte_openlog_stream(catching);
}

/* The last lines that DPDK logged, each indented. */
static void print_caught(void)
{
	enum { LINES = 3 };
	size_t begin;
	unsigned lines = 0;

	if (!catching || fflush(catching) || caught_length == 0)
		return;
	for (begin = caught_length - 1; begin > 0; begin--)
		if (caught[begin - 1] == '\n' && ++lines == LINES)
			break;
	for (char *line = strtok(caught + begin, "\n"); line; line = strtok(NULL, "\n"))
		fprintf(stderr, "  %s\n", line);
}

void fail(enum ending ending, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	fputs("error: ", stderr);
	vfprintf(stderr, format, values);
	fputc('\n', stderr);
	va_end(values);
	print_caught();
	/* Without handlers of exit(3): threads of DPDK may still use what these would free. */
	fflush(stderr);
	_exit(ending);
}
