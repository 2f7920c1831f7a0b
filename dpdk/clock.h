/* Clocks in ns, read through the vDSO, as tailtrim-agent reads them. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>
#include <time.h>

#define SECOND_NS INT64_C(1000000000)

static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* CLOCK_REALTIME minus CLOCK_MONOTONIC, of the reading that took least: an interrupt may come between, and most do not.
   CLOCK_MONOTONIC and this is CLOCK_REALTIME without the steps that come after. */
static inline int64_t realtime_ahead_ns(void)
{
	int64_t shortest_ns = INT64_MAX, ahead_ns = 0;

	for (int n = 0; n < 10; n++) {
		int64_t before_ns = clock_ns(CLOCK_REALTIME);
		int64_t monotonic_ns = clock_ns(CLOCK_MONOTONIC);
		int64_t took_ns = clock_ns(CLOCK_REALTIME) - before_ns;

		if (took_ns >= 0 && took_ns < shortest_ns) {
			shortest_ns = took_ns;
			ahead_ns = before_ns + took_ns / 2 - monotonic_ns;
		}
	}
	return ahead_ns;
}

#endif
