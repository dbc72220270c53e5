/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who plays the engine in cm's tests, and who the stranger?
 *
 * struct cm_end is an agent with an engine that counts its up-calls and whose half carries a memfd
 * with a word in it. struct cm_stranger is a hand-made peer: it sends and receives raw packets,
 * sealed with whatever key it likes, and so can say things that the real one never would.
 */
#ifndef TEST_CM_FIXTURE_H
#define TEST_CM_FIXTURE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cm/cm.h"
#include "cm/msg/cm_msg.h"
#include "cm/base/cm_fd.h"
#include "cm/base/cm_mac.h"
#include "util/list.h"
#include "wire/wire_cm.h"

#define CM_TEST_WAIT_MS 60000

/*
 * cr_assert for other threads and forked children: Criterion's own writes to the runner also when all
 * is well, and the runner does not bear two writers, or one that is killed while it writes.
 */
#define CM_CHECK(x)                                                                                \
	do {                                                                                       \
		if (!(x))                                                                          \
			cm_test_fail(__FILE__, __LINE__, #x);                                      \
	} while (0)

_Noreturn void cm_test_fail(const char *file, int line, const char *what);

/** A conn as its engine sees it. */
struct cm_end_conn {
	struct cm_end *end;
	struct cm_conn *cm;
	struct util_list link;
	bool is_up;
	bool is_down;
	char text[32]; /* read from the peer's descriptor */
};

struct cm_end {
	struct cm_node *node;
	struct cm_ep *cep;
	struct sockaddr_storage addr;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	struct util_list conns;
	char text[32];    /* in our descriptor */
	uint32_t no_path; /* prepare fails for these, for good */
	int prepare_ret;
	int establish_ret;
	uint32_t fd_cnt; /* descriptors in our half; default 1 */
	uint64_t
		last_rx_ns; /* what the engine says of when it heard the peers; UINT64_MAX: right now */
	unsigned heard_asked; /* how often it was asked for that */
	void (*on_prepare)(struct cm_end *end);
	void *arg;
	unsigned prepared, established, up, asked, down, failed, accepted, refused;
	int refused_err;
	char said[CM_MSG_DATA_MAX + 1]; /* with accepted or refused */
	int down_err, failed_err;
	char why[512];
};

/** What ceps that are opened from now on offer; at first shared memory. */
extern struct cm_paths cm_test_paths;

/** Opens an agent at "127.0.0.1" or "::1", any port, on `node`. */
void cm_end_open(struct cm_end *end, struct cm_node *node, const char *ip, uint16_t port);
void cm_end_open_at(struct cm_end *end, struct cm_node *node, const union cm_addr *addr);
void cm_end_close(struct cm_end *end);
int cm_end_connect(struct cm_end *end, const struct cm_end *to);
/** A node with one end, or (b not NULL) two, on the loopback address; timeout_ms as of cm_test_node. */
struct cm_node *cm_ends_open(int timeout_ms, struct cm_end *a, struct cm_end *b);
void cm_ends_close(struct cm_node *node, struct cm_end *a, struct cm_end *b);
/** `from` asks, until both are up for the `cnt`th time. */
void cm_end_meet(struct cm_end *from, struct cm_end *to, unsigned cnt);
/** Waits until *counter >= cnt: true in time. */
bool cm_end_wait(struct cm_end *end, const unsigned *counter, unsigned cnt, int ms);
/** Reads a counter. */
unsigned cm_end_get(struct cm_end *end, const unsigned *counter);
/** Puts every conn that is down: how many. */
unsigned cm_end_reap(struct cm_end *end);
/** Conns that are up and not down. */
unsigned cm_end_live(struct cm_end *end);
/** Puts one of them: true if there was one. */
bool cm_end_put_live(struct cm_end *end);
/** The same, but its end is no goodbye. */
bool cm_end_break_live(struct cm_end *end, bool came);
/** Checks that the only live conn has read `text` from its peer. */
void cm_end_check_text(struct cm_end *end, const char *text);
struct cm_stats cm_end_stats(struct cm_end *end);

struct cm_node *cm_test_node(const char *key, int timeout_ms);
/** Skips the test where this host has no IPv6. */
void cm_test_need_ipv6(void);
/** An address of loopback, from text. */
void cm_test_addr(const char *ip, uint16_t port, union cm_addr *addr);
union cm_addr cm_test_addr_of(const struct cm_end *end);
uint16_t cm_test_port(const struct cm_end *end);
void cm_test_sleep_ms(unsigned ms);
/** How often the thread of `node` has woken up: who spins does so without end. */
uint64_t cm_test_passes(struct cm_node *node);
/** CPU time of the process, in milliseconds. */
double cm_test_cpu_ms(void);
/** Open descriptors of the process; at_rest: while no thread of `node` is in the middle of something. */
unsigned cm_test_fd_count(void);
unsigned cm_test_fd_count_at_rest(struct cm_node *node);
/** A memfd with `text` in it, or -FI_E*. */
int cm_test_memfd(const char *text);

struct cm_stranger {
	int udp;
	int stream;
	union cm_addr addr;
	uint64_t inc;
	uint64_t nonce;
	struct cm_mac_key key;
};

void cm_stranger_open(struct cm_stranger *s, const char *ip, const char *key);
void cm_stranger_close(struct cm_stranger *s);
/** Sends `pkt` as it is, sealed. src_inc and nonce are filled in if 0. */
void cm_stranger_send(struct cm_stranger *s, const union cm_addr *to, struct wire_cm_pkt *pkt);
/** The next datagram, decoded: false if none comes in time. */
bool cm_stranger_recv(struct cm_stranger *s, struct wire_cm_pkt *pkt, int ms);
/** The next datagram of that type; others are passed over. */
struct wire_cm_pkt cm_stranger_await(struct cm_stranger *s, enum wire_cm_type type);
/** REQ, and the ACK that comes: true if it is one. */
bool cm_stranger_ask(struct cm_stranger *s, const union cm_addr *to, struct wire_cm_pkt *ack);
/** A stream to where the ACK says. */
bool cm_stranger_connect(struct cm_stranger *s, const struct wire_cm_pkt *ack);
/** A HELLO with the ACK's cookie, and a half without descriptors. */
void cm_stranger_hello(struct cm_stranger *s, const struct wire_cm_pkt *ack,
		       struct wire_cm_pkt *hello);
void cm_stranger_say(struct cm_stranger *s, const union cm_addr *to, struct wire_cm_pkt *pkt,
		     const int *fds, uint32_t fd_cnt);
/** The next packet on the stream: 1, 0 at its end, -1 if nothing comes in time. */
int cm_stranger_hear(struct cm_stranger *s, struct wire_cm_pkt *pkt, int ms);

#endif
