/* The verbs. Each opens its ports, prints `ready`, `progress` and `result`, and returns when it is over. */
#ifndef VERBS_H
#define VERBS_H

#include "options.h"

/* Sends what comes on standard input at the times that it has. */
void run_generate(const struct options *options);

/* Writes what the ports receive to files. */
void run_capture(const struct options *options);

/* Sends what one port receives through another one. */
void run_forward(const struct options *options);

#endif
