/* Frames that one port receives leave by another one. A worker has one queue of both. */
#include "port.h"
#include "stop.h"
#include "verbs.h"
#include "work.h"
#include <errno.h>
#include <inttypes.h>
#include <rte_branch_prediction.h>
#include <rte_epoll.h>
#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_interrupts.h>
#include <string.h>
#include <sys/epoll.h>

enum {
	MOST_BATCH = 64,
	/* The longest sleep: how soon a worker sees that it is to end, and frames without an interrupt. */
	SLEEP_MS = 100,
};

/* From one port to another one. */
struct way {
	const struct port *from, *to;
	/* MAC addresses that the mode `mac` sets. */
	struct rte_ether_addr source, destination;
	counter received, sent;
};

struct worker {
	struct way ways[2];
	unsigned way_count;
	uint16_t queue, batch;
	enum forward_mode mode;
	/* Interrupts of its queues; -1 in poll mode. */
	int interrupts;
	uint64_t wakeups;
	/* Sleeps whose end found frames, and no interrupt had told of them. */
	uint64_t overslept;
} __rte_cache_aligned;

static struct worker all[MOST_WORKERS];

static void address(struct rte_mbuf *frame, const struct way *way, enum forward_mode mode)
{
	struct rte_ether_hdr *header = rte_pktmbuf_mtod(frame, struct rte_ether_hdr *);

	if (unlikely(rte_pktmbuf_data_len(frame) < sizeof(*header)))
		return;
	if (mode == MACSWAP) {
		struct rte_ether_addr source = header->src_addr;

		header->src_addr = header->dst_addr;
		header->dst_addr = source;
	} else {
		header->src_addr = way->source;
		header->dst_addr = way->destination;
	}
}

/* Passes a batch on. Returns how many frames came. */
static inline uint16_t pass(struct worker *worker, struct way *way)
{
	struct rte_mbuf *frames[MOST_BATCH];
	uint16_t came = rte_eth_rx_burst(way->from->id, worker->queue, frames, worker->batch);

	if (came == 0)
		return 0;
	if (worker->mode != IO)
		for (uint16_t frame = 0; frame < came; frame++)
			address(frames[frame], way, worker->mode);
	uint16_t sent = rte_eth_tx_burst(way->to->id, worker->queue, frames, came);

	increase(&way->received, came);
	increase(&way->sent, sent);
	if (unlikely(sent < came))
		rte_pktmbuf_free_bulk(frames + sent, came - sent);
	return came;
}

static unsigned pass_all(struct worker *worker)
{
	unsigned came = 0;

	for (unsigned way = 0; way < worker->way_count; way++)
		came += pass(worker, &worker->ways[way]);
	return came;
}

/* Sleeps until a frame comes. */
static void sleep_until_frame(struct worker *worker)
{
	struct rte_epoll_event events[2];
	unsigned way;

	for (way = 0; way < worker->way_count; way++)
		rte_eth_dev_rx_intr_enable(worker->ways[way].from->id, worker->queue);
	/* One that came before the interrupt was enabled raises none. */
	if (pass_all(worker) == 0) {
		int woken = rte_epoll_wait_interruptible(worker->interrupts, events, (int)worker->way_count, SLEEP_MS);

		worker->wakeups += woken > 0;
		if (woken == 0)
			worker->overslept += pass_all(worker) > 0;
	}
	for (way = 0; way < worker->way_count; way++)
		rte_eth_dev_rx_intr_disable(worker->ways[way].from->id, worker->queue);
}

static int work(void *argument)
{
	struct worker *worker = argument;

	while (!is_over())
		if (pass_all(worker) == 0 && worker->interrupts >= 0)
			sleep_until_frame(worker);
	return 0;
}

/* Has interrupts of the worker's queues wake it, or ends the process with an error. */
static void use_interrupts(struct worker *worker)
{
	worker->interrupts = epoll_create1(EPOLL_CLOEXEC);
	if (worker->interrupts < 0)
		fail(IMPOSSIBLE, "interrupts cannot be waited for: %m");
	for (unsigned way = 0; way < worker->way_count; way++) {
		const struct port *port = worker->ways[way].from;
		int error = rte_eth_dev_rx_intr_ctl_q(port->id, worker->queue, worker->interrupts, RTE_INTR_EVENT_ADD,
						      NULL);

		if (error == 0) {
			error = rte_eth_dev_rx_intr_enable(port->id, worker->queue);
			/* Those of net_tap are always on. */
			error = error == -ENOTSUP ? 0 : error;
		}
		if (error)
			fail(IMPOSSIBLE,
			     "--mode interrupt: %s: the driver %s has no interrupts for frames (%s), expected --mode poll or"
			     " a driver that has them, such as those of igb, ixgbe, ice, mlx5, virtio_user and tap",
			     port->device, port->driver, rte_strerror(-error));
		rte_eth_dev_rx_intr_disable(port->id, worker->queue);
	}
}

static uint64_t received(void *argument)
{
	const struct options *options = argument;
	uint64_t sum = 0;

	for (unsigned worker = 0; worker < workers(options); worker++)
		for (unsigned way = 0; way < all[worker].way_count; way++)
			sum += all[worker].ways[way].received;
	return sum;
}

static void add_way(struct line *line, const struct options *options, unsigned way)
{
	uint64_t came = 0, sent = 0;

	for (unsigned worker = 0; worker < workers(options); worker++) {
		came += all[worker].ways[way].received;
		sent += all[worker].ways[way].sent;
	}
	struct rte_eth_stats from = counts(all[0].ways[way].from), to = counts(all[0].ways[way].to);

	add(line, "\"received\":%" PRIu64 ",\"sent\":%" PRIu64 ",\"refused\":%" PRIu64, came, sent, came - sent);
	/* A driver that counts so throws some away of what it took. */
	add(line, ",\"discarded\":%" PRIu64 ",\"dropped\":%" PRIu64, to.oerrors,
	    from.imissed + from.ierrors + from.rx_nombuf);
}

static void tell_result(const struct options *options, const struct port *ports)
{
	static const char *const modes[] = {"io", "mac", "macswap"};
	struct line line = {.length = 0};
	uint64_t wakeups = 0, overslept = 0;

	add(&line, "{\"event\":\"result\",\"schema\":\"tailtrim.dpdk-forwarder/1\",");
	add_way(&line, options, 0);
	if (options->both_ways) {
		add(&line, ",\"back\":{");
		add_way(&line, options, 1);
		add(&line, "}");
	}
	add(&line, ",\"mode\":\"%s\",\"forward_mode\":\"%s\"", options->interrupts ? "interrupt" : "poll",
	    modes[options->forward_mode]);
	for (unsigned worker = 0; worker < workers(options); worker++) {
		wakeups += all[worker].wakeups;
		overslept += all[worker].overslept;
	}
	if (options->interrupts)
		add(&line, ",\"wakeups\":%" PRIu64 ",\"overslept\":%" PRIu64, wakeups, overslept);
	add(&line, ",\"ports\":[");
	add_port(&line, &ports[0]);
	add(&line, ",");
	add_port(&line, &ports[1]);
	add(&line, "]}");
	tell(&line);
}

/* As testpmd does: the source is the port that sends, the destination has the number of the port in its last byte. */
static struct way a_way(const struct port *from, const struct port *to)
{
	struct way way = {.from = from, .to = to, .source = to->mac, .destination.addr_bytes = {0x02}};

	way.destination.addr_bytes[5] = (uint8_t)to->id;
	return way;
}

void run_forward(const struct options *options)
{
	struct rte_mempool *buffers = make_buffers(2u * options->queues);
	struct demands demands = {.queues = options->queues};
	struct port ports[2];

	for (int port = 0; port < 2; port++) {
		/* The second one sends only, unless frames are forwarded both ways. */
		demands.interrupts = options->interrupts && (port == 0 || options->both_ways);
		open_port(&ports[port], options->devices[port], &demands, buffers);
	}
	for (uint16_t queue = 0; queue < options->queues; queue++) {
		struct worker *worker = &all[queue];

		worker->ways[0] = a_way(&ports[0], &ports[1]);
		worker->ways[1] = a_way(&ports[1], &ports[0]);
		worker->way_count = options->both_ways ? 2 : 1;
		worker->queue = queue;
		worker->batch = options->batch;
		worker->mode = options->forward_mode;
		worker->interrupts = -1;
		if (options->interrupts)
			use_interrupts(worker);
	}
	tell_ready(ports, 2);
	for (uint16_t queue = 0; queue < options->queues; queue++)
		start_worker(queue, work, &all[queue]);
	watch_workers(SLEEP_MS, NULL, received, (void *)(uintptr_t)options);
	tell_result(options, ports);
	close_port(&ports[0]);
	close_port(&ports[1]);
}
