/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sessions of whole engines: see sessions_fixture.h. */
#include "unit/erpc/transport/sessions_fixture.h"

#include <criterion/criterion.h>
#include <poll.h>

#include "wire/wire_op.h"

struct eng_transport *transport_of(const struct whole *w)
{
	return eng_transport_at(w->engine, 0);
}

struct erpc_transport *erpc_of(const struct whole *w)
{
	return (struct erpc_transport *)transport_of(w);
}

void send_one(struct whole *from)
{
	struct core_chan *chan = from->chan;

	cr_assert_geq(chan->ops->send_buf(chan, core_packed(WIRE_OP_MSG | WIRE_F_TAG, 0), 1, 0,
					  "some", 4),
		      0);
	chan->awaited = *chan->posted;
}

void send_and_receive(struct whole *from, struct whole *to)
{
	int before = to->msgs;

	to->msgs = 0;
	send_one(from);
	wholes_until(&to->msgs);
	cr_expect_eq(to->msgs, 1);
	to->msgs += before;
}

static bool is_busy(const struct whole *w)
{
	return w->chan->ops->is_busy(w->chan);
}

void settle(void)
{
	int done;

	do {
		whole_progress(&wholes[0]);
		whole_progress(&wholes[1]);
		done = !is_busy(&wholes[0]) && !is_busy(&wholes[1]);
	} while (!done);
}

void arm(struct whole *w)
{
	while (transport_of(w)->ops->arm(transport_of(w)))
		whole_progress(w);
}

bool wakes(struct whole *w, int ms)
{
	struct pollfd fd = { .fd = transport_of(w)->ops->wait_fd(transport_of(w)),
			     .events = POLLIN };

	return poll(&fd, 1, ms) == 1;
}
