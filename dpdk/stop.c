#include "stop.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <unistd.h>

static atomic_bool over;
static bool until_input;

static void on_signal(int number)
{
	(void)number;
	atomic_store_explicit(&over, true, memory_order_relaxed);
}

void watch_ends(bool with_parent, bool with_input)
{
	/* Also a second one, as timeout(1) sends, lets the result be told. */
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	until_input = with_input;
	if (with_parent)
		prctl(PR_SET_PDEATHSIG, SIGTERM);
}

bool is_over(void)
{
	return atomic_load_explicit(&over, memory_order_relaxed);
}

void end_all(void)
{
	atomic_store_explicit(&over, true, memory_order_relaxed);
}

void wait_ms(int ms)
{
	struct pollfd input = {.fd = until_input ? STDIN_FILENO : -1, .events = POLLIN};
	char rest[64];

	if (poll(&input, 1, ms) > 0 && read(STDIN_FILENO, rest, sizeof(rest)) <= 0)
		end_all();
}
