/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cost of a datagram of a flood: for its sender, for the kernel of the attacked host, and for the
 * attacked process. Sources are forged (a raw socket), and there is no job key unless a row says
 * so.
 *
 * usage: flood_bench [-r ROUNDS] [-k KIND]
 *
 * The bench moves to a network namespace of its own, which needs root or user namespaces (exit
 * status 77: there is none, or no tun device). Packets are sent to nowhere, which is a tun device
 * without a reader and shows what a send costs, and to the attacked socket over loopback. There the
 * sending call also executes what the kernel of the receiver does, up to the drop or the socket's
 * queue. The rest is what the process spends on it, with its system calls and with the reply that
 * it may send to the forged source, which goes to nowhere, too.
 *
 * Prints nanoseconds a packet, medians of rounds in which all kinds take turns. With -k runs one
 * kind once and raises SIGUSR2 before and after the process takes its packets, for insn_count.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cm/conn/cm_dgram.h"
#include "cm/ep/cm_ep.h"
#include "dev/udp/udp_dgram.h"
#include "erpc/erpc_progress.h"
#include "erpc/erpc_setup.h"
#include "util/clock.h"
#include "wire/wire_cm.h"
#include "wire/wire_erpc.h"

#define BURST      64u /* packets of a round: they fit the socket's queue */
#define ROUNDS_MAX 4096u
#define HERE       "10.9.0.1"
#define NOWHERE    "10.9.0.2"
#define FORGED     0x0A090100u /* 10.9.1.0 and so on: the routes lead to nowhere */
#define PORT       9u
#define KEY        "a job's key"

#define NO_NAMESPACE 77 /* exit status */

#define MUST(x)                                                                                    \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "flood_bench: %s: %s\n", #x, strerror(errno));             \
			exit(EXIT_FAILURE);                                                        \
		}                                                                                  \
	} while (0)

struct packet {
	struct iphdr ip;
	struct udphdr udp;
	uint8_t data[WIRE_CM_MAX];
};

/** Times of a packet, nanoseconds: of one round, or medians. */
struct cost {
	double send, arrive, process;
};

static int raw_fd;
static struct cm_node *nodes[2]; /* without a job key, with one */
static struct cm_ep *ceps[2];
static struct erpc_ep *eps[2]; /* with the filter, without it */
static uint16_t ports[2];
static unsigned rounds = 301;

/* ---- network ---- */

static void if_up(int fd, const char *name, const char *addr)
{
	struct ifreq req;
	struct sockaddr_in in = { .sin_family = AF_INET };

	memset(&req, 0, sizeof(req));
	strncpy(req.ifr_name, name, IFNAMSIZ - 1);
	if (addr) {
		in.sin_addr.s_addr = inet_addr(addr);
		memcpy(&req.ifr_addr, &in, sizeof(in));
		MUST(!ioctl(fd, SIOCSIFADDR, &req));
		in.sin_addr.s_addr = inet_addr("255.255.0.0");
		memcpy(&req.ifr_netmask, &in, sizeof(in));
		MUST(!ioctl(fd, SIOCSIFNETMASK, &req));
	}
	MUST(!ioctl(fd, SIOCGIFFLAGS, &req));
	req.ifr_flags |= IFF_UP | IFF_RUNNING;
	MUST(!ioctl(fd, SIOCSIFFLAGS, &req));
}

static void open_network(void)
{
	struct ifreq req = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd, tun;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		fprintf(stderr, "flood_bench: no network namespace: %s\n", strerror(errno));
		exit(NO_NAMESPACE);
	}
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (tun < 0 || ioctl(tun, TUNSETIFF, &req)) {
		fprintf(stderr, "flood_bench: no tun device: %s\n", strerror(errno));
		exit(NO_NAMESPACE);
	}
	MUST(fd >= 0);
	if_up(fd, "lo", NULL);
	if_up(fd, req.ifr_name, HERE);
	close(fd);
	raw_fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
	MUST(raw_fd >= 0);
}

/** Sends a packet whose checksums the kernel fills in or that need none. */
static void send_packet(struct packet *pkt, size_t len, uint32_t to, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = to };
	size_t all = offsetof(struct packet, data) + len;

	pkt->ip.daddr = to;
	pkt->udp.dest = htons(port);
	MUST(sendto(raw_fd, pkt, all, 0, (struct sockaddr *)&in, sizeof(in)) == (ssize_t)all);
}

/* ---- the attacked endpoints ---- */

static int on_prepare(void *ctx, struct cm_conn *conn, struct cm_params *params, void **user)
{
	return -FI_ENOMEM;
}

static const struct cm_ep_ops no_conns = { .prepare = on_prepare };
static const struct core_upcalls no_upcalls;

static uint16_t port_of(int fd)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);

	MUST(!getsockname(fd, (struct sockaddr *)&in, &len));
	return ntohs(in.sin_port);
}

static void open_cm(unsigned i)
{
	struct cm_cfg cfg = { .job_key = i ? KEY : NULL };
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = inet_addr(HERE) };
	struct cm_paths paths = { WIRE_CM_PATH_UDP, { WIRE_CM_PATH_UDP } };

	MUST(!cm_node_open_cfg(&cfg, &nodes[i]));
	cm_node_halt(nodes[i]); /* packets are taken when the bench says so */
	MUST(!cm_ep_open(nodes[i], (struct sockaddr *)&here, paths, &no_conns, NULL, &ceps[i]));
}

static void open_erpc(unsigned i)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = inet_addr(HERE) };
	struct dev_dgram_attr dg_attr = { .local = (struct sockaddr *)&here,
					  .rx_cnt = 256,
					  .tx_cnt = 64,
					  .match = { { WIRE_ERPC_MAGIC_AT, 0xF0,
						       WIRE_ERPC_MAGIC << 4 },
						     { WIRE_ERPC_TAG_AT, 0xFF, 1 } },
					  .match_cnt = i ? 0 : 2 };
	struct erpc_ep_attr attr = { .tx_cnt = 64, .up = &no_upcalls, .mark = 1 };

	MUST(!udp_dgram_ops.open(NULL, &dg_attr, &attr.dg));
	ports[i] = port_of(((struct udp_dgram *)attr.dg)->sock.fd);
	MUST(!erpc_ep_open(&attr, &eps[i]));
}

static void take_cm(unsigned i)
{
	uint64_t before = ceps[i]->stats->rx_pkts;

	do {
		cm_node_lock(nodes[i]);
		ceps[i]->socks[0].src.ready(&ceps[i]->socks[0].src, EPOLLIN);
		cm_node_unlock(nodes[i]);
	} while (ceps[i]->stats->rx_pkts < before + BURST);
}

static void take_erpc(unsigned i)
{
	uint64_t now = util_clock_ns();

	while (erpc_ep_progress(eps[i], now))
		;
}

/* ---- kinds ---- */

/** Writes the data of a packet. Returns its length. */
typedef size_t make_fn(struct packet *pkt, const union cm_addr *from, unsigned victim);

static size_t make_session(struct packet *pkt, const union cm_addr *from, unsigned victim)
{
	struct wire_erpc_hdr h = { .req_type = WIRE_ERPC_BATCH,
				   .msg_size = 8,
				   .session = 3,
				   .kind = WIRE_ERPC_REQ,
				   .tag = 2 };

	wire_erpc_put(pkt->data, &h);
	return WIRE_ERPC_HDR_LEN + 8;
}

static size_t make_garbage(struct packet *pkt, const union cm_addr *from, unsigned victim)
{
	return 64;
}

static size_t seal(struct packet *pkt, const union cm_addr *from, unsigned victim,
		   const struct wire_cm_pkt *cm)
{
	static const struct cm_mac_key no_key;
	size_t len = wire_cm_encode(cm, pkt->data);

	cm_mac_seal(&no_key, from, &ceps[victim]->addr, pkt->data, len);
	return len;
}

static size_t make_req(struct packet *pkt, const union cm_addr *from, unsigned victim)
{
	struct wire_cm_pkt cm = { .type = WIRE_CM_REQ, .nonce = 7, .src_inc = 5 };

	cm.req.paths = WIRE_CM_PATH_UDP;
	return seal(pkt, from, victim, &cm);
}

static size_t make_altered(struct packet *pkt, const union cm_addr *from, unsigned victim)
{
	size_t len = make_req(pkt, from, victim);

	pkt->data[len - 1] ^= 1;
	return len;
}

static size_t make_hello(struct packet *pkt, const union cm_addr *from, unsigned victim)
{
	struct wire_cm_pkt cm = {
		.type = WIRE_CM_HELLO, .nonce = 7, .src_inc = 5, .dst_inc = ceps[victim]->inc
	};

	memset(cm.hello.cookie, 1, WIRE_CM_COOKIE_LEN);
	cm_addr_to_wire(from, &cm.hello.addr);
	cm.hello.params.path = WIRE_CM_PATH_UDP;
	return seal(pkt, from, victim, &cm);
}

static const struct kind {
	const char *name, *text;
	make_fn *make;
	unsigned victim;
	void (*take)(unsigned victim);
	bool is_limited; /* the limits on replies to strangers are reached */
} kinds[] = {
	{ "filtered", "session: header with another mark", make_session, 0, take_erpc, false },
	{ "session", "session: the same without the filter", make_session, 1, take_erpc, false },
	{ "garbage", "handshake: garbage", make_garbage, 0, take_cm, false },
	{ "altered", "handshake: REQ with a wrong digest", make_altered, 0, take_cm, false },
	{ "hello", "handshake: HELLO with an invented cookie", make_hello, 0, take_cm, false },
	{ "hello-limited", "the same beyond the limits", make_hello, 0, take_cm, true },
	{ "req", "handshake: REQ, replied to by ACK", make_req, 0, take_cm, false },
	{ "req-limited", "the same beyond the limits", make_req, 0, take_cm, true },
	{ "keyless", "handshake: REQ, where there is a job key", make_req, 1, take_cm, false },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static uint16_t port_of_victim(const struct kind *kind)
{
	if (kind->take == take_erpc)
		return ports[kind->victim];
	return port_of(ceps[kind->victim]->socks[0].src.fd);
}

/* ---- measurement ---- */

static struct packet packets[BURST];
static size_t len;

/** Makes the packets before they are sent: an attacker may do so once and for all. */
static void make_packets(const struct kind *kind)
{
	for (unsigned i = 0; i < BURST; i++) {
		struct packet *pkt = &packets[i];
		struct sockaddr_in in = { .sin_family = AF_INET,
					  .sin_port = htons(PORT),
					  .sin_addr.s_addr = htonl(FORGED + i) };
		union cm_addr from;

		MUST(!cm_addr_import((struct sockaddr *)&in, &from));
		memset(pkt, 0, sizeof(*pkt));
		len = kind->make(pkt, &from, kind->victim);
		pkt->ip = (struct iphdr){ .version = 4,
					  .ihl = 5,
					  .ttl = 64,
					  .protocol = IPPROTO_UDP,
					  .saddr = in.sin_addr.s_addr };
		pkt->udp.source = in.sin_port;
		pkt->udp.len = htons((uint16_t)(sizeof(pkt->udp) + len));
	}
}

static double send_all(const char *to, uint16_t port)
{
	uint32_t addr = inet_addr(to);
	uint64_t start = util_clock_ns();

	for (unsigned i = 0; i < BURST; i++)
		send_packet(&packets[i], len, addr, port);
	return (double)(util_clock_ns() - start) / BURST;
}

static void set_limits(const struct kind *kind)
{
	struct cm_stranger *stranger = &ceps[kind->victim]->stranger;

	memset(stranger, 0, sizeof(*stranger));
	if (kind->is_limited)
		stranger->all_ns = UINT64_MAX;
}

static struct cost run_round(const struct kind *kind)
{
	uint16_t port = port_of_victim(kind);
	struct cost cost;
	uint64_t start;

	make_packets(kind);
	set_limits(kind);
	send_all(NOWHERE, port); /* warms up */
	cost.send = send_all(NOWHERE, port);
	cost.arrive = send_all(HERE, port) - cost.send;
	start = util_clock_ns();
	kind->take(kind->victim);
	cost.process = (double)(util_clock_ns() - start) / BURST;
	return cost;
}

static int compare(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1
						       : *(const double *)a > *(const double *)b;
}

/** Returns the median of one figure, at `off` in struct cost, of all rounds. */
static double median(const struct cost *costs, size_t off)
{
	static double values[ROUNDS_MAX];

	for (unsigned i = 0; i < rounds; i++)
		memcpy(&values[i], (const char *)&costs[i] + off, sizeof(values[i]));
	qsort(values, rounds, sizeof(values[0]), compare);
	return values[rounds / 2];
}

static void run_all(void)
{
	static struct cost costs[KINDS][ROUNDS_MAX];

	for (unsigned i = 0; i < rounds; i++)
		for (size_t k = 0; k < KINDS; k++)
			costs[k][i] = run_round(&kinds[k]);
	printf("%-42s %8s %8s %8s %8s\n", "ns a packet", "send", "kernel", "process", "ratio");
	for (size_t k = 0; k < KINDS; k++) {
		double send = median(costs[k], offsetof(struct cost, send));
		double arrive = median(costs[k], offsetof(struct cost, arrive));
		double process = median(costs[k], offsetof(struct cost, process));

		printf("%-42s %8.0f %8.0f %8.0f %8.2f\n", kinds[k].text, send, arrive, process,
		       (arrive + process) / send);
	}
}

static void run_marked(const char *name)
{
	size_t k = 0;

	while (strcmp(kinds[k].name, name))
		MUST(++k < KINDS);
	run_round(&kinds[k]);
	send_all(HERE, port_of_victim(&kinds[k]));
	raise(SIGUSR2);
	kinds[k].take(kinds[k].victim);
	raise(SIGUSR2);
	printf("%s: %u packets\n", kinds[k].text, BURST);
}

int main(int argc, char **argv)
{
	const char *name = NULL;
	int opt;

	while ((opt = getopt(argc, argv, "r:k:")) != -1)
		switch (opt) {
		case 'r': rounds = (unsigned)atoi(optarg); break;
		case 'k': name = optarg; break;
		default: return 2;
		}
	if (!rounds || rounds > ROUNDS_MAX)
		return 2;
	MUST(!cm_mac_init());
	open_network();
	for (unsigned i = 0; i < 2; i++) {
		open_cm(i);
		open_erpc(i);
	}
	if (name)
		run_marked(name);
	else
		run_all();
	return 0;
}
