/* A port of DPDK. */
#ifndef PORT_H
#define PORT_H

#include "tell.h"
#include <rte_ethdev.h>
#include <rte_mempool.h>
#include <stdbool.h>
#include <stdint.h>

/* The longest frame without FCS: what a buffer of DPDK's usual size holds. */
enum { LONGEST_FRAME = RTE_MBUF_DEFAULT_DATAROOM };

/* Demands on a port. */
struct demands {
	uint16_t queues;
	/* Interrupts for frames that come. */
	bool interrupts;
	/* Stamps of the driver, where it has them. */
	bool stamps;
};

struct port {
	/* As the command line has it. */
	const char *device;
	const char *driver;
	uint16_t id;
	uint16_t queues;
	struct rte_ether_addr mac;
	/* Claims of the driver. */
	bool claims_stamps;
	bool claims_departures;
	/* Counts when it was opened. */
	struct rte_eth_stats before;
};

/* Makes so many times 8,191 buffers for all ports: 20 MB. */
struct rte_mempool *make_buffers(unsigned times);

/* Opens and starts a port and waits until its link is up, or ends the process with an error. */
void open_port(struct port *port, const char *device, const struct demands *demands, struct rte_mempool *buffers);

/* Counts since it was opened. */
struct rte_eth_stats counts(const struct port *port);

/* Adds what the port is, as an object of JSON. */
void add_port(struct line *line, const struct port *port);

/* Stops and closes a port. */
void close_port(const struct port *port);

#endif
