#include "port.h"

#include "environment.h"
#include "stop.h"
#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <stdio.h>
#include <string.h>

enum {
	/* AF_XDP fills 4,096 of them for each queue. Threads that hand frames over go through all of them: with four times as
	   many, a frame of a load took 100 ns of CPU time instead of 60 (caches, and pages of 4 KB). */
	BUFFERS = 8191,
	CACHE = 256,
	DESCRIPTORS = 1024,
	/* A link of 100 Gbit/s with its training takes some seconds. */
	LINK_MS = 10000,
};

struct rte_mempool *make_buffers(unsigned times)
{
	struct rte_mempool *buffers = rte_pktmbuf_pool_create("frames", times * BUFFERS, CACHE, 0,
							      RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);

	if (!buffers)
		fail(IMPOSSIBLE, "%u buffers take %u MB, more than DPDK has (%s), expected --memory with more",
		     times * BUFFERS, times * 20, rte_strerror(rte_errno));
	return buffers;
}

/* Many drivers return -1 for whatever is wrong, which is not EPERM. */
static const char *reason(int error)
{
	return error == -1 ? "the driver refuses" : rte_strerror(-error);
}

/* Finds a device, or makes it if it is a virtual one. */
static void find(struct port *port, const char *device)
{
	char name[RTE_ETH_NAME_MAX_LEN];
	bool shortened = is_pci(device) && device[2] == ':';
	size_t length = strcspn(device, ",");

	snprintf(name, sizeof(name), "%s%.*s", shortened ? "0000:" : "", (int)length, device);
	if (!is_pci(device)) {
		/* Not by rte_dev_probe, which has room for 128 bytes only. */
		int error = rte_vdev_init(name, device[length] ? device + length + 1 : NULL);

		if (error)
			fail(IMPOSSIBLE, "%s: cannot be opened: %s", device,
			     error == -1 ? "no driver of that name, or it refuses" : reason(error));
	}
	if (rte_eth_dev_get_port_by_name(name, &port->id))
		fail(IMPOSSIBLE,
		     "%s: DPDK has no such port, expected a PCI address whose driver is vfio-pci, or a virtual device"
		     " such as net_af_packet0,iface=eth1",
		     device);
}

static void check(int error, const struct port *port, const char *what)
{
	if (error)
		fail(IMPOSSIBLE, "%s (%s): %s: %s", port->device, port->driver, what, reason(error));
}

static void set_queues(struct port *port, struct rte_mempool *buffers)
{
	uint16_t receive = DESCRIPTORS, send = DESCRIPTORS;
	int socket = rte_eth_dev_socket_id(port->id);

	check(rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &receive, &send), port, "lengths of its queues");
	for (uint16_t queue = 0; queue < port->queues; queue++) {
		check(rte_eth_rx_queue_setup(port->id, queue, receive, (unsigned)socket, NULL, buffers), port,
		      "a queue that receives");
		check(rte_eth_tx_queue_setup(port->id, queue, send, (unsigned)socket, NULL), port, "a queue that sends");
	}
}

/* Waits for the link: frames that are sent before are lost without a word. */
static void wait_for_link(const struct port *port)
{
	enum { STEP_MS = 10 };
	struct rte_eth_link link;

	for (int ms = 0; ms < LINK_MS && !is_over(); ms += STEP_MS) {
		if (rte_eth_link_get_nowait(port->id, &link) || link.link_status == RTE_ETH_LINK_UP)
			return;
		wait_ms(STEP_MS);
	}
	if (!is_over())
		fail(IMPOSSIBLE, "%s (%s): no link within %d s, expected a cable to a port that is up", port->device,
		     port->driver, LINK_MS / 1000);
}

void open_port(struct port *port, const char *device, const struct demands *demands, struct rte_mempool *buffers)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf = {.intr_conf.rxq = demands->interrupts};

	*port = (struct port){.device = device, .driver = "", .queues = demands->queues};
	find(port, device);
	check(rte_eth_dev_info_get(port->id, &info), port, "asking what it is");
	port->driver = info.driver_name;
	port->claims_stamps = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP;
	port->claims_departures = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP;
	uint16_t most = info.max_rx_queues < info.max_tx_queues ? info.max_rx_queues : info.max_tx_queues;
	if (port->queues > most)
		fail(USAGE, "%s (%s): it has %u queues, not %u", device, port->driver, most, port->queues);
	if (port->queues > 1) {
		uint64_t hashed = info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP);

		conf.rxmode.mq_mode = hashed ? RTE_ETH_MQ_RX_RSS : RTE_ETH_MQ_RX_NONE;
		conf.rx_adv_conf.rss_conf.rss_hf = hashed;
	}
	if (demands->stamps && port->claims_stamps)
		conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_TIMESTAMP;
	/* All buffers are of one pool, and nothing else keeps one that is sent. */
	conf.txmode.offloads |= info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	check(rte_eth_dev_configure(port->id, port->queues, port->queues, &conf), port,
	      demands->interrupts ? "configuring it with interrupts" : "configuring it");
	set_queues(port, buffers);
	check(rte_eth_dev_start(port->id), port, "starting it");
	/* A driver that cannot has no filter of addresses either. */
	rte_eth_promiscuous_enable(port->id);
	check(rte_eth_macaddr_get(port->id, &port->mac), port, "its MAC address");
	wait_for_link(port);
	rte_eth_stats_get(port->id, &port->before);
}

struct rte_eth_stats counts(const struct port *port)
{
	struct rte_eth_stats now = port->before;

	rte_eth_stats_get(port->id, &now);
	now.ipackets -= port->before.ipackets;
	now.opackets -= port->before.opackets;
	now.imissed -= port->before.imissed;
	now.ierrors -= port->before.ierrors;
	now.oerrors -= port->before.oerrors;
	now.rx_nombuf -= port->before.rx_nombuf;
	return now;
}

void add_port(struct line *line, const struct port *port)
{
	add(line, "{\"device\":");
	add_string(line, port->device);
	add(line, ",\"driver\":");
	add_string(line, port->driver);
	add(line, ",\"mac\":\"%02x:%02x:%02x:%02x:%02x:%02x\",\"queues\":%u", RTE_ETHER_ADDR_BYTES(&port->mac),
	    port->queues);
	add(line, ",\"claims\":{\"receive_stamps\":%s,\"send_on_timestamp\":%s}}",
	    port->claims_stamps ? "true" : "false", port->claims_departures ? "true" : "false");
}

void close_port(const struct port *port)
{
	rte_eth_dev_stop(port->id);
	rte_eth_dev_close(port->id);
}
