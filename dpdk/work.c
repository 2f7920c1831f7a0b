#include "work.h"

#include "clock.h"
#include "stop.h"
#include <inttypes.h>
#include <rte_eal.h>
#include <rte_lcore.h>

void tell_ready(const struct port *ports, unsigned count)
{
	struct line line = {.length = 0};

	add(&line, "{\"event\":\"ready\",\"huge_pages\":%s,\"longest_frame\":%d,\"ports\":[",
	    rte_eal_has_hugepages() ? "true" : "false", LONGEST_FRAME);
	for (unsigned number = 0; number < count; number++) {
		add(&line, number ? "," : "");
		add_port(&line, &ports[number]);
	}
	add(&line, "]}");
	tell(&line);
}

void start_worker(unsigned number, lcore_function_t *work, void *argument)
{
	if (rte_eal_remote_launch(work, argument, number + 1))
		fail(IMPOSSIBLE, "thread %u of DPDK cannot be started", number + 1);
}

static bool is_working(void)
{
	unsigned lcore;

	RTE_LCORE_FOREACH_WORKER(lcore)
		if (rte_eal_get_lcore_state(lcore) == RUNNING)
			return true;
	return false;
}

void watch_workers(int every_ms, void (*each)(void *), uint64_t (*packets)(void *), void *argument)
{
	int64_t start_ns = clock_ns(CLOCK_MONOTONIC), seconds = 0;

	while (is_working()) {
		wait_ms(every_ms);
		if (each)
			each(argument);
		int64_t now = (clock_ns(CLOCK_MONOTONIC) - start_ns) / SECOND_NS;

		if (now > seconds) {
			struct line line = {.length = 0};

			seconds = now;
			add(&line, "{\"event\":\"progress\",\"seconds\":%" PRId64 ",\"packets\":%" PRIu64 "}", seconds,
			    packets(argument));
			tell(&line);
		}
	}
	rte_eal_mp_wait_lcore();
}
