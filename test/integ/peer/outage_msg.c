/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connected endpoints (FI_EP_MSG) through outages of a device, for the script `outage`: a listener
 * that was there before, and a client that connects to it again whenever its connection ends.
 *
 * usage: outage_msg listen IP
 *        outage_msg connect IP PORT SECONDS
 *
 * The client sends numbers, which the other end returns. Each operation ends, and each connection
 * that ends is reported by an event. In the end there must be a connection that works.
 */
#include <stdint.h>
#include <unistd.h>

#include "integ/fab.h"

#define LAST     UINT64_MAX
#define PATIENCE 60.0 /* seconds */
#define PAUSE_US 1000
#define ECHOES   20u /* by the last connection */

struct conn {
	struct fid_ep *ep;
	uint64_t out, in;
	bool connected, ended, received;
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_cq *cq;

static void open_all(const char *ip, uint64_t flags)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_NONE };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_MSG };

	FAB_TRUE(hints);
	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG;
	FAB_CHECK(fi_getinfo(FI_VERSION(1, 17), ip, "0", flags, hints, &info));
	fi_freeinfo(hints);
	FAB_CHECK(fi_fabric(info->fabric_attr, &fabric, NULL));
	FAB_CHECK(fi_domain(fabric, info, &domain, NULL));
	FAB_CHECK(fi_eq_open(fabric, &eq_attr, &eq, NULL));
	FAB_CHECK(fi_cq_open(domain, &cq_attr, &cq, NULL));
}

static void post(struct conn *conn)
{
	FAB_CHECK(fi_recv(conn->ep, &conn->in, sizeof(conn->in), NULL, 0, &conn->in));
}

static void open_conn(struct conn *conn, struct fi_info *of)
{
	memset(conn, 0, sizeof(*conn));
	FAB_CHECK(fi_endpoint(domain, of, &conn->ep, conn));
	FAB_CHECK(fi_ep_bind(conn->ep, &eq->fid, 0));
	FAB_CHECK(fi_ep_bind(conn->ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	FAB_CHECK(fi_enable(conn->ep));
	post(conn);
}

/** Reads completions. A send or receive that failed tells that the connection has ended. */
static void progress(struct conn *conn)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_msg_entry entry;
	ssize_t ret = fi_cq_read(cq, &entry, 1);

	if (ret == 1)
		conn->received |= entry.op_context == &conn->in;
	else if (ret == -FI_EAVAIL)
		FAB_TRUE(fi_cq_readerr(cq, &err, 0) == 1);
	else
		FAB_TRUE(ret == -FI_EAGAIN);
}

/** Reads an event. Returns the information of a connection request, or NULL. */
static struct fi_info *event(struct conn *conn)
{
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_cm_entry entry;
	uint32_t what;
	ssize_t ret = fi_eq_read(eq, &what, &entry, sizeof(entry), 0);

	if (ret == -FI_EAVAIL) {
		FAB_TRUE(fi_eq_readerr(eq, &err, 0) > 0);
		conn->ended = true;
		return NULL;
	}
	if (ret == -FI_EAGAIN)
		return NULL;
	FAB_CHECK(ret);
	if (what == FI_CONNREQ)
		return entry.info;
	conn->connected |= what == FI_CONNECTED;
	conn->ended |= what == FI_SHUTDOWN;
	return NULL;
}

/** Sends a number. Returns false if the connection has ended. */
static bool send_number(struct conn *conn, uint64_t number)
{
	ssize_t ret;

	conn->out = number;
	while (!conn->ended) {
		ret = fi_inject(conn->ep, &conn->out, sizeof(conn->out), 0);
		if (ret != -FI_EAGAIN) {
			conn->ended |= ret != 0;
			break;
		}
		progress(conn);
		event(conn);
	}
	return !conn->ended;
}

static void close_conn(struct conn *conn)
{
	if (conn->ep)
		FAB_CHECK(fi_close(&conn->ep->fid));
	conn->ep = NULL;
}

/* ---- listener ---- */

static void accept_conn(struct conn *conn, struct fi_info *of)
{
	close_conn(conn);
	open_conn(conn, of);
	FAB_CHECK(fi_accept(conn->ep, NULL, 0));
	fi_freeinfo(of);
}

static void listen_here(const char *ip)
{
	struct conn conn = { 0 };
	struct sockaddr_in addr;
	size_t len = sizeof(addr);
	struct fid_pep *pep;
	struct fi_info *of;

	open_all(ip, FI_SOURCE);
	FAB_CHECK(fi_passive_ep(fabric, info, &pep, NULL));
	FAB_CHECK(fi_pep_bind(pep, &eq->fid, 0));
	FAB_CHECK(fi_listen(pep));
	FAB_CHECK(fi_getname(&pep->fid, &addr, &len));
	printf("ready %d\n", ntohs(addr.sin_port));
	fflush(stdout);
	while (conn.in != LAST || !conn.received) {
		usleep(PAUSE_US / 10);
		progress(&conn);
		of = event(&conn);
		if (of)
			accept_conn(&conn, of);
		if (!conn.received || conn.in == LAST)
			continue;
		conn.received = false;
		if (send_number(&conn, conn.in))
			post(&conn);
	}
	close_conn(&conn);
	FAB_CHECK(fi_close(&pep->fid));
}

/* ---- client ---- */

static struct sockaddr_in server;
static unsigned connections, refused;

/** Waits for *what, or the end of the connection. Returns false after the latter. */
static bool await(struct conn *conn, const bool *what)
{
	double begin = fab_seconds();

	while (!*what && !conn->ended) {
		progress(conn);
		event(conn);
		FAB_TRUE(fab_seconds() - begin < PATIENCE);
	}
	return *what;
}

static void connect_again(struct conn *conn)
{
	double begin = fab_seconds();

	for (;;) {
		close_conn(conn);
		open_conn(conn, info);
		FAB_CHECK(fi_connect(conn->ep, &server, NULL, 0));
		if (await(conn, &conn->connected))
			break;
		refused++;
		usleep(100 * PAUSE_US);
		FAB_TRUE(fab_seconds() - begin < PATIENCE);
	}
	connections++;
}

/** Sends a number and waits for its return. Returns false if the connection has ended. */
static bool echo(struct conn *conn, uint64_t number)
{
	conn->received = false;
	if (!send_number(conn, number) || !await(conn, &conn->received))
		return false;
	FAB_TRUE(conn->in == number);
	post(conn);
	return true;
}

static void connect_there(const char *ip, int port, double seconds)
{
	double end = fab_seconds() + seconds;
	struct conn conn = { 0 };
	uint64_t number = 0;
	unsigned echoes = 0;

	open_all(ip, FI_SOURCE);
	server = fab_addr(ip, port);
	connect_again(&conn);
	while (fab_seconds() < end || conn.ended || echoes < ECHOES) {
		FAB_TRUE(fab_seconds() < end + PATIENCE);
		if (conn.ended) {
			echoes = 0;
			connect_again(&conn);
		}
		echoes += echo(&conn, number++);
		usleep(PAUSE_US);
	}
	printf("%u connections, %u refused, %u messages by the last one\n", connections, refused,
	       echoes);
	FAB_TRUE(send_number(&conn, LAST));
	close_conn(&conn);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "listen"))
		listen_here(argv[2]);
	else if (argc == 5 && !strcmp(argv[1], "connect"))
		connect_there(argv[2], atoi(argv[3]), atof(argv[4]));
	else
		return 2;
	FAB_CHECK(fi_close(&cq->fid));
	FAB_CHECK(fi_close(&eq->fid));
	FAB_CHECK(fi_close(&domain->fid));
	FAB_CHECK(fi_close(&fabric->fid));
	fi_freeinfo(info);
	return 0;
}
