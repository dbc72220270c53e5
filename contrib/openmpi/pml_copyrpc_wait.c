/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waits of processes with MPI_THREAD_MULTIPLE, and tests of several requests.
 *
 * Open MPI lets one waiting thread of a process make progress. The others sleep until the thread
 * that ends their request wakes them. Where threads share a processor, the thread that was woken
 * takes it from its waker, and spins until the end of its time slice because the waker has not left
 * the wait object (WAIT_SYNC_RELEASE). So each thread polls here, and yields when it finds nothing.
 *
 * MPI_Wait and its relatives call through a table of Open MPI (ompi_request_functions), whose
 * entries are replaced from the selection of this component to its end. Each polls until Open MPI's
 * own function, which it calls then, has no reason to sleep, or until polling has found nothing for
 * milliseconds: a long wait is Open MPI's, so that threads that compute keep the processors.
 *
 * MPI_Testall, MPI_Testany and MPI_Testsome of Open MPI look before they make progress, and miss a
 * short send whose completion is in the queue. Programs expect such sends to be complete at once.
 * So progress comes first here.
 */
#include <sched.h>

#include "pml_copyrpc_request.h"

/* Polls between calls of opal_progress, and empty ones between yields: 2 us. */
#define PML_WAIT_POLLS 16u
/* Yields in a row before Open MPI waits: 2 ms on a processor of its own. */
#define PML_WAIT_YIELDS 1000u

static ompi_request_fns_t own; /* Open MPI's functions; valid while replaced */
static bool replaced;

struct wait {
	unsigned polls;
	unsigned idle; /* polls in a row that found nothing */
};

/* Makes progress. Returns false after many polls in a row that found nothing. */
static bool wait_poll(struct wait *wait)
{
	if (++wait->polls % PML_WAIT_POLLS == 0)
		opal_progress(); /* for requests of others: files, collectives */
	if (pml_progress() > 0)
		wait->idle = 0;
	else if (++wait->idle % PML_WAIT_POLLS == 0)
		sched_yield();
	return wait->idle < PML_WAIT_POLLS * PML_WAIT_YIELDS;
}

/**
 * Polls until a request is complete, or for long. Returns false in the latter case. Called by
 * processes with several threads.
 */
bool pml_wait_poll(ompi_request_t *r)
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

static int wait_one(ompi_request_t **request, ompi_status_public_t *status)
{
	(void)pml_wait_poll(*request);
	return own.req_wait(request, status);
}

static int wait_all(size_t cnt, ompi_request_t **requests, ompi_status_public_t *statuses)
{
	for (size_t i = 0; i < cnt && pml_wait_poll(requests[i]); i++)
		;
	return own.req_wait_all(cnt, requests, statuses);
}

static int wait_any(size_t cnt, ompi_request_t **requests, int *idx, ompi_status_public_t *status)
{
	wait_any_poll(cnt, requests);
	return own.req_wait_any(cnt, requests, idx, status);
}

static int wait_some(size_t cnt, ompi_request_t **requests, int *done_cnt, int *indices,
		     ompi_status_public_t *statuses)
{
	wait_any_poll(cnt, requests);
	return own.req_wait_some(cnt, requests, done_cnt, indices, statuses);
}

/* Makes progress if one of these requests is not complete. */
static void test_poll(size_t cnt, ompi_request_t **requests)
{
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
	return own.req_test_all(cnt, requests, done, statuses);
}

static int test_any(size_t cnt, ompi_request_t **requests, int *idx, int *done,
		    ompi_status_public_t *status)
{
	test_poll(cnt, requests);
	return own.req_test_any(cnt, requests, idx, done, status);
}

static int test_some(size_t cnt, ompi_request_t **requests, int *done_cnt, int *indices,
		     ompi_status_public_t *statuses)
{
	test_poll(cnt, requests);
	return own.req_test_some(cnt, requests, done_cnt, indices, statuses);
}

static void replace_waits(void)
{
	ompi_request_functions.req_wait = wait_one;
	ompi_request_functions.req_wait_all = wait_all;
	ompi_request_functions.req_wait_any = wait_any;
	ompi_request_functions.req_wait_some = wait_some;
}

/** Replaces Open MPI's tests of several requests and, with several threads, its waits. */
void pml_wait_replace(void)
{
	if (replaced)
		return;
	own = ompi_request_functions;
	ompi_request_functions.req_test_all = test_all;
	ompi_request_functions.req_test_any = test_any;
	ompi_request_functions.req_test_some = test_some;
	if (pml.threads)
		replace_waits();
	replaced = true;
}

/** Gives Open MPI its functions back. */
void pml_wait_restore(void)
{
	if (replaced)
		ompi_request_functions = own;
	replaced = false;
}
