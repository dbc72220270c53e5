/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Descriptors whose release waits: cm/node/cm_closer.c. */
#include "cm/node/cm_closer.h"

#include <criterion/criterion.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cm/base/cm.h"
#include "unit/cm/cm_fixture.h"
#include "util/clock.h"

/** Gives the closer as many descriptors as it takes. Returns their number. */
static unsigned fill(void)
{
	unsigned cnt = 0;

	for (; cm_closer_has_room(); cnt++) {
		cr_assert_leq(cnt, CM_CLOSER_MAX + 1);
		cm_closer_close(cm_fd_socket());
	}
	return cnt;
}

/** Occupies the closer with a socket, and waits until its thread has taken that. */
static void occupy(int *reader)
{
	int fd = cm_test_stuck_socket(reader);
	unsigned before = cm_test_fd_count();

	cm_closer_close(fd);
	while (cm_test_fd_count() == before)
		cm_test_sleep_ms(1);
}

static bool room_returns(void)
{
	for (int ms = 0; ms < CM_TEST_WAIT_MS && !cm_closer_has_room(); ms++)
		cm_test_sleep_ms(1);
	return cm_closer_has_room();
}

Test(cm_closer, a_stream_ends_at_once_and_is_closed)
{
	unsigned before = cm_test_fd_count();
	int pair[2];
	char byte;

	cr_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	cm_closer_close(pair[0]);
	cr_expect_eq(read(pair[1], &byte, 1), 0);
	close(pair[1]);
	for (int ms = 0; ms < CM_TEST_WAIT_MS && cm_test_fd_count() > before; ms++)
		cm_test_sleep_ms(1);
	cr_expect_eq(cm_test_fd_count(), before);
}

Test(cm_closer, a_release_that_waits_blocks_no_caller_and_the_queue_is_bounded)
{
	uint64_t start = util_clock_ns();
	int reader;

	occupy(&reader);
	cr_expect_eq(fill(), CM_CLOSER_MAX);
	cr_expect_lt(util_clock_ns() - start, 20 * UTIL_NS_PER_S);
	cr_expect_not(cm_closer_has_room());
	close(reader);
	cr_expect(room_returns());
}

Test(cm_closer, while_the_closer_is_occupied_streams_wait_and_the_rest_goes_on)
{
	struct cm_end a, b, c;
	struct cm_node *node = cm_ends_open(0, &a, &b);
	uint64_t pauses;
	int reader;

	cm_ends_connect(&a, &b, 1);
	cm_end_open(&c, node, "127.0.0.1", 0);
	occupy(&reader);
	fill();
	pauses = cm_end_stats(&b).accept_pauses;
	cr_assert(!cm_end_connect(&c, &b));
	while (cm_end_stats(&b).accept_pauses < pauses + 2)
		cm_test_sleep_ms(1);
	cr_expect_eq(cm_end_get(&c, &c.up), 0);
	/* BYE of an existing connection arrives. */
	cr_assert(cm_end_put_live(&a));
	cr_expect(cm_end_wait(&b, &b.down, 1, CM_TEST_WAIT_MS));
	cr_expect_not(cm_closer_has_room());
	close(reader);
	cr_expect(cm_end_wait(&c, &c.up, 1, CM_TEST_WAIT_MS));
	cm_end_close(&c);
	cm_ends_close(node, &a, &b);
}

Test(cm_closer, a_child_has_a_closer_of_its_own)
{
	int reader, status;
	pid_t pid;

	cm_guard_fork();
	occupy(&reader);
	fill();
	pid = fork();
	if (!pid)
		_exit(room_returns() ? 0 : 1);
	cr_assert(waitpid(pid, &status, 0) == pid);
	cr_expect(WIFEXITED(status) && !WEXITSTATUS(status), "%x", status);
	cr_expect_not(cm_closer_has_room());
	close(reader);
}
