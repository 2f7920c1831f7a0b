/* tailtrim-dpdk: packets through DPDK, sent, captured and forwarded; driven by tailtrim's agent and laboratory. */
#include "environment.h"
#include "options.h"
#include "stop.h"
#include "tell.h"
#include "verbs.h"
#include <rte_eal.h>

int main(int count, char **words)
{
	struct options options;

	read_options(&options, count, words);
	/* The standard input of `generate` is its load. */
	watch_ends(options.until_eof, options.until_eof && options.verb != GENERATE);
	start_environment(&options, words[0]);
	switch (options.verb) {
	case GENERATE:
		run_generate(&options);
		break;
	case CAPTURE:
		run_capture(&options);
		break;
	case FORWARD:
		run_forward(&options);
		break;
	}
	rte_eal_cleanup();
	return DONE;
}
