/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tag matching by an mlx5 device (dev/mlx5/m5_tm.h) between two processes.
 *
 * usage: dev_tag match|killed|later|stop|refused [messages]
 *
 * match: messages and receives of random tags, masks and lengths; each is posted, removed, taken by
 * another message or unexpected at random (dev_tag_match.c). killed: likewise, and then the peer is
 * killed in the midst of its messages. later: once it has taken messages in as well. stop: the
 * receiver is stopped (SIGSTOP) with long receives posted; the sends complete all the same, and the
 * bytes are there afterwards. refused: the port has no tag matching, and opening says so.
 *
 * Runs on the device model, or on ConnectX adapters with InfiniBand ports.
 */
#include "dev_tag.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "dev/mlx5/m5.h"
#include "dev/mlx5/m5_dev.h"
#include "util/clock.h"
#include "util/param.h"

#define PEER_MS     2000
#define SLEEP_MS    5
#define SENDS_ALIVE (SENDS / 2) /* sends of side 0 before side 1 has died */

struct m5_tm *tm;
struct m5_tm_peer *peer;
struct send sends[SENDS];
struct recv recvs[TAGS];
uint32_t lkey;

static struct dev *dev;
static uint8_t *bytes;
static struct dev_mem *tx_mem, *rx_mem;
static uint32_t msgs = 2000;
static bool is_later;

/* ---- common ---- */

void tag_wait(struct m5_tm_event *ev)
{
	uint64_t begin = util_clock_ns();

	while (!m5_tm_poll(tm, ev))
		CHECK(util_clock_ns() - begin < STUCK_NS);
}

bool tag_sleep(struct m5_tm_event *ev, uint32_t *woken)
{
	struct pollfd pfd = { .fd = m5_dev_ops.wait_fd(dev), .events = POLLIN };
	int ready;

	if (m5_dev_ops.arm(dev))
		return m5_tm_poll(tm, ev);
	ready = poll(&pfd, 1, SLEEP_MS);
	CHECK(ready >= 0);
	*woken += (uint32_t)ready;
	if (!m5_tm_poll(tm, ev))
		return false;
	/* An event may have come behind the time's end. The device announces it all the same. */
	CHECK(ready || poll(&pfd, 1, PEER_MS) == 1);
	return true;
}

uint64_t tag_mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x7fb5d329728ea185ull;
	x = (x ^ x >> 27) * 0x81dadef4bc2dd44dull;
	return x ^ x >> 33;
}

/* Returns the data of a message, in the lower half, and in the bit above whether it has any. */
static uint64_t data_of(int from, uint32_t seq)
{
	return tag_mix(seq * 2ull + (unsigned)from + 1234) >> 31;
}

static bool has_data(int from, uint32_t seq)
{
	return data_of(from, seq) >> 32;
}

void tag_check_data(uint32_t seq, bool has, uint32_t data)
{
	CHECK(has == has_data(!side, seq));
	CHECK(data == (has ? (uint32_t)data_of(!side, seq) : 0));
}

bool tag_send(uint32_t seq, uint64_t tag, uint32_t len)
{
	struct send *send = sends;
	int ret;

	while (send < sends + SENDS && send->is_open)
		send++;
	if (send == sends + SENDS)
		return false;
	for (uint32_t i = 0; i < len; i++)
		send->buf[i] = pair_pattern(seq, i);
	ret = m5_tm_send(peer, &send->tm, tag, has_data(side, seq), (uint32_t)data_of(side, seq),
			 (uintptr_t)send->buf, (uint32_t)tx_mem->remote_key, len);
	CHECK(!ret || ret == -FI_EAGAIN);
	CHECK(ret || m5_tm_find(peer, send->tm.id) == &send->tm);
	send->is_open = !ret;
	send->is_kept = false;
	return !ret;
}

void tag_check(const uint8_t *buf, uint32_t seq, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		CHECK(buf[i] == pair_pattern(seq, i));
}

static void open_all(void)
{
	size_t tx_len = SENDS * LEN_MAX, rx_len = TAGS * LEN_MAX;

	util_params.peer_timeout_ms = PEER_MS;
	CHECK(!m5_dev_ops.open(&dev));
	CHECK(!m5_tm_open((struct m5_dev *)dev, TAGS, &tm));
	bytes = calloc(1, tx_len + rx_len);
	CHECK(bytes);
	CHECK(!m5_dev_ops.mem_reg(dev, bytes, tx_len, DEV_MEM_REMOTE_READ, &tx_mem));
	CHECK(!m5_dev_ops.mem_reg(dev, bytes + tx_len, rx_len, DEV_MEM_LOCAL, &rx_mem));
	lkey = ib_user_lkey(rx_mem);
	for (unsigned i = 0; i < SENDS; i++)
		sends[i].buf = bytes + (size_t)i * LEN_MAX;
	for (unsigned i = 0; i < TAGS; i++)
		recvs[i].buf = bytes + tx_len + (size_t)i * LEN_MAX;
}

static void meet_peer(void)
{
	struct ib_desc own[2], theirs[2];

	CHECK(!m5_tm_peer_open(tm, NULL, &peer));
	m5_tm_peer_describe(peer, &own[0], &own[1]);
	pair_tell(own, sizeof(own));
	pair_hear(theirs, sizeof(theirs));
	CHECK(!m5_tm_peer_connect(peer, &theirs[0], &theirs[1]));
	pair_meet();
}

static void close_all(void)
{
	struct m5_tm_event ev;

	m5_tm_peer_close(peer);
	CHECK(!m5_tm_poll(tm, &ev));
	m5_tm_close(tm);
	m5_dev_ops.mem_dereg(dev, tx_mem);
	m5_dev_ops.mem_dereg(dev, rx_mem);
	m5_dev_ops.close(dev);
	free(bytes);
}

static void append(struct recv *recv, uint64_t tag)
{
	recv->tag = tag;
	recv->mask = UINT64_MAX;
	recv->len = LEN_MAX;
	CHECK(!m5_tm_append(tm, &recv->tm, tag, recv->mask, recv->buf, recv->len, lkey, true));
}

/* ---- a stopped receiver ---- */

static bool is_stopped(pid_t pid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	CHECK(file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
	fclose(file);
	return state == 'T';
}

static void stop_send(void)
{
	struct m5_tm_event ev;
	pid_t pid;

	pair_hear(&pid, sizeof(pid));
	while (!is_stopped(pid))
		usleep(1000);
	for (uint32_t seq = 0; seq < SENDS; seq++)
		CHECK(tag_send(seq, seq, LEN_MAX));
	for (uint32_t seq = 0; seq < SENDS; seq++) {
		tag_wait(&ev);
		CHECK(ev.kind == M5_TM_SENT && ev.send == &sends[seq].tm);
	}
	CHECK(is_stopped(pid));
	printf("side 0: %u messages sent to a process that is stopped\n", SENDS);
	CHECK(!kill(pid, SIGCONT));
}

/* The last receive takes any tag. The device has seen all of them before the process stops. */
static void stop_receive(void)
{
	pid_t pid = getpid();
	struct m5_tm_event ev;

	for (uint32_t seq = 0; seq + 1 < SENDS; seq++)
		append(&recvs[seq], seq);
	recvs[SENDS - 1].mask = 0;
	CHECK(!m5_tm_append(tm, &recvs[SENDS - 1].tm, 0, 0, recvs[SENDS - 1].buf, LEN_MAX, lkey,
			    false));
	append(&recvs[SENDS], 12345);
	CHECK(!m5_tm_remove(tm, &recvs[SENDS].tm, false));
	tag_wait(&ev);
	CHECK(ev.kind == M5_TM_REMOVED && ev.recv == &recvs[SENDS].tm);
	pair_tell(&pid, sizeof(pid));
	raise(SIGSTOP);
	for (uint32_t seq = 0; seq < SENDS; seq++)
		tag_check(recvs[seq].buf, seq, LEN_MAX);
	for (uint32_t seq = 0; seq < SENDS; seq++) {
		for (tag_wait(&ev); ev.kind == M5_TM_MATCHED; tag_wait(&ev))
			tag_check_data((uint32_t)ev.recv->tag, ev.has_data, ev.data);
		CHECK(ev.kind == M5_TM_RECEIVED && ev.recv == &recvs[seq].tm);
		CHECK(!ev.status && ev.len == LEN_MAX && ev.recv->tag == seq);
	}
}

static void stop_side(void)
{
	open_all();
	meet_peer();
	if (side)
		stop_receive();
	else
		stop_send();
	pair_meet();
	close_all();
}

/* ---- a killed peer ---- */

/* Waits until the device has confirmed what the other side sends before this one dies. */
static void take_some(void)
{
	struct m5_tm_event ev;

	for (uint32_t taken = 0; taken < SENDS_ALIVE; taken += ev.kind == M5_TM_UNEXPECTED)
		tag_wait(&ev);
}

/* Side 1 dies in the midst of its messages. Each receive of side 0 ends once. */
static void be_killed(void)
{
	struct m5_tm_event ev;

	for (uint32_t seq = 0; seq < SENDS; seq++)
		CHECK(tag_send(seq, seq, LEN_MAX));
	if (is_later)
		take_some();
	for (uint64_t i = pair_rand() % 1000; i; i--)
		m5_tm_poll(tm, &ev);
	raise(SIGKILL);
}

static void end_receives(uint32_t left)
{
	struct m5_tm_event ev;

	for (uint32_t i = 0; i < TAGS && left; i++)
		if (recvs[i].len)
			CHECK(!m5_tm_remove(tm, &recvs[i].tm, false));
	for (; left; left--) {
		tag_wait(&ev);
		CHECK(ev.kind == M5_TM_REMOVED);
	}
}

/*
 * Waits for an event, and sends now and then: only that finds a dead peer. The peer may take in all
 * that is sent while it lives. Hence some sends are left for the time after, which begins with the
 * end of its socket.
 */
static void wait_or_send(struct m5_tm_event *ev)
{
	uint64_t begin = util_clock_ns(), due = begin;
	static uint32_t sent;

	while (!m5_tm_poll(tm, ev)) {
		CHECK(util_clock_ns() - begin < STUCK_NS);
		if (util_clock_ns() < due)
			continue;
		if (sent < SENDS_ALIVE || pair_has_arrival())
			sent += tag_send(0, 0, LEN_MAX);
		due += UTIL_NS_PER_S;
	}
}

static void outlive(void)
{
	uint32_t left = 2 * SENDS, received = 0, aborted = 0;
	bool is_closed = false;
	struct m5_tm_event ev;

	for (uint32_t i = 0; i < TAGS; i++)
		recvs[i].len = 0;
	for (uint32_t i = 0; i < left; i++)
		append(&recvs[i], i);
	pair_meet();
	while (!is_closed || m5_tm_poll(tm, &ev)) {
		if (!is_closed)
			wait_or_send(&ev);
		if (ev.kind == M5_TM_RECEIVED) {
			received += !ev.status;
			aborted += !!ev.status;
			UTIL_CONTAINER_OF(ev.recv, struct recv, tm)->len = 0;
			left--;
		} else if (ev.kind == M5_TM_DOWN) {
			m5_tm_peer_close(peer);
			is_closed = true;
		}
	}
	printf("side 0: down; %u received, %u aborted, %u left\n", received, aborted, left);
	end_receives(left);
	CHECK(m5_tm_append(tm, &recvs[0].tm, 0, 0, recvs[0].buf, 31, lkey, false) == -FI_EINVAL);
	m5_tm_close(tm);
}

static void match_side(void)
{
	open_all();
	meet_peer();
	match_play(msgs);
	pair_meet();
	close_all();
}

static void killed_side(void)
{
	open_all();
	meet_peer();
	match_play(msgs);
	pair_meet();
	if (side) {
		pair_meet();
		be_killed();
	}
	outlive();
}

static void refused_side(void)
{
	CHECK(!m5_dev_ops.open(&dev));
	CHECK(m5_tm_open((struct m5_dev *)dev, TAGS, &tm) == -FI_EOPNOTSUPP);
	m5_dev_ops.close(dev);
}

int main(int argc, char **argv)
{
	if (argc > 2)
		msgs = (uint32_t)strtoul(argv[2], NULL, 0);
	if (argc > 1 && !strcmp(argv[1], "match"))
		return pair_run(argv, match_side, false);
	is_later = argc > 1 && !strcmp(argv[1], "later");
	if (is_later || (argc > 1 && !strcmp(argv[1], "killed")))
		return pair_run(argv, killed_side, true);
	if (argc > 1 && !strcmp(argv[1], "stop"))
		return pair_run(argv, stop_side, false);
	if (argc > 1 && !strcmp(argv[1], "refused"))
		return pair_run(argv, refused_side, false);
	return 2;
}
