/* Stamps of received frames: of the driver where they are nanoseconds of a known clock, of this process otherwise. */
#ifndef STAMPS_H
#define STAMPS_H

#include "port.h"
#include <rte_mbuf_dyn.h>
#include <stdatomic.h>
#include <stdint.h>

/* Source of the stamps of a port. */
enum stamping { UNDECIDED, DRIVER, PROCESS };

struct stamps {
	/* Decided at the first frame. */
	_Atomic(enum stamping) stamping;
	/* Why the driver's are not used, or nothing. */
	const char *why;
	/* Place in a frame's buffer, and the flag of a frame that the driver has stamped. */
	int place;
	uint64_t flag;
	uint16_t port;
	/* Ticks in a second of the clock that the driver can read, or 0. */
	double hz;
};

/* Finds out what a port's stamps may be. Takes 50 ms if its driver claims to have some. */
void prepare_stamps(struct stamps *stamps, const struct port *port);

/* Decides at the first frames. */
void decide_stamps(struct stamps *stamps, const struct rte_mbuf *frame);

/* Stamps of frames that were fetched at `now_ns` of CLOCK_REALTIME are put into their place; NO_STAMP_NS stands for none.
   Returns how many frames have none. */
unsigned put_stamps(struct stamps *stamps, struct rte_mbuf **frames, unsigned count, int64_t now_ns);

/* The stamp of a frame, after `put_stamps`. */
static inline int64_t stamp_ns(const struct stamps *stamps, const struct rte_mbuf *frame)
{
	return *RTE_MBUF_DYNFIELD(frame, stamps->place, const int64_t *);
}

#endif
