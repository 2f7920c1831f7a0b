/* tailtrim-dpdk: packets through DPDK, sent, captured and forwarded; driven by tailtrim's agent and laboratory. */
#include "environment.h"
#include "options.h"
#include "stop.h"
#include "tell.h"
#include "verbs.h"
#include <fcntl.h>
#include <rte_eal.h>
#include <sys/resource.h>
#include <unistd.h>

/* Has the scheduler prefer this process, as tailtrim-agent does: a nice value counts within a session, and the session's
   own is separate. That of a shell is left alone. Where it is not allowed, the measurement shows it. */
static void prefer(void)
{
	if (setpriority(PRIO_PROCESS, 0, -20) || getsid(0) != getpid())
		return;
	int group = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);

	if (group < 0 || write(group, "-20", 3) < 0 || close(group))
		return;
}

int main(int count, char **words)
{
	struct options options;

	read_options(&options, count, words);
	/* The standard input of `generate` is its load. */
	watch_ends(options.until_eof, options.until_eof && options.verb != GENERATE);
	prefer();
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
