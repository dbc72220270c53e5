/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixtures for cm's tests.
 *
 * struct cm_end: a CM endpoint with an engine that counts its up-calls. Its connection parameters
 * carry a memfd with a text. struct cm_raw_peer: a peer that sends and receives raw packets, sealed
 * with any key, and can violate the protocol.
 */
#ifndef TEST_CM_FIXTURE_H
#define TEST_CM_FIXTURE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cm/base/cm.h"
#include "cm/msg/cm_msg.h"
#include "cm/base/cm_fd.h"
#include "cm/base/cm_mac.h"
#include "cm/base/cm_state.h"
#include "util/list.h"
#include "wire/wire_cm.h"

#define CM_TEST_WAIT_MS 60000

/*
 * cr_assert for other threads and forked children. Criterion's own asserts write to the runner even
 * on success; two writers, or one that is killed while writing, confuse the runner.
 */
#define CM_CHECK(x)                                                                                \
	do {                                                                                       \
		if (!(x))                                                                          \
			cm_test_fail(__FILE__, __LINE__, #x);                                      \
	} while (0)

_Noreturn void cm_test_fail(const char *file, int line, const char *what);

/** Conn from the engine's point of view. */
struct cm_end_conn {
	struct cm_end *end;
	struct cm_conn *cm;
	struct util_list link;
	bool is_up;
	bool is_down;
	char text[32]; /* read from the peer's descriptor */
	pid_t pid;     /* in the peer's description */
};

struct cm_end {
	struct cm_node *node;
	struct cm_ep *cep;
	struct sockaddr_storage addr;
	pthread_mutex_t lock; /* guards the fields below */
	pthread_cond_t changed;
	struct util_list conns;
	char text[32];    /* contents of the own descriptor */
	uint32_t no_path; /* paths for which prepare fails finally */
	int prepare_ret;
	int establish_ret;
	uint32_t fd_cnt;      /* descriptors in the own parameters; default 1 */
	uint64_t last_rx_ns;  /* returned by the up-call last_rx_ns; UINT64_MAX: now */
	unsigned last_rx_cnt; /* number of those up-calls */
	void (*on_prepare)(struct cm_end *end);
	void *arg;
	unsigned prepared, established, up, requested, down, failed, aliased, accepted, refused;
	union cm_addr alias; /* of the last up-call alias, with the incarnation */
	uint64_t alias_inc;
	uint64_t features; /* of the last prepare */
	int refused_err;
	char data[CM_MSG_DATA_MAX + 1]; /* from accepted or refused */
	int down_err, failed_err;
	char why[512];
};

/** Whether nodes opened from now on take loopback for an address of another host. */
extern bool cm_test_apart;
/** Returns false: a cm_cfg.is_local for such nodes. */
bool cm_test_is_nowhere(const struct sockaddr *addr);

/** Paths of endpoints opened from now on; initially shared memory. */
extern struct cm_paths cm_test_paths;

/** Opens an endpoint at "127.0.0.1" or "::1" on `node`; port 0: any. */
void cm_end_open(struct cm_end *end, struct cm_node *node, const char *ip, uint16_t port);
void cm_end_open_at(struct cm_end *end, struct cm_node *node, const union cm_addr *addr);
void cm_end_close(struct cm_end *end);
int cm_end_connect(struct cm_end *end, const struct cm_end *to);
/** Opens a node with one end or (b not NULL) two on loopback; timeout_ms: see cm_test_node. */
struct cm_node *cm_ends_open(int timeout_ms, struct cm_end *a, struct cm_end *b);
void cm_ends_close(struct cm_node *node, struct cm_end *a, struct cm_end *b);
/** Connects `from` to `to` and waits until both have been up `cnt` times. */
void cm_ends_connect(struct cm_end *from, struct cm_end *to, unsigned cnt);
/** Waits until *counter >= cnt. Returns false on timeout. */
bool cm_end_wait(struct cm_end *end, const unsigned *counter, unsigned cnt, int ms);
/** Reads a counter under the lock. */
unsigned cm_end_get(struct cm_end *end, const unsigned *counter);
/** Puts every conn that is down. Returns their number. */
unsigned cm_end_reap(struct cm_end *end);
/** Counts conns that are up and not down. */
unsigned cm_end_live(struct cm_end *end);
/** Puts one of them. Returns false if there was none. */
bool cm_end_put_live(struct cm_end *end);
/** Puts one of them after cm_conn_break. */
bool cm_end_break_live(struct cm_end *end, bool came);
/** Checks that the only live conn has read `text` from its peer. */
void cm_end_check_text(struct cm_end *end, const char *text);
struct copyrpc_stats_handshakes cm_end_stats(struct cm_end *end);

struct cm_node *cm_test_node(const char *key, int timeout_ms);
/** Skips the test where this host has no IPv6. */
void cm_test_need_ipv6(void);
/** Makes an address from text. */
void cm_test_addr(const char *ip, uint16_t port, union cm_addr *addr);
/** Writes an IPv4 address of an interface other than loopback, or skips the test. */
void cm_test_own_address(char *ip);
union cm_addr cm_test_addr_of(const struct cm_end *end);
uint16_t cm_test_port(const struct cm_end *end);
void cm_test_sleep_ms(unsigned ms);
/** Returns the passes of the thread of `node`; a thread that spins makes many. */
uint64_t cm_test_passes(struct cm_node *node);
/** Returns the CPU time of the process in milliseconds. */
double cm_test_cpu_ms(void);
/** Counts open descriptors; at_rest: while the thread of `node` handles no event. */
unsigned cm_test_fd_count(void);
unsigned cm_test_fd_count_at_rest(struct cm_node *node);
/** Limits the process to the open descriptors and `room` more; room < 0: lifts the limit. */
void cm_test_limit_fds(int room);
/** Checks that exactly the transitions `legal` ("from>to") are legal. */
void cm_test_transitions(const struct cm_states *states, const char *const *legal, size_t cnt);
/** Returns a memfd that contains `text`, or -FI_E*. */
int cm_test_memfd(const char *text);

/**
 * Returns a TCP socket whose last release waits, until *reader is closed or for a minute: it has
 * unsent data and SO_LINGER.
 */
int cm_test_stuck_socket(int *reader);

struct cm_raw_peer {
	int udp;
	int stream;
	union cm_addr addr;
	uint64_t inc;
	uint64_t first_inc; /* the value of `inc` at first: tests change it */
	uint64_t sent_inc;  /* in the last packet; another one than `inc` if a test says so */
	uint64_t nonce;
	struct cm_mac_key key;
};

void cm_raw_peer_open(struct cm_raw_peer *s, const char *ip, const char *key);
void cm_raw_peer_close(struct cm_raw_peer *s);
/**
 * Makes the kernel refuse what is sent to the address, as for a process that has ended: the socket
 * is connected to another address. The port stays taken, so no other process gets it meanwhile.
 */
void cm_raw_peer_refuse(struct cm_raw_peer *s);
/** Seals and sends `pkt` in a datagram. Fills in src_inc and nonce if they are 0. */
void cm_raw_peer_send(struct cm_raw_peer *s, const union cm_addr *to, struct wire_cm_pkt *pkt);
/**
 * Receives a datagram and decodes it. Skips those to another incarnation: the port may have
 * belonged to a peer of a test that runs beside this one, whose endpoint sends BYE. Returns false
 * on timeout.
 */
bool cm_raw_peer_recv(struct cm_raw_peer *s, struct wire_cm_pkt *pkt, int ms);
/** Receives the next datagram except PINGs, which a stall may cause. Returns false on timeout. */
bool cm_raw_peer_recv_reply(struct cm_raw_peer *s, struct wire_cm_pkt *pkt);
/** Receives the next datagram of a type, and skips others. */
struct wire_cm_pkt cm_raw_peer_await(struct cm_raw_peer *s, enum wire_cm_type type);
/** Sends REQ and receives a datagram. Returns whether it is an ACK. */
bool cm_raw_peer_get_ack(struct cm_raw_peer *s, const union cm_addr *to, struct wire_cm_pkt *ack);
/** Connects a stream to the name in the ACK. */
bool cm_raw_peer_connect(struct cm_raw_peer *s, const struct wire_cm_pkt *ack);
/** Makes a HELLO with the ACK's cookie and parameters without descriptors. */
void cm_raw_peer_make_hello(struct cm_raw_peer *s, const struct wire_cm_pkt *ack,
			    struct wire_cm_pkt *hello);
void cm_raw_peer_send_stream(struct cm_raw_peer *s, const union cm_addr *to,
			     struct wire_cm_pkt *pkt, const int *fds, uint32_t fd_cnt);
/** Makes a stream and completes a handshake on it. */
void cm_raw_peer_establish(struct cm_raw_peer *s, const union cm_addr *to);
/** Receives a packet on the stream. Returns 1, 0 at its end, or -1 on timeout. */
int cm_raw_peer_recv_stream(struct cm_raw_peer *s, struct wire_cm_pkt *pkt, int ms);

#endif
