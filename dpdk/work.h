/* Threads that poll, and the one that watches them. */
#ifndef WORK_H
#define WORK_H

#include "port.h"
#include <rte_launch.h>
#include <stdatomic.h>
#include <stdint.h>

/* Counts what one thread does; others may read it meanwhile. */
typedef _Atomic(uint64_t) counter;

static inline void increase(counter *of, uint64_t by)
{
	atomic_store_explicit(of, atomic_load_explicit(of, memory_order_relaxed) + by, memory_order_relaxed);
}

/* Prints the event `ready` with the ports. */
void tell_ready(const struct port *ports, unsigned count);

/* Starts `work` on lcore 1 + `number`. */
void start_worker(unsigned number, lcore_function_t *work, void *argument);

/* Waits until all workers have returned. Meanwhile calls `each` every `every_ms`, and prints each second how many
   packets there are. */
void watch_workers(int every_ms, void (*each)(void *), uint64_t (*packets)(void *), void *argument);

#endif
