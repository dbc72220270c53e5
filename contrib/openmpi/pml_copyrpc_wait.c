/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * MPI_Wait, MPI_Test and their relatives. They call through a table of Open MPI
 * (ompi_request_functions), whose entries are replaced from the selection of this component to its
 * end. All of them first let those sends leave that are complete and held by the provider, and once
 * more after a call of Open MPI's own function.
 *
 * Without threads a wait polls the requests in turn and returns each to its list: Open MPI's own
 * function for several requests swaps a wait object into each of them, and passes over them twice.
 * Open MPI's is called for what is not a plain request of this component: persistent ones, errors,
 * files.
 *
 * With MPI_THREAD_MULTIPLE Open MPI lets one waiting thread of a process make progress. The others
 * sleep until the thread that ends their request wakes them. Where threads share a processor, the
 * thread that was woken takes it from its waker, and spins until the end of its time slice because
 * the waker has not left the wait object (WAIT_SYNC_RELEASE). So each thread polls here, and yields
 * when it finds nothing, until Open MPI's own function, which it calls then, has no reason to
 * sleep, or until polling has found nothing for milliseconds: a long wait is Open MPI's, so that
 * threads that compute keep the processors. Beside other programs a yield lasts their time slice,
 * and a process that gives its own away is rarely there when its peer is: so yields become rare
 * where they last so long.
 *
 * MPI_Testall, MPI_Testany and MPI_Testsome of Open MPI look before they make progress, and miss a
 * short send whose completion is in the queue. Programs expect such sends to be complete at once.
 * So progress comes first here.
 */
#include <sched.h>
#include <time.h>

#include "pml_copyrpc_request.h"

/* Polls between calls of opal_progress, and at least between yields: 2 us. */
#define PML_WAIT_POLLS 16u
/* Polls between yields, at most: 1 ms. */
#define PML_WAIT_POLLS_MOST 8192u
/* Empty polls in a row before Open MPI waits: 2 ms on a processor of its own. */
#define PML_WAIT_IDLE 16000u
/* In nanoseconds: shorter yields let no other thread run; less than a time slice. */
#define PML_WAIT_SHARE 1500
#define PML_WAIT_SLICE 1000000

/* Without threads: polls before Open MPI waits, at most and at least, and nanoseconds of them. */
#define PML_WAIT_FIRST       64u
#define PML_WAIT_FIRST_LEAST 4u
#define PML_WAIT_FIRST_NS    3000
/* Part of these polls before a yield, where others share the processor, and at least so many. */
#define PML_WAIT_SHARED_PART  8u
#define PML_WAIT_SHARED_LEAST 2u
/* Waits of which one measures what a poll takes. */
#define PML_WAIT_SAMPLE 64u

/* Empty polls between yields, of all threads. */
static unsigned yield_polls = PML_WAIT_POLLS;

/* Without threads: polls before Open MPI waits. */
static unsigned first_polls = PML_WAIT_FIRST;
/* The last yield of a wait let a peer run, for which these polls would be lost time. */
static bool first_shared;

static ompi_request_fns_t own; /* Open MPI's functions; valid while replaced */
static bool replaced;

/*
 * Ends a call of Open MPI's function. Collective operations send from its progress: the provider
 * may hold their last messages by now.
 */
static inline int own_ended(int rc)
{
	pml_let_go();
	return rc;
}

struct wait {
	unsigned polls;
	unsigned idle;   /* polls in a row that found nothing */
	int64_t yielded; /* duration of a yield after which no poll has looked; 0: none */
};

static int64_t wait_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}

/* Yields the processor. Returns for how long, in nanoseconds. */
static int64_t wait_yield(void)
{
	int64_t begin = wait_now();

	sched_yield();
	return wait_now() - begin;
}

/* Learns from a yield and from whether the poll after it found something. */
static void wait_learn(struct wait *wait, bool found)
{
	unsigned polls = __atomic_load_n(&yield_polls, __ATOMIC_RELAXED);

	if (wait->yielded < PML_WAIT_SHARE)
		polls /= 2; /* costs nothing */
	else if (wait->yielded >= PML_WAIT_SLICE)
		polls *= 8;
	else if (found)
		polls = 0; /* was for another of this job */
	wait->yielded = 0;
	if (polls < PML_WAIT_POLLS)
		polls = PML_WAIT_POLLS;
	else if (polls > PML_WAIT_POLLS_MOST)
		polls = PML_WAIT_POLLS_MOST;
	__atomic_store_n(&yield_polls, polls, __ATOMIC_RELAXED);
}

/* Makes progress. Returns false after many polls in a row that found nothing. */
static bool wait_poll(struct wait *wait)
{
	bool found;

	if (++wait->polls % PML_WAIT_POLLS == 0)
		opal_progress(); /* for requests of others: files, collectives */
	found = pml_progress() > 0;
	if (wait->yielded)
		wait_learn(wait, found);
	wait->idle = found ? 0 : wait->idle + 1;
	if (!found && wait->idle % __atomic_load_n(&yield_polls, __ATOMIC_RELAXED) == 0)
		wait->yielded = wait_yield();
	return wait->idle < PML_WAIT_IDLE;
}

/* Polls until a request is complete, or for long. Returns false in the latter case. For threads. */
static bool wait_poll_one(ompi_request_t *r)
{
	struct wait wait = { .polls = 0 };

	while (!REQUEST_COMPLETE(r))
		if (!wait_poll(&wait))
			return false;
	return true;
}

/* Returns true if waiting for one of these requests is over: one has ended, or none is active. */
static bool wait_any_is_over(size_t cnt, ompi_request_t **requests)
{
	bool active = false;

	for (size_t i = 0; i < cnt; i++) {
		if (requests[i]->req_state == OMPI_REQUEST_INACTIVE)
			continue;
		if (REQUEST_COMPLETE(requests[i]))
			return true;
		active = true;
	}
	return !active;
}

static void wait_any_poll(size_t cnt, ompi_request_t **requests)
{
	struct wait wait = { .polls = 0 };

	while (!wait_any_is_over(cnt, requests) && wait_poll(&wait))
		;
}

static int wait_one_threads(ompi_request_t **request, ompi_status_public_t *status)
{
	pml_let_go();
	(void)wait_poll_one(*request);
	return own_ended(own.req_wait(request, status));
}

/*
 * Waits for requests in turn, by Open MPI's function for one. That for several reports success for
 * a persistent request that had failed before the call, and with threads never returns if any had.
 * Behind an error nothing is waited for: what is not complete stays, with MPI_ERR_PENDING.
 */
static int wait_in_turn(size_t cnt, ompi_request_t **requests, ompi_status_public_t *statuses)
{
	bool ignore = statuses == MPI_STATUSES_IGNORE;
	int first = OMPI_SUCCESS;

	for (size_t i = 0; i < cnt; i++) {
		int error = MPI_ERR_PENDING;

		if (pml.threads && first == OMPI_SUCCESS)
			(void)wait_poll_one(requests[i]);
		if (first == OMPI_SUCCESS || REQUEST_COMPLETE(requests[i]))
			error = own.req_wait(&requests[i],
					     ignore ? MPI_STATUS_IGNORE : &statuses[i]);
		if (!ignore)
			statuses[i].MPI_ERROR = error;
		if (first == OMPI_SUCCESS)
			first = error;
	}
	return own_ended(ignore || first == OMPI_SUCCESS ? first : MPI_ERR_IN_STATUS);
}

static int wait_all_threads(size_t cnt, ompi_request_t **requests, ompi_status_public_t *statuses)
{
	pml_let_go();
	return wait_in_turn(cnt, requests, statuses);
}

/* Chooses the number of first polls after `polls` that took `ns`, unless others ran meanwhile. */
static void wait_learn_first(unsigned polls, int64_t ns)
{
	int64_t cnt = ns > 0 ? PML_WAIT_FIRST_NS * (int64_t)polls / ns : PML_WAIT_FIRST;

	if (ns >= PML_WAIT_SLICE / 4)
		return;
	if (cnt > (int64_t)PML_WAIT_FIRST)
		cnt = PML_WAIT_FIRST;
	first_polls = cnt < (int64_t)PML_WAIT_FIRST_LEAST ? PML_WAIT_FIRST_LEAST : (unsigned)cnt;
}

/*
 * Yields where Open MPI would, and learns whether others of this job share the processor: a program
 * that computes keeps it for a time slice.
 */
static void wait_yield_first(void)
{
	int64_t ns = wait_yield();

	first_shared = ns >= PML_WAIT_SHARE && ns < PML_WAIT_SLICE;
}

/* Returns the number of polls that find nothing before a yield. */
static unsigned wait_first_polls(void)
{
	unsigned part = first_polls / PML_WAIT_SHARED_PART;

	if (OPAL_LIKELY(!first_shared))
		return first_polls;
	return part > PML_WAIT_SHARED_LEAST ? part : PML_WAIT_SHARED_LEAST;
}

/*
 * Polls for 3 us at most: over sockets a poll is a system call, and 64 of them would be 30 us, for
 * which a peer on the same processor waits. Polls for less if that peer runs in each yield.
 */
static void wait_poll_first(ompi_request_t *r)
{
	static unsigned waits;
	int64_t begin = ++waits % PML_WAIT_SAMPLE ? 0 : wait_now();
	unsigned i, cnt = wait_first_polls();

	for (i = 0; i < cnt && !REQUEST_COMPLETE(r); i++)
		if (pml_progress() > 0 && first_shared)
			cnt++;
	if (OPAL_UNLIKELY(begin != 0) && i == cnt)
		wait_learn_first(i, wait_now() - begin);
	if (opal_progress_yield_when_idle && !REQUEST_COMPLETE(r))
		wait_yield_first();
}

/** Waits for a request of this component, by polling at first. */
void pml_wait_for(ompi_request_t *r)
{
	if (OPAL_UNLIKELY(pml.threads))
		(void)wait_poll_one(r);
	else
		wait_poll_first(r);
	ompi_request_wait_completion(r);
}

/* Waits for a request. Returns false if it is persistent, in error, or not of this component. */
static __opal_attribute_always_inline__ inline bool wait_is_plain(ompi_request_t *r)
{
	if (r->req_type != OMPI_REQUEST_PML)
		return false;
	if (!REQUEST_COMPLETE(r))
		pml_wait_for(r);
	return OPAL_LIKELY(!((struct pml_request *)r)->special) ||
	       (!r->req_persistent && r->req_status.MPI_ERROR == OMPI_SUCCESS);
}

/* Does what wait_plain() says. `statuses` is a constant if none are wanted. */
static __opal_attribute_always_inline__ inline size_t wait_plain_into(
	size_t cnt, ompi_request_t **requests, ompi_status_public_t *statuses)
{
	ompi_request_t *const null = MPI_REQUEST_NULL;
	size_t i;

	for (i = 0; i < cnt; i++) {
		ompi_request_t *r = requests[i];

		if (r != &ompi_request_empty && !wait_is_plain(r))
			break;
		if (statuses != MPI_STATUSES_IGNORE)
			OMPI_COPY_STATUS(&statuses[i], r->req_status, false);
		requests[i] = null;
		if (r != &ompi_request_empty)
			pml_request_return((struct pml_request *)r);
	}
	return i;
}

/* Frees the short sends in front. Returns their number. */
static inline size_t wait_empty(size_t cnt, ompi_request_t **requests)
{
	ompi_request_t *const empty = &ompi_request_empty, *const null = MPI_REQUEST_NULL;
	size_t i;

	for (i = 0; i < cnt && requests[i] == empty; i++)
		requests[i] = null;
	return i;
}

static __opal_attribute_noinline__ size_t wait_plain_ignoring(size_t cnt, ompi_request_t **requests)
{
	size_t first = wait_empty(cnt, requests);

	return first + wait_plain_into(cnt - first, requests + first, MPI_STATUSES_IGNORE);
}

/*
 * Waits for requests in turn and frees them, up to the first one that is not plain: not of this
 * component, persistent, or in error. Returns their number.
 */
static size_t wait_plain(size_t cnt, ompi_request_t **requests, ompi_status_public_t *statuses)
{
	return statuses == MPI_STATUSES_IGNORE ? wait_plain_ignoring(cnt, requests)
					       : wait_plain_into(cnt, requests, statuses);
}

static int wait_one(ompi_request_t **request, ompi_status_public_t *status)
{
	pml_let_go();
	return wait_plain(1, request, status) == 1 ? OMPI_SUCCESS
						   : own_ended(own.req_wait(request, status));
}

/*
 * Waits for the requests behind the first `done`. If there are errors in their statuses, those of
 * the first say that there was none.
 */
static int wait_rest(size_t done, size_t cnt, ompi_request_t **requests,
		     ompi_status_public_t *statuses)
{
	bool ignore = statuses == MPI_STATUSES_IGNORE;
	int rc = wait_in_turn(cnt - done, requests + done,
			      ignore ? MPI_STATUSES_IGNORE : statuses + done);

	for (size_t i = 0; rc == MPI_ERR_IN_STATUS && !ignore && i < done; i++)
		statuses[i].MPI_ERROR = MPI_SUCCESS;
	return rc;
}

static int wait_all(size_t cnt, ompi_request_t **requests, ompi_status_public_t *statuses)
{
	size_t done;

	pml_let_go();
	done = wait_plain(cnt, requests, statuses);
	return done == cnt ? OMPI_SUCCESS : wait_rest(done, cnt, requests, statuses);
}

static int wait_any(size_t cnt, ompi_request_t **requests, int *idx, ompi_status_public_t *status)
{
	pml_let_go();
	if (pml.threads)
		wait_any_poll(cnt, requests);
	return own_ended(own.req_wait_any(cnt, requests, idx, status));
}

static int wait_some(size_t cnt, ompi_request_t **requests, int *done_cnt, int *indices,
		     ompi_status_public_t *statuses)
{
	pml_let_go();
	if (pml.threads)
		wait_any_poll(cnt, requests);
	return own_ended(own.req_wait_some(cnt, requests, done_cnt, indices, statuses));
}

static int test_one(ompi_request_t **request, int *done, ompi_status_public_t *status)
{
	pml_let_go();
	return own_ended(own.req_test(request, done, status));
}

/* Makes progress if one of these requests is not complete, or a send is held. */
static void test_poll(size_t cnt, ompi_request_t **requests)
{
	pml_let_go();
	for (size_t i = 0; i < cnt; i++) {
		if (!REQUEST_COMPLETE(requests[i])) {
			(void)pml_progress();
			return;
		}
	}
}

static int test_all(size_t cnt, ompi_request_t **requests, int *done,
		    ompi_status_public_t *statuses)
{
	test_poll(cnt, requests);
	return own_ended(own.req_test_all(cnt, requests, done, statuses));
}

static int test_any(size_t cnt, ompi_request_t **requests, int *idx, int *done,
		    ompi_status_public_t *status)
{
	test_poll(cnt, requests);
	return own_ended(own.req_test_any(cnt, requests, idx, done, status));
}

static int test_some(size_t cnt, ompi_request_t **requests, int *done_cnt, int *indices,
		     ompi_status_public_t *statuses)
{
	test_poll(cnt, requests);
	return own_ended(own.req_test_some(cnt, requests, done_cnt, indices, statuses));
}

/** Replaces Open MPI's functions. */
void pml_wait_replace(void)
{
	if (replaced)
		return;
	own = ompi_request_functions;
	ompi_request_functions = (ompi_request_fns_t){
		.req_test = test_one,
		.req_test_any = test_any,
		.req_test_all = test_all,
		.req_test_some = test_some,
		.req_wait = pml.threads ? wait_one_threads : wait_one,
		.req_wait_any = wait_any,
		.req_wait_all = pml.threads ? wait_all_threads : wait_all,
		.req_wait_some = wait_some,
	};
	replaced = true;
}

/** Gives Open MPI its functions back. */
void pml_wait_restore(void)
{
	if (replaced)
		ompi_request_functions = own;
	replaced = false;
}
