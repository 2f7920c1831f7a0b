#include "options.h"

#include "tell.h"
#include <getopt.h>
#include <rte_version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
	"Usage: tailtrim-dpdk generate|capture|forward OPTIONS [-- ARGUMENTS OF DPDK]\n"
	"\n"
	"Packets through DPDK, as tailtrim-agent sends, captures and forwards them through the kernel. Events are JSON lines\n"
	"on standard output: ready, progress each second, result. Ends with SIGINT or SIGTERM.\n"
	"\n"
	"A DEVICE is a PCI address whose driver is vfio-pci (or that of an mlx5 card), or a virtual device of DPDK such as\n"
	"net_af_packet0,iface=eth1.\n"
	"\n"
	"generate   send the capture on standard input; its stamps are the times of departure (CLOCK_REALTIME).\n"
	"           tailtrim-agent generate --interface dpdk:DEVICE writes it, and starts this\n"
	"  --interface DEVICE           to send from\n"
	"\n"
	"capture    into NAME.pcap, with stamps of the driver where it has any in nanoseconds\n"
	"  --tap NAME=DEVICE            once for each tap\n"
	"  --out DIR                    folder of the captures; created if missing\n"
	"  --snap BYTES                 bytes to keep of each frame [default: 96]\n"
	"\n"
	"forward    a device under test, or a reference\n"
	"  --ingress DEVICE             receives\n"
	"  --egress DEVICE              sends\n"
	"  --both-ways                  forward in both directions\n"
	"  --mode poll|interrupt        poll all the time, or sleep until an interrupt tells of a frame [default: poll]\n"
	"  --forward-mode io|mac|macswap   leave MAC addresses, set them, or swap them, as testpmd does [default: io]\n"
	"  --batch N                    most frames handled in one batch, 1 to 64 [default: 32]\n"
	"\n"
	"All\n"
	"  --queues N                   queues of each port, each with a thread that polls it [default: 1]\n"
	"  --cpu CPU,…                  CPUs of these threads [default: the last ones]\n"
	"  --memory MB                  so much ordinary memory [default: huge pages, where enough are free]\n"
	"  --until-eof                  end when standard input ends (generate: always so) or the parent process ends\n"
	"\n"
	"Exit codes: 0 success, 2 invalid arguments or input, 3 not possible on this host, 4 failed while running.\n";

enum option_name { INTERFACE = 256, TAP, OUT, SNAP, INGRESS, EGRESS, BOTH_WAYS, MODE, FORWARD_MODE, BATCH, QUEUES, CPUS,
		   MEMORY, UNTIL_EOF };

static const struct option OPTIONS[] = {
	{"interface", required_argument, NULL, INTERFACE},
	{"tap", required_argument, NULL, TAP},
	{"out", required_argument, NULL, OUT},
	{"snap", required_argument, NULL, SNAP},
	{"ingress", required_argument, NULL, INGRESS},
	{"egress", required_argument, NULL, EGRESS},
	{"both-ways", no_argument, NULL, BOTH_WAYS},
	{"mode", required_argument, NULL, MODE},
	{"forward-mode", required_argument, NULL, FORWARD_MODE},
	{"batch", required_argument, NULL, BATCH},
	{"queues", required_argument, NULL, QUEUES},
	{"cpu", required_argument, NULL, CPUS},
	{"memory", required_argument, NULL, MEMORY},
	{"until-eof", no_argument, NULL, UNTIL_EOF},
	{NULL, 0, NULL, 0},
};

/* Verbs that have an option. */
static unsigned verbs_of(int name)
{
	switch (name) {
	case INTERFACE:
		return GENERATE;
	case TAP:
	case OUT:
	case SNAP:
		return CAPTURE;
	case INGRESS:
	case EGRESS:
	case BOTH_WAYS:
	case MODE:
	case FORWARD_MODE:
	case BATCH:
		return FORWARD;
	default:
		return GENERATE | CAPTURE | FORWARD;
	}
}

static const char *option_text(int name)
{
	const struct option *option = OPTIONS;

	while (option->val != name)
		option++;
	return option->name;
}

static unsigned number(int name, const char *text, unsigned least, unsigned most)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || end == text || *text == '-' || value < least || value > most)
		fail(USAGE, "--%s %s: expected a number from %u to %u", option_text(name), text, least, most);
	return (unsigned)value;
}

/* The place of a word in a list of them that ends with NULL. */
static unsigned choice(int name, const char *text, const char *const words[])
{
	char expected[64] = "";

	for (unsigned n = 0; words[n]; n++) {
		if (strcmp(text, words[n]) == 0)
			return n;
		snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected), "%s%s", n ? ", " : "", words[n]);
	}
	fail(USAGE, "--%s %s: expected one of %s", option_text(name), text, expected);
}

static void read_cpus(struct options *options, char *text)
{
	for (char *cpu = strtok(text, ","); cpu; cpu = strtok(NULL, ",")) {
		if (options->cpu_count == MOST_WORKERS)
			fail(USAGE, "--cpu: expected %d CPUs or fewer", MOST_WORKERS);
		options->cpus[options->cpu_count++] = number(CPUS, cpu, 0, 1023);
	}
}

/* NAME=DEVICE */
static void read_tap(struct options *options, char *text)
{
	static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
	char *equals = strchr(text, '=');

	if (!equals || strspn(text, PLAIN) != (size_t)(equals - text) || equals == text || !equals[1])
		fail(USAGE, "--tap %s: expected NAME=DEVICE such as ingress=0000:03:00.0", text);
	if (options->ports == MOST_PORTS)
		fail(USAGE, "--tap: expected %d taps or fewer", MOST_PORTS);
	*equals = '\0';
	for (unsigned tap = 0; tap < options->ports; tap++)
		if (strcmp(options->names[tap], text) == 0)
			fail(USAGE, "--tap %s: two taps have one name, expected one for each capture", text);
	options->names[options->ports] = text;
	options->devices[options->ports++] = equals + 1;
}

static void take(struct options *options, int name, char *value)
{
	static const char *const MODES[] = {"poll", "interrupt", NULL};
	static const char *const FORWARD_MODES[] = {"io", "mac", "macswap", NULL};

	switch (name) {
	case INTERFACE:
	case INGRESS:
		options->devices[0] = value;
		break;
	case EGRESS:
		options->devices[1] = value;
		break;
	case TAP:
		read_tap(options, value);
		break;
	case OUT:
		options->out = value;
		break;
	case SNAP:
		options->snap = number(name, value, 14, 9018);
		break;
	case BOTH_WAYS:
		options->both_ways = true;
		break;
	case MODE:
		options->interrupts = choice(name, value, MODES) == 1;
		break;
	case FORWARD_MODE:
		options->forward_mode = (enum forward_mode)choice(name, value, FORWARD_MODES);
		break;
	case BATCH:
		options->batch = (uint16_t)number(name, value, 1, 64);
		break;
	case QUEUES:
		options->queues = (uint16_t)number(name, value, 1, MOST_WORKERS);
		break;
	case CPUS:
		read_cpus(options, value);
		break;
	case MEMORY:
		options->memory_mb = number(name, value, 128, 1u << 20);
		break;
	case UNTIL_EOF:
		options->until_eof = true;
		break;
	}
}

unsigned workers(const struct options *options)
{
	return options->queues * (options->verb == CAPTURE ? options->ports : 1);
}

/* Makes sure that nothing is missing. */
static void check(struct options *options, const char *verb)
{
	if (options->verb != CAPTURE)
		options->ports = options->verb == FORWARD ? 2 : 1;
	if (options->verb == GENERATE && !options->devices[0])
		fail(USAGE, "--interface is missing: the device to send from");
	if (options->verb == CAPTURE && (!options->ports || !options->out))
		fail(USAGE, "%s is missing", options->ports ? "--out: the folder of the captures" : "--tap NAME=DEVICE");
	if (options->verb == FORWARD && (!options->devices[0] || !options->devices[1]))
		fail(USAGE, "%s is missing", options->devices[0] ? "--egress" : "--ingress");
	if (workers(options) > MOST_WORKERS)
		fail(USAGE, "%s: %u queues in all, expected %d or fewer", verb, workers(options), MOST_WORKERS);
	if (options->cpu_count && options->cpu_count != workers(options))
		fail(USAGE, "--cpu: %u CPUs for %u queues, expected one for each", options->cpu_count, workers(options));
}

static enum verb verb_of(const char *word)
{
	if (strcmp(word, "generate") == 0)
		return GENERATE;
	if (strcmp(word, "capture") == 0)
		return CAPTURE;
	if (strcmp(word, "forward") == 0)
		return FORWARD;
	fail(USAGE, "%s: expected generate, capture or forward (--help tells more)", word);
}

void read_options(struct options *options, int count, char **words)
{
	int name, eal;

	*options = (struct options){.queues = 1, .batch = 32, .snap = 96};
	for (int word = 1; word < count && strcmp(words[word], "--"); word++) {
		if (strcmp(words[word], "--help") == 0 || strcmp(words[word], "-h") == 0) {
			fputs(HELP, stdout);
			exit(DONE);
		}
		if (strcmp(words[word], "--version") == 0) {
			printf("tailtrim-dpdk %s (%s)\n", VERSION, rte_version());
			exit(DONE);
		}
	}
	if (count < 2)
		fail(USAGE, "expected generate, capture or forward (--help tells more)");
	options->verb = verb_of(words[1]);
	for (eal = 2; eal < count && strcmp(words[eal], "--"); eal++)
		;
	options->eal = words + eal + 1;
	options->eal_count = count > eal ? count - eal - 1 : 0;
	opterr = 0;
	optind = 1;
	while ((name = getopt_long(eal - 1, words + 1, "", OPTIONS, NULL)) != -1) {
		if (name == '?' || name == ':')
			fail(USAGE, "%s: no such option, or its value is missing (--help tells more)", words[optind]);
		if (!(verbs_of(name) & options->verb))
			fail(USAGE, "--%s is not an option of %s", option_text(name), words[1]);
		take(options, name, optarg);
	}
	if (optind < eal - 1)
		fail(USAGE, "%s: expected options only", words[1 + optind]);
	check(options, words[1]);
}
