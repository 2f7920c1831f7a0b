#include "stamps.h"

#include "clock.h"
#include "pcap.h"
#include <stdlib.h>
#include <unistd.h>

/* A clock of nanoseconds runs at a rate that differs from that of this machine by less than 500 ppm: what NTP can slew. */
#define NS_WITHIN_HZ 500000.0
enum { MEASURED_US = 50000 };

/* Ticks a second of the clock that a driver can read; 0 if it cannot. */
static double ticks_per_second(const struct port *port)
{
	uint64_t first, last;
	int64_t start_ns = clock_ns(CLOCK_MONOTONIC_RAW);

	if (rte_eth_read_clock(port->id, &first))
		return 0;
	usleep(MEASURED_US);
	int64_t end_ns = clock_ns(CLOCK_MONOTONIC_RAW);

	if (rte_eth_read_clock(port->id, &last))
		return 0;
	return (double)(last - first) * 1e9 / (double)(end_ns - start_ns);
}

void prepare_stamps(struct stamps *stamps, const struct port *port)
{
	if (rte_mbuf_dyn_rx_timestamp_register(&stamps->place, &stamps->flag))
		fail(IMPOSSIBLE, "DPDK's buffers have no room for a stamp");
	stamps->stamping = UNDECIDED;
	stamps->why = NULL;
	stamps->hz = port->claims_stamps ? ticks_per_second(port) : 0;
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
	else if (stamps->hz == 0 && llabs(stamp_ns(stamps, frame) - clock_ns(CLOCK_REALTIME)) > SECOND_NS)
		why = "the driver's are of an unknown clock: not nanoseconds since 1970, and it cannot be read";
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
