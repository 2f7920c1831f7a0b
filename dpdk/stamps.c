#include "stamps.h"

#include "clock.h"
#include "pcap.h"
#include <stdlib.h>
#include <unistd.h>

/* A clock of nanoseconds runs at a rate that differs from that of this machine by less than 500 ppm: what NTP can slew. */
#define NS_WITHIN_HZ 500000.0
enum { MEASURED_US = 50000 };

/* Reads the clock of a driver and CLOCK_MONOTONIC_RAW together: of ten readings the one that took least. Returns false if
   the driver has no clock. */
static bool read_clocks(uint16_t port, uint64_t *ticks, int64_t *raw_ns)
{
	int64_t shortest_ns = INT64_MAX;

	for (int n = 0; n < 10; n++) {
		int64_t before_ns = clock_ns(CLOCK_MONOTONIC_RAW);
		uint64_t now;

		if (rte_eth_read_clock(port, &now))
			return false;
		int64_t took_ns = clock_ns(CLOCK_MONOTONIC_RAW) - before_ns;

		if (took_ns < shortest_ns) {
			shortest_ns = took_ns;
			*ticks = now;
			*raw_ns = before_ns + took_ns / 2;
		}
	}
	return true;
}

/* Ticks a second of the clock that a driver can read; 0 if it cannot. */
static double ticks_per_second(uint16_t port)
{
	uint64_t first = 0, last = 0;
	int64_t start_ns = 0, end_ns = 0;

	if (!read_clocks(port, &first, &start_ns))
		return 0;
	usleep(MEASURED_US);
	if (!read_clocks(port, &last, &end_ns))
		return 0;
	return (double)(last - first) * 1e9 / (double)(end_ns - start_ns);
}

/* The time of a port's own clock, or of this machine's where a driver has none. */
static int64_t now_ns(const struct stamps *stamps)
{
	uint64_t ticks;

	if (stamps->hz == 0 || rte_eth_read_clock(stamps->port, &ticks))
		return clock_ns(CLOCK_REALTIME);
	return (int64_t)ticks;
}

void prepare_stamps(struct stamps *stamps, const struct port *port)
{
	if (rte_mbuf_dyn_rx_timestamp_register(&stamps->place, &stamps->flag))
		fail(IMPOSSIBLE, "DPDK's buffers have no room for a stamp");
	stamps->port = port->id;
	stamps->stamping = UNDECIDED;
	stamps->why = NULL;
	stamps->hz = port->claims_stamps ? ticks_per_second(port->id) : 0;
	if (!port->claims_stamps) {
		stamps->stamping = PROCESS;
		stamps->why = "the driver has none";
	}
}

void decide_stamps(struct stamps *stamps, const struct rte_mbuf *frame)
{
	enum stamping undecided = UNDECIDED;
	const char *why = NULL;

	if (!(frame->ol_flags & stamps->flag))
		why = "the driver claims stamps, and the first frame has none";
	else if (stamps->hz != 0 && (stamps->hz < 1e9 - NS_WITHIN_HZ || stamps->hz > 1e9 + NS_WITHIN_HZ))
		why = "the driver's are ticks of another length than a nanosecond";
	/* A driver without a clock to read may give stamps of the kernel. */
	else if (llabs(stamp_ns(stamps, frame) - now_ns(stamps)) > SECOND_NS)
		why = stamps->hz == 0 ? "the driver's are of an unknown clock: no nanoseconds since 1970, and it cannot be read"
				      : "the driver's are of another clock than the one that it reads";
	if (atomic_compare_exchange_strong(&stamps->stamping, &undecided, why ? PROCESS : DRIVER))
		stamps->why = why;
}

unsigned put_stamps(struct stamps *stamps, struct rte_mbuf **frames, unsigned count, int64_t now_ns)
{
	bool driver = atomic_load_explicit(&stamps->stamping, memory_order_relaxed) == DRIVER;
	unsigned without = 0;

	for (unsigned n = 0; n < count; n++) {
		if (driver && frames[n]->ol_flags & stamps->flag)
			continue;
		/* Two clocks are not mixed. */
		*RTE_MBUF_DYNFIELD(frames[n], stamps->place, int64_t *) = driver ? NO_STAMP_NS : now_ns;
		without += driver;
	}
	return without;
}
