#include "environment.h"

#include "tell.h"
#include <ctype.h>
#include <glob.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { MOST_WORDS = 96 };

struct words {
	char *words[MOST_WORDS];
	int count;
};

static void say(struct words *words, char *word)
{
	if (words->count == MOST_WORDS)
		fail(USAGE, "more than %d arguments for DPDK", MOST_WORDS);
	words->words[words->count++] = word;
}

bool is_pci(const char *device)
{
	return isxdigit((unsigned char)device[0]) && strchr(device, ':') != NULL;
}

/* Memory that is enough: buffers take 20 to 40 MB for each queue, rings and drivers some more. */
static unsigned needed_mb(const struct options *options)
{
	return options->memory_mb ? options->memory_mb : 192 + 64 * workers(options);
}

/* Whether ordinary memory was not asked for, and there are enough free huge pages. */
static bool uses_huge_pages(const struct options *options)
{
	static const char PAGES[] = "/sys/kernel/mm/hugepages/hugepages-*kB";
	unsigned long free_mb = 0, kb, pages;
	char path[512];
	glob_t found;

	if (options->memory_mb || glob(PAGES, 0, NULL, &found))
		return false;
	for (size_t size = 0; size < found.gl_pathc; size++) {
		snprintf(path, sizeof(path), "%s/free_hugepages", found.gl_pathv[size]);
		FILE *file = fopen(path, "r");

		if (file && fscanf(file, "%lu", &pages) == 1 &&
		    sscanf(strrchr(found.gl_pathv[size], '-'), "-%lukB", &kb) == 1)
			free_mb += pages * kb / 1024;
		if (file)
			fclose(file);
	}
	globfree(&found);
	return free_mb >= needed_mb(options);
}

/* Lists lcore 0, which may run on each CPU that no worker polls on, and a lcore on one CPU for each worker. */
static void list_lcores(char *text, size_t room, const struct options *options)
{
	unsigned count = workers(options), cpus[MOST_WORKERS];
	cpu_set_t allowed, left;
	int last = CPU_SETSIZE;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		fail(IMPOSSIBLE, "the CPUs of this process cannot be read: %m");
	left = allowed;
	for (unsigned worker = 0; worker < count; worker++) {
		if (options->cpu_count) {
			cpus[worker] = options->cpus[worker];
		} else {
			/* From the last one down: the first ones have the interrupts of most hosts. */
			do
				last = last > 0 ? last - 1 : CPU_SETSIZE - 1;
			while (!CPU_ISSET(last, &allowed));
			cpus[worker] = (unsigned)last;
		}
		if (!CPU_ISSET(cpus[worker], &allowed))
			fail(USAGE, "--cpu: CPU %u is not one that this process may use", cpus[worker]);
		CPU_CLR(cpus[worker], &left);
	}
	if (CPU_COUNT(&left) == 0)
		left = allowed;
	size_t length = (size_t)snprintf(text, room, "--lcores=0@(");
	for (int cpu = 0, first = 1; cpu < CPU_SETSIZE && length < room; cpu++)
		if (CPU_ISSET(cpu, &left)) {
			length += (size_t)snprintf(text + length, room - length, first ? "%d" : ",%d", cpu);
			first = 0;
		}
	length += (size_t)snprintf(text + length, room - length, ")");
	for (unsigned worker = 0; worker < count && length < room; worker++)
		length += (size_t)snprintf(text + length, room - length, ",%u@%u", worker + 1, cpus[worker]);
}

void start_environment(const struct options *options, const char *program)
{
	static char lcores[8192], memory[32], name[64];
	struct words words = {.count = 0};
	bool pci = false;

	snprintf(name, sizeof(name), "%s", program);
	list_lcores(lcores, sizeof(lcores), options);
	say(&words, name);
	say(&words, lcores);
	say(&words, "--main-lcore=0");
	say(&words, "--no-telemetry");
	say(&words, "--log-level=error");
	if (!uses_huge_pages(options)) {
		snprintf(memory, sizeof(memory), "-m%u", needed_mb(options));
		say(&words, "--no-huge");
		say(&words, memory);
		say(&words, "--no-shconf");
	} else {
		/* No files of huge pages and of the configuration: nothing stays behind a process that is killed. */
		say(&words, "--in-memory");
	}
	for (unsigned port = 0; port < options->ports; port++)
		if (is_pci(options->devices[port])) {
			/* All others stay with their drivers. */
			say(&words, "-a");
			say(&words, options->devices[port]);
			pci = true;
		}
	if (!pci)
		say(&words, "--no-pci");
	for (int word = 0; word < options->eal_count; word++)
		say(&words, options->eal[word]);
	catch_log();
	if (rte_eal_init(words.count, words.words) < 0)
		fail(IMPOSSIBLE, "DPDK cannot start: %s", rte_strerror(rte_errno));
}
