/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A delegate under load: its memory stays flat, and no client starves.
 *
 * The delegate is a process whose main thread owns the connections to RANKS server processes. Its
 * clients are threads that keep DEPTH requests in flight to random servers, through a local channel
 * of the kind CRL_DELEGATION. Each response is checked. Memory is compared after a quarter of the
 * time and at the end. A client starves if it has had less than half the responses of the client
 * with most; as a busy machine may stop a thread for long, the run goes on for up to ten times
 * SECONDS until that is not so.
 *
 * usage: delegate_load [-r RANKS] [-c CLIENTS] [-q DEPTH] [-d SECONDS]
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <copyrpc/local.h>
#include <rdma/fi_ext_copyrpc.h>

#include "integ/fab.h"
#include "support/proc.h"

#define RANKS_MAX   64u
#define CLIENTS_MAX 256u
#define DEPTH_MAX   64u
#define BURST       64
#define GROWTH_MAX  (2l << 10) /* KiB that the memory may grow after a quarter of the time */

struct request {
	uint32_t rank, unused;
	uint64_t seed;
};

/* Addresses of the servers, in memory of all processes. */
struct shared {
	struct sockaddr_in addr[RANKS_MAX];
	atomic_uint open;
};

/* Request that the delegate has taken. */
struct pending {
	struct pending *next; /* in `unused` or in `backlog` */
	struct request request;
	uint64_t handle;
	uint64_t resp;
};

struct client {
	pthread_t thread;
	uint32_t number;
	_Atomic uint64_t done;
};

static uint32_t ranks = 4, client_cnt = 16, depth = 4;
static double seconds = 3;
static struct shared *shared;
static char name[64];
static atomic_bool stop;

static struct client clients[CLIENTS_MAX];
static struct pending pendings[CLIENTS_MAX * DEPTH_MAX], *unused, *backlog,
	**backlog_end = &backlog;
static struct fab fab;
static struct fi_copyrpc_ops *rpc;
static fi_addr_t servers[RANKS_MAX];
static struct crl_server *ring;
static uint64_t waited;

static uint64_t response_to(const struct request *request)
{
	return request->seed * 0x9e3779b97f4a7c15ull + request->rank;
}

static void open_endpoint(void)
{
	struct sockaddr_in any = fab_addr("127.0.0.1", 0);

	fab.wait = FI_WAIT_FD;
	fab_open(&fab, &any, FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL);
	FAB_CHECK(fi_copyrpc_open(&fab.ep->fid, &rpc));
}

/* ---- a server ---- */

static void serve_one(const struct fi_copyrpc_request *req)
{
	struct request request;
	uint64_t resp;

	FAB_TRUE(req->len == sizeof(request));
	memcpy(&request, req->data, sizeof(request));
	resp = response_to(&request);
	FAB_CHECK(fi_copyrpc_reply(rpc, fab.ep, req, &resp, sizeof(resp), FI_MORE));
}

static void server(uint32_t rank)
{
	struct fi_copyrpc_request reqs[BURST];
	struct fi_cq_tagged_entry entry;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_endpoint();
	shared->addr[rank] = fab.addr;
	atomic_fetch_add(&shared->open, 1);
	for (;;) {
		ssize_t n = fi_copyrpc_recv(rpc, fab.ep, reqs, BURST, 0);

		for (ssize_t i = 0; i < n; i++)
			serve_one(&reqs[i]);
		fi_copyrpc_flush(rpc, fab.ep, FI_ADDR_UNSPEC);
		if (n <= 0)
			fi_cq_sread(fab.cq, &entry, 1, NULL, 1000);
	}
}

/* ---- clients ---- */

static void client_call(struct client *c, struct crl_client *channel, struct request *request,
			uint64_t *rng)
{
	*rng = *rng * 6364136223846793005ull + 1442695040888963407ull;
	request->rank = (uint32_t)(*rng >> 33) % ranks;
	request->seed = *rng + c->number;
	FAB_TRUE(!crl_client_call(channel, request, sizeof(*request), request, 0));
}

static void client_check(const struct crl_response *response)
{
	uint64_t resp;

	FAB_TRUE(!response->status && response->len == sizeof(resp));
	memcpy(&resp, response->data, sizeof(resp));
	FAB_TRUE(resp == response_to(response->context));
}

static void *client_run(void *arg)
{
	struct request requests[DEPTH_MAX] = { { 0 } };
	struct crl_response responses[DEPTH_MAX];
	struct client *c = arg;
	struct crl_client *channel;
	uint64_t rng = c->number + 1;

	FAB_TRUE(!crl_client_open(&channel, name, 60000));
	for (uint32_t i = 0; i < depth; i++)
		client_call(c, channel, &requests[i], &rng);
	while (crl_client_pending(channel)) {
		int n = crl_client_poll(channel, responses, (int)DEPTH_MAX);

		for (int i = 0; i < n; i++) {
			client_check(&responses[i]);
			atomic_fetch_add_explicit(&c->done, 1, memory_order_relaxed);
			if (!atomic_load(&stop))
				client_call(c, channel, responses[i].context, &rng);
		}
		FAB_TRUE(n >= 0);
		if (!n)
			crl_client_wait(channel, 1000);
	}
	crl_client_close(channel);
	return NULL;
}

/* ---- the delegate ---- */

/* Calls the server of a request. Returns false if the call is refused for now. */
static bool delegate_call(struct pending *p)
{
	ssize_t ret = fi_copyrpc_call(rpc, fab.ep, &p->request, sizeof(p->request), &p->resp,
				      sizeof(p->resp), servers[p->request.rank], p, FI_MORE);

	FAB_TRUE(!ret || ret == -FI_EAGAIN);
	return !ret;
}

static int delegate_take(void)
{
	struct crl_request taken[BURST];
	int n = crl_server_take(ring, taken, BURST);

	FAB_TRUE(n >= 0);
	for (int i = 0; i < n; i++) {
		struct pending *p = unused;

		FAB_TRUE(p && taken[i].len == sizeof(p->request));
		unused = p->next;
		p->next = NULL;
		p->handle = taken[i].handle;
		memcpy(&p->request, taken[i].data, sizeof(p->request));
		if (!backlog && delegate_call(p))
			continue;
		waited++;
		*backlog_end = p;
		backlog_end = &p->next;
	}
	return n;
}

static void delegate_retry(void)
{
	while (backlog) {
		struct pending *next = backlog->next;

		if (!delegate_call(backlog))
			return;
		backlog = next;
	}
	backlog_end = &backlog;
}

static int delegate_end_calls(void)
{
	struct fi_cq_tagged_entry entries[BURST];
	ssize_t n = fi_cq_read(fab.cq, entries, BURST);

	FAB_TRUE(n > 0 || n == -FI_EAGAIN);
	for (ssize_t i = 0; i < n; i++) {
		struct pending *p = entries[i].op_context;

		FAB_TRUE(!crl_server_reply(ring, p->handle, &p->resp, sizeof(p->resp)));
		p->next = unused;
		unused = p;
	}
	return n > 0 ? (int)n : 0;
}

static double slowest_to_fastest(uint64_t *total)
{
	uint64_t least = UINT64_MAX, most = 1;

	*total = 0;
	for (uint32_t i = 0; i < client_cnt; i++) {
		uint64_t done = atomic_load(&clients[i].done);

		least = done < least ? done : least;
		most = done > most ? done : most;
		*total += done;
	}
	return (double)least / (double)most;
}

static void delegate_loop(void)
{
	int n = delegate_end_calls();

	delegate_retry();
	n += delegate_take();
	fi_copyrpc_flush(rpc, fab.ep, FI_ADDR_UNSPEC);
	if (!n)
		sched_yield();
}

static void delegate_open(void)
{
	struct crl_options options = { .max_clients = client_cnt, .depth = depth };

	open_endpoint();
	for (uint32_t i = 0; i < ranks; i++)
		FAB_TRUE(fi_av_insert(fab.av, &shared->addr[i], 1, &servers[i], 0, NULL) == 1);
	for (uint32_t i = 0; i < client_cnt * DEPTH_MAX; i++) {
		pendings[i].next = unused;
		unused = &pendings[i];
	}
	snprintf(name, sizeof(name), "delegate-%ld", (long)getpid());
	FAB_TRUE(!crl_server_open(&ring, CRL_DELEGATION, name, &options));
	for (uint32_t i = 0; i < client_cnt; i++) {
		clients[i].number = i;
		FAB_TRUE(!pthread_create(&clients[i].thread, NULL, client_run, &clients[i]));
	}
}

/* Lets the clients finish. */
static void delegate_close(void)
{
	struct crl_counters counters;

	atomic_store(&stop, true);
	do {
		delegate_loop();
		crl_server_counters(ring, &counters);
	} while (counters.clients || counters.accepted < client_cnt);
	for (uint32_t i = 0; i < client_cnt; i++)
		pthread_join(clients[i].thread, NULL);
	crl_server_close(ring);
}

static int delegate(void)
{
	long early = 0, late;
	double begin, now, ratio;
	uint64_t total;

	delegate_open();
	begin = fab_seconds();
	do {
		for (int i = 0; i < 1000; i++)
			delegate_loop();
		now = fab_seconds() - begin;
		if (!early && now > seconds / 4)
			early = (long)proc_resident_kib(getpid());
		ratio = slowest_to_fastest(&total);
	} while (now < seconds || (ratio < 0.5 && now < 10 * seconds));
	late = (long)proc_resident_kib(getpid());
	delegate_close();
	printf("delegate_load: %u ranks, %u clients, depth %u: %.1f s, %llu requests, %llu waited; "
	       "slowest / fastest client %.2f; memory %ld KiB, then %ld KiB\n",
	       ranks, client_cnt, depth, now, (unsigned long long)total, (unsigned long long)waited,
	       ratio, early, late);
	FAB_TRUE(ratio >= 0.5);
	FAB_TRUE(late - early <= GROWTH_MAX);
	return 0;
}

static bool parse(int argc, char **argv)
{
	for (int opt; (opt = getopt(argc, argv, "r:c:q:d:")) != -1;)
		switch (opt) {
		case 'r': ranks = (uint32_t)atoi(optarg); break;
		case 'c': client_cnt = (uint32_t)atoi(optarg); break;
		case 'q': depth = (uint32_t)atoi(optarg); break;
		case 'd': seconds = atof(optarg); break;
		default: return false;
		}
	return ranks && ranks <= RANKS_MAX && client_cnt && client_cnt <= CLIENTS_MAX && depth &&
	       depth <= DEPTH_MAX && seconds > 0;
}

int main(int argc, char **argv)
{
	if (!parse(argc, argv)) {
		fprintf(stderr,
			"usage: delegate_load [-r 1..%u] [-c 1..%u] [-q 1..%u] [-d SECONDS]\n",
			RANKS_MAX, CLIENTS_MAX, DEPTH_MAX);
		return 2;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	FAB_TRUE(shared != MAP_FAILED);
	for (uint32_t i = 0; i < ranks; i++) {
		pid_t pid = fork();

		FAB_TRUE(pid >= 0);
		if (!pid)
			server(i);
	}
	while (atomic_load(&shared->open) < ranks)
		usleep(1000);
	return delegate();
}
