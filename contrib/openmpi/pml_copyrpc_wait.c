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
 * threads that compute keep the processors.
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

static int wait_all_threads(size_t cnt, ompi_request_t **requests, ompi_status_public_t *statuses)
{
	pml_let_go();
	for (size_t i = 0; i < cnt && wait_poll_one(requests[i]); i++)
		;
	return own_ended(own.req_wait_all(cnt, requests, statuses));
}

/** Waits for a request of this component, by polling at first. */
void pml_wait_for(ompi_request_t *r)
{
	if (OPAL_UNLIKELY(pml.threads))
		(void)wait_poll_one(r);
	else
		for (int i = 0; i < 64 && !REQUEST_COMPLETE(r); i++)
			pml_progress();
	ompi_request_wait_completion(r);
}

/* Waits for a request. Returns false if it is persistent, in error, or not of this component. */
static inline bool wait_is_plain(ompi_request_t *r)
{
	if (r->req_type != OMPI_REQUEST_PML)
		return false;
	if (!REQUEST_COMPLETE(r))
		pml_wait_for(r);
	return OPAL_LIKELY(!((struct pml_request *)r)->special) ||
	       (!r->req_persistent && r->req_status.MPI_ERROR == OMPI_SUCCESS);
}

/*
 * Waits for requests in turn and frees them, up to the first one that is not plain: not of this
 * component, persistent, or in error. Returns their number.
 */
static size_t wait_plain(size_t cnt, ompi_request_t **requests, ompi_status_public_t *statuses)
{
	size_t i;

	for (i = 0; i < cnt; i++) {
		ompi_request_t *r = requests[i];

		if (r != &ompi_request_empty && !wait_is_plain(r))
			break;
		if (statuses != MPI_STATUSES_IGNORE)
			OMPI_COPY_STATUS(&statuses[i], r->req_status, false);
		requests[i] = MPI_REQUEST_NULL;
		if (r != &ompi_request_empty)
			pml_request_return((struct pml_request *)r);
	}
	return i;
}

static int wait_one(ompi_request_t **request, ompi_status_public_t *status)
{
	pml_let_go();
	return wait_plain(1, request, status) == 1 ? OMPI_SUCCESS
						   : own_ended(own.req_wait(request, status));
}

/*
 * Calls Open MPI's function for the requests behind the first `done`. If it reports errors in their
 * statuses, those of the first say that there was none.
 */
static int wait_rest(size_t done, size_t cnt, ompi_request_t **requests,
		     ompi_status_public_t *statuses)
{
	bool ignore = statuses == MPI_STATUSES_IGNORE;
	int rc = own_ended(own.req_wait_all(cnt - done, requests + done,
					    ignore ? MPI_STATUSES_IGNORE : statuses + done));

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
