/* Matches two captures in the plainest way that is fast: what matching costs at the very least.
 *
 *     naive_match INGRESS.pcap EGRESS.pcap
 *
 * Little-endian nanosecond pcap, Ethernet, IPv4 without options, UDP, every signature once, stamps in
 * order: nothing else is handled, and one 64-bit hash stands for a packet. Of all that tailtrim computes it
 * computes the histogram of the latencies, which it prints as JSON. Its table of packets in flight takes 1 MiB,
 * so it stays in the second-level cache; more than 49,152 packets in flight or lost are an error.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SLOTS (1u << 16)
#define BINS (1u << 24)

struct tap {
    const uint8_t *at, *end;
    uint64_t stamp_ns, key;
    int more;
};

static struct {
    uint64_t key, stamp_ns;
} table[SLOTS];
static uint64_t histogram[BINS];

static uint32_t held;

/* Both halves of a product of 128 bits. */
static uint64_t folded(uint64_t one, uint64_t other)
{
    unsigned __int128 product = (unsigned __int128)one * other;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static void next(struct tap *tap)
{
    static const uint64_t mask[6] = {/* without TTL and checksums of IPv4 and UDP */
        ~0ull, 0xffffffff0000ff00ull, ~0ull, 0xffffffff0000ffffull, ~0ull, 0x0000ffffffffffffull};
    static const uint64_t odd[6] = {/* digits of pi behind the point */
        0x243f6a8885a308d3ull, 0x13198a2e03707345ull, 0xa4093822299f31d1ull,
        0x082efa98ec4e6c89ull, 0x452821e638d01377ull, 0xbe5466cf34e90c6dull};
    uint32_t header[4];
    uint64_t words[6];

    tap->more = tap->end - tap->at >= 16;
    if (!tap->more)
        return;
    memcpy(header, tap->at, 16);
    tap->stamp_ns = header[0] * 1000000000ull + header[1];
    memcpy(words, tap->at + 16 + 14, sizeof words);
    tap->key = 1;
    for (int i = 0; i < 6; i += 2)
        tap->key ^= folded((words[i] & mask[i]) ^ odd[i], (words[i + 1] & mask[i + 1]) ^ odd[i + 1]);
    tap->key += !tap->key; /* 0 is an empty slot */
    tap->at += 16 + header[2];
}

static struct tap open_tap(const char *path)
{
    struct tap tap;
    struct stat status;
    int file = open(path, O_RDONLY);

    if (file < 0 || fstat(file, &status)) {
        perror(path);
        exit(1);
    }
    tap.at = mmap(0, status.st_size + 64, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    tap.end = tap.at + status.st_size;
    tap.at += 24;
    next(&tap);
    return tap;
}

static uint32_t home(uint64_t key)
{
    return key * 0xff51afd7ed558ccdull >> 48;
}

/* Closes the gap that a taken entry leaves (linear probing). */
static void close_gap(uint32_t gap)
{
    for (uint32_t at = (gap + 1) & (SLOTS - 1); table[at].key; at = (at + 1) & (SLOTS - 1))
        if (((at - home(table[at].key)) & (SLOTS - 1)) >= ((at - gap) & (SLOTS - 1))) {
            table[gap] = table[at];
            gap = at;
        }
    table[gap].key = 0;
    held--;
}

int main(int count, char **names)
{
    if (count != 3)
        return 2;
    struct tap in = open_tap(names[1]), out = open_tap(names[2]);
    while (in.more || out.more) {
        int entering = in.more && (!out.more || in.stamp_ns <= out.stamp_ns);
        uint64_t key = entering ? in.key : out.key;
        uint32_t at = home(key);
        while (table[at].key && (entering || table[at].key != key))
            at = (at + 1) & (SLOTS - 1);
        if (entering) {
            table[at].key = key;
            table[at].stamp_ns = in.stamp_ns;
            if (++held > SLOTS / 4 * 3) {
                fputs("too many packets in flight or lost\n", stderr);
                return 1;
            }
            next(&in);
        } else {
            if (table[at].key) {
                uint64_t latency_ns = out.stamp_ns - table[at].stamp_ns;
                histogram[latency_ns < BINS ? latency_ns : BINS - 1]++;
                close_gap(at);
            }
            next(&out);
        }
    }
    const char *comma = "{\"histogram\": [";
    for (uint64_t latency_ns = 0; latency_ns < BINS; latency_ns++)
        if (histogram[latency_ns]) {
            printf("%s[%" PRIu64 ", %" PRIu64 "]", comma, latency_ns, histogram[latency_ns]);
            comma = ", ";
        }
    puts("]}");
}
