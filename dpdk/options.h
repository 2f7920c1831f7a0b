/* The command line. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { MOST_PORTS = 8, MOST_WORKERS = 32 };

enum verb { GENERATE = 1, CAPTURE = 2, FORWARD = 4 };

/* Treatment of MAC addresses by a forwarder, with the words of testpmd. */
enum forward_mode { IO, MAC, MACSWAP };

struct options {
	enum verb verb;
	/* Devices as DPDK names them, in the order of the command line; of taps also their names. */
	char *devices[MOST_PORTS];
	char *names[MOST_PORTS];
	unsigned ports;
	/* CPUs of the threads that poll; none: this program chooses. */
	unsigned cpus[MOST_WORKERS];
	unsigned cpu_count;
	uint16_t queues;
	/* Ordinary memory; 0: huge pages, where there are enough. */
	unsigned memory_mb;
	uint16_t batch;
	bool both_ways;
	bool interrupts;
	bool until_eof;
	enum forward_mode forward_mode;
	const char *out;
	uint32_t snap;
	/* Arguments for DPDK's environment, as they are. */
	char **eal;
	int eal_count;
};

/* Reads the command line, or ends the process with an error or the help. */
void read_options(struct options *options, int count, char **words);

/* Threads that poll: one for each queue of what they serve. */
unsigned workers(const struct options *options);

#endif
