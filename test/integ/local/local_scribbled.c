/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A client of a local channel that writes over all the memory it can write.
 *
 * First every field with every class of values: 0, 1, the maximum, values next to valid ones,
 * random ones; after each the honest clients must go on. Then random values without end, in turns
 * with an honest client in the same place. The server must not end, no response may be wrong, and
 * the rates of the honest clients in both cases are printed. The clients check the contents of each
 * response.
 *
 * usage: local_scribbled delegation|ipc [seconds of a turn]
 */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>

#include "integ_local.h"
#include "local/crl_hello.h"
#include "local/crl_mem.h"
#include "local/crl_sock.h"
#include "local/crl_tokens.h"
#include "support/rng.h"

#define HONEST 2
#define DEPTH  8
#define BYTES  64
#define TURNS  5
#define TRIES  5 /* measurements, if other work disturbs them */
/* Far below what is kept on a quiet machine. */
#define KEPT_MIN 0.2

/* Memory that the processes share. */
struct board {
	_Atomic uint64_t ended[HONEST]; /* calls of each honest client */
	_Atomic uint64_t extra;         /* of the client that is there in the attacker's turn */
	_Atomic uint64_t attacks;
	atomic_bool stop, stop_server;
	struct crl_counters counters;
};

static struct board *board;
static char name[64];

/* ---- the server and honest clients ---- */

static void serve(enum crl_kind kind)
{
	struct crl_options options = { .max_clients = HONEST + 2,
				       .depth = DEPTH,
				       .request_max = BYTES,
				       .response_max = BYTES };
	struct crl_server *server;
	struct crl_request requests[16];

	CHECK(!crl_server_open(&server, kind, name, &options));
	while (!board->stop_server) {
		int n = crl_server_take(server, requests, 16);

		for (int i = 0; i < n; i++)
			crl_server_reply(server, requests[i].handle, requests[i].data,
					 requests[i].len);
		if (!n)
			crl_server_wait(server, 1);
		crl_server_counters(server, &board->counters);
	}
	crl_server_close(server);
	_exit(0);
}

static void check_response(const struct crl_response *response)
{
	uint64_t word = (uintptr_t)response->context;

	CHECK(!response->status && response->len == 8 + word % (BYTES - 8));
	CHECK(!memcmp(response->data, &word, 8));
	for (size_t i = 8; i < response->len; i++)
		CHECK(((const uint8_t *)response->data)[i] == (uint8_t)(word + i));
}

static int call(struct crl_client *client, uint64_t word)
{
	uint8_t bytes[BYTES];
	size_t len = 8 + word % (BYTES - 8);

	memcpy(bytes, &word, 8);
	for (size_t i = 8; i < len; i++)
		bytes[i] = (uint8_t)(word + i);
	return crl_client_call(client, bytes, len, (void *)(uintptr_t)word, 0);
}

static void call_for_ever(_Atomic uint64_t *ended, uint64_t word)
{
	struct crl_client *client = local_open(name);
	struct crl_response responses[DEPTH];

	while (!board->stop) {
		int n;

		while (!call(client, word))
			word += HONEST + 1;
		n = crl_client_poll(client, responses, DEPTH);
		CHECK(n >= 0);
		for (int i = 0; i < n; i++)
			check_response(&responses[i]);
		*ended += (uint64_t)n;
		if (!n)
			crl_client_wait(client, 10);
	}
	_exit(0);
}

/* ---- the attacker ---- */

struct foe {
	int sock;
	struct crl_hello hello;
	struct crl_mem mem, page, shared;
	struct crl_shape shape;
	struct crl_ring requests, responses;
	struct crl_control *control;
	struct crl_tokens_mem *tokens;
	uint32_t words; /* of tokens */
	uint32_t pos;   /* requests written */
	struct rng rng;
};

/* The page of the server cannot be written, and no memory can change its size. */
static void check_seals(const int *fds, int cnt)
{
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0) == MAP_FAILED);
	CHECK(write(fds[1], "x", 1) < 0);
	for (int i = 0; i < cnt; i++) {
		CHECK(ftruncate(fds[i], 0) < 0 && ftruncate(fds[i], 1 << 30) < 0);
		CHECK(fcntl(fds[i], F_ADD_SEALS, F_SEAL_WRITE) < 0);
	}
}

static void foe_connect(struct foe *foe)
{
	int fds[CRL_SOCK_FDS], cnt;

	while ((foe->sock = crl_sock_connect(name, LOCAL_LIMIT_MS)) < 0)
		local_nap_us(1000);
	cnt = crl_sock_recv(foe->sock, &foe->hello, sizeof(foe->hello), fds, LOCAL_LIMIT_MS);
	CHECK(cnt >= 2 && !foe->hello.status);
	check_seals(fds, cnt);
	foe->shape = crl_options_shape(&foe->hello.options);
	CHECK(!crl_mem_attach(&foe->mem, fds[0], crl_hello_bytes(&foe->hello.options), false));
	CHECK(!crl_mem_attach(&foe->page, fds[1], sizeof(struct crl_page), true));
	foe->control = foe->mem.base;
	crl_shape_rings(&foe->shape, foe->control + 1, &foe->requests, &foe->responses);
	foe->words = 0;
	foe->pos = 0;
	if (cnt < 3)
		return;
	foe->words = crl_tokens_count(foe->hello.options.max_clients);
	CHECK(!crl_mem_attach(&foe->shared, fds[2], crl_tokens_bytes(foe->words), false));
	foe->tokens = foe->shared.base;
}

static void foe_close(struct foe *foe)
{
	crl_mem_free(&foe->mem);
	crl_mem_free(&foe->page);
	crl_mem_free(&foe->shared);
	close(foe->sock);
}

/* Connects again after the server has disconnected this client. */
static void foe_keep(struct foe *foe)
{
	if (crl_sock_drain(foe->sock, 0))
		return;
	foe_close(foe);
	foe_connect(foe);
}

/* Writes an honest request, so that the server looks here. */
static void foe_call(struct foe *foe)
{
	struct crl_tokens view;

	crl_ring_put(&foe->requests, foe->pos, foe->pos, "12345678", 8);
	foe->pos++;
	if (!foe->words)
		return;
	crl_tokens_init(&view, foe->tokens, foe->words);
	if (crl_tokens_claim(&foe->control->token))
		crl_tokens_put(&view, foe->hello.client);
}

/* Returns a value that is nearly right for a word of a ring. */
static uint64_t near_entry(struct foe *foe)
{
	static const uint32_t lens[] = { 0, 8, BYTES - 1, BYTES, BYTES + 1, 4096, UINT32_MAX };
	uint32_t len = lens[rng_below(&foe->rng, sizeof(lens) / sizeof(lens[0]))];

	return (uint64_t)(foe->pos + (uint32_t)rng_below(&foe->rng, 3)) << 32 | len;
}

/* Returns a value that is nearly right for a token. */
static uint64_t near_token(struct foe *foe)
{
	uint64_t head = atomic_load(&foe->tokens->head) / foe->words;
	uint64_t id = rng_below(&foe->rng, 2 * (HONEST + 2));

	return (head + rng_below(&foe->rng, 3) - 1) << 32 | rng_below(&foe->rng, 2) << 31 | id;
}

static uint64_t value_of(struct foe *foe, unsigned class, uint64_t near)
{
	switch (class) {
	case 0: return 0;
	case 1: return 1;
	case 2: return UINT64_MAX;
	case 3: return near;
	default: return rng_next(&foe->rng);
	}
}

#define CLASSES 5
#define FIELDS  8

/* Writes one field. */
static void scribble(struct foe *foe, unsigned field, unsigned class)
{
	uint32_t at = (uint32_t)rng_below(&foe->rng, 2 * DEPTH);
	struct crl_entry *request = crl_ring_at(&foe->requests, class == 3 ? foe->pos : at);
	struct crl_entry *response = crl_ring_at(&foe->responses, at);
	uint64_t value = value_of(foe, class, near_entry(foe));

	if (field == 0)
		atomic_store(&foe->control->sleep, (uint32_t)value);
	else if (field == 1)
		atomic_store(&foe->control->token, (uint32_t)value);
	else if (field == 2)
		atomic_store(&request->word, value);
	else if (field == 3)
		atomic_store(&request->tag, value);
	else if (field == 4)
		memset(request->data, (int)value, BYTES);
	else if (field == 5)
		atomic_store(&response->word, value);
	else if (!foe->words)
		atomic_store(&response->tag, value);
	else if (field == 6)
		atomic_store(&foe->tokens->head, value_of(foe, class, near_token(foe)));
	else
		atomic_store(&foe->tokens->words[rng_below(&foe->rng, foe->words)],
			     value_of(foe, class, near_token(foe)));
	board->attacks++;
}

/* Waits until both honest clients have had further responses. */
static void await_honest(void)
{
	uint64_t limit = local_now_ns() + LOCAL_LIMIT_NS;

	for (int i = 0; i < HONEST; i++) {
		uint64_t until = board->ended[i] + 2 * DEPTH;

		while (board->ended[i] < until) {
			CHECK(local_now_ns() < limit);
			local_nap_us(50);
		}
	}
}

static void scribble_each(void)
{
	struct foe foe = { .rng.state = 1 };

	foe_connect(&foe);
	for (unsigned field = 0; field < FIELDS; field++)
		for (unsigned class = 0; class < CLASSES; class ++)
			for (int i = 0; i < 4; i++) {
				foe_keep(&foe);
				foe_call(&foe);
				scribble(&foe, field, class);
				await_honest();
			}
	_exit(0);
}

static void scribble_for_ever(uint64_t seed)
{
	struct foe foe = { .rng.state = seed };

	foe_connect(&foe);
	for (;;) {
		for (int i = 0; i < 64; i++)
			scribble(&foe, (unsigned)rng_below(&foe.rng, FIELDS),
				 (unsigned)rng_below(&foe.rng, CLASSES));
		foe_call(&foe);
		foe_keep(&foe);
	}
}

/* ---- the parent ---- */

static uint64_t ended_all(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < HONEST; i++)
		sum += board->ended[i];
	return sum;
}

/* Returns the rate of the honest clients beside an attacker or one more honest client. */
static double turn(bool attacked, double seconds, uint64_t seed)
{
	uint64_t begin, before;
	pid_t pid = local_fork();
	double rate;

	if (!pid && attacked)
		scribble_for_ever(seed);
	if (!pid)
		call_for_ever(&board->extra, seed);
	local_nap_us(20000);
	begin = local_now_ns();
	before = ended_all();
	local_nap_us((long)(seconds * 1e6));
	rate = (double)(ended_all() - before) / (double)(local_now_ns() - begin) * 1e9;
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
	return rate;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, TURNS, sizeof(*values), compare);
	return values[TURNS / 2];
}

/*
 * Returns the share of their rate that honest clients keep beside the foe; `rate`: calls in a
 * second without it.
 */
static double share_kept(double seconds, double *rate)
{
	double with[TURNS], without[TURNS];

	for (int i = 0; i < TURNS; i++) {
		without[i] = turn(false, seconds, (uint64_t)i + HONEST);
		with[i] = turn(true, seconds, (uint64_t)i + 1);
	}
	*rate = median(without);
	return median(with) / *rate;
}

static void await_end(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

int main(int argc, char **argv)
{
	bool ring = argc > 1 && !strcmp(argv[1], "delegation");
	double seconds = argc > 2 ? atof(argv[2]) : 0.4;
	double rate, kept = 0;
	pid_t server, foe, honest[HONEST];

	board = local_board(sizeof(*board));
	snprintf(name, sizeof(name), "local-scribbled.%d", (int)getpid());
	server = local_fork();
	if (!server)
		serve(ring ? CRL_DELEGATION : CRL_IPC);
	for (int i = 0; i < HONEST; i++) {
		honest[i] = local_fork();
		if (!honest[i])
			call_for_ever(&board->ended[i], (uint64_t)i);
	}
	foe = local_fork();
	if (!foe)
		scribble_each();
	await_end(foe);
	for (int i = 0; i < TRIES && kept <= KEPT_MIN; i++)
		kept = share_kept(seconds, &rate);
	board->stop = true;
	for (int i = 0; i < HONEST; i++)
		await_end(honest[i]);
	board->stop_server = true;
	await_end(server);
	printf("%s: %lu fields written, honest clients keep %.2f of %.0f calls/s, "
	       "%lu expelled, %lu repaired, %lu swept\n",
	       ring ? "delegation" : "ipc", (uint64_t)board->attacks, kept, rate,
	       board->counters.expelled, board->counters.repaired, board->counters.swept);
	CHECK(kept > KEPT_MIN);
	return 0;
}
