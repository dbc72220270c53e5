/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The outcome of a connection request reaches core, in order and with its data. (eng_connreq.c) */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/eng_event.h"

static struct core_engine engine;
static struct core_engine_ep eep;
static unsigned accepted, refused, on_event_cnt;
static int refused_err;
static char said[CM_MSG_DATA_MAX + 1];

static void hear(const void *data, size_t len)
{
	memcpy(said, data, len);
	said[len] = '\0';
}

static void on_accepted(struct core_ep *ep, const struct sockaddr *addr, const void *data,
			size_t len)
{
	cr_expect_eq(((const struct sockaddr_in *)addr)->sin_port, 7);
	cr_expect_eq(refused, 0, "messages arrive in order");
	accepted++;
	hear(data, len);
}

static void on_refused(struct core_ep *ep, int err, const void *data, size_t len)
{
	refused++;
	refused_err = err;
	hear(data, len);
}

static void on_event(struct core_ep *ep)
{
	on_event_cnt++;
}

static const struct core_upcalls upcalls = {
	.on_accepted = on_accepted,
	.on_refused = on_refused,
	.on_event = on_event,
};

static void start(void)
{
	util_list_init(&engine.events);
	util_list_init(&engine.failed);
	pthread_mutex_init(&engine.lock, NULL);
	engine.event_fd = eventfd(0, EFD_NONBLOCK);
	engine.up = &upcalls;
	eep.engine = &engine;
}

static void stop(void)
{
	close(engine.event_fd);
	pthread_mutex_destroy(&engine.lock);
}

TestSuite(eng_connreq, .init = start, .fini = stop);

Test(eng_connreq, outcomes_are_reported_by_progress_with_their_data)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = 7 };
	char most[CM_MSG_DATA_MAX];

	memset(most, 'm', sizeof(most));
	eng_connreq_accepted(&eep, (struct sockaddr *)&addr, most, sizeof(most));
	cr_expect_eq(accepted, 0, "that is the control thread's");
	cr_assert(eng_has_events(&engine));
	eng_events_cold(&engine);
	cr_expect_eq(accepted, 1);
	cr_expect_eq(strlen(said), sizeof(most));
	eng_connreq_refused(&eep, -FI_ECONNREFUSED, "no", 2);
	eng_events_cold(&engine);
	cr_expect_eq(refused, 1);
	cr_expect_eq(refused_err, -FI_ECONNREFUSED);
	cr_expect_str_eq(said, "no");
	cr_expect_not(eng_has_events(&engine));
}

Test(eng_connreq, only_a_connected_endpoint_receives_on_event)
{
	eng_connreq_refused(&eep, -FI_ETIMEDOUT, NULL, 0);
	cr_expect_eq(on_event_cnt, 0);
	eep.reports_events = true;
	eng_connreq_refused(&eep, -FI_ETIMEDOUT, NULL, 0);
	cr_expect_eq(on_event_cnt, 1);
	eng_events_cold(&engine);
	cr_expect_eq(refused, 2);
}

Test(eng_connreq, queued_events_are_dropped_with_the_endpoint)
{
	eng_connreq_refused(&eep, -FI_ETIMEDOUT, "data", 4);
	eng_event_forget(&eep, NULL);
	eng_events_cold(&engine);
	cr_expect_eq(refused, 0);
}
