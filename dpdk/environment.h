/* DPDK's environment (EAL). */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include "options.h"
#include <stdbool.h>

/* Starts it with a thread for each worker (lcores 1 …) and one for this function's caller (lcore 0), or ends the process
   with an error. It leaves no files. */
void start_environment(const struct options *options, const char *program);

/* Whether DPDK names a device by its place on the PCI bus. */
bool is_pci(const char *device);

#endif
