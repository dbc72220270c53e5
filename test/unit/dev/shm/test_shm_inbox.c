/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/shm/shm_inbox.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shm_pair.h"

TestSuite(shm_inbox, .fini = pair_fini, .timeout = 200);

static uint64_t bell_count(int fd)
{
	uint64_t n = 0;

	return read(fd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

Test(shm_inbox, every_posted_id_is_found_once)
{
	static struct shm_inbox inbox;
	uint32_t id;

	for (id = 0; id < SHM_LINKS_MAX; id++) {
		shm_inbox_post(&inbox, id);
		cr_assert(shm_inbox_is_set(&inbox));
		cr_assert_eq(shm_inbox_take_summary(&inbox), 1ull << (id / 64));
		cr_assert_eq(shm_inbox_take(&inbox, id / 64), 1ull << (id % 64));
		cr_assert_eq(shm_inbox_take(&inbox, id / 64), 0);
		cr_assert(!shm_inbox_is_set(&inbox));
	}
}

Test(shm_inbox, posting_twice_is_posting_once)
{
	static struct shm_inbox inbox;

	shm_inbox_post(&inbox, 77);
	shm_inbox_post(&inbox, 77);
	cr_expect_eq(shm_inbox_take_summary(&inbox), 2);
	cr_expect_eq(shm_inbox_take(&inbox, 1), 1ull << 13);
	cr_expect_eq(shm_inbox_take(&inbox, 1), 0);
}

Test(shm_inbox, all_links_at_once_fit)
{
	static struct shm_inbox inbox;
	uint32_t id, leaf;

	for (id = 0; id < SHM_LINKS_MAX; id++)
		shm_inbox_post(&inbox, id);
	cr_expect_eq(shm_inbox_take_summary(&inbox), UINT64_MAX);
	for (leaf = 0; leaf < 64; leaf++)
		cr_expect_eq(shm_inbox_take(&inbox, leaf), UINT64_MAX);
}

Test(shm_inbox, post_between_the_two_takes_is_not_lost)
{
	static struct shm_inbox inbox;

	shm_inbox_post(&inbox, 5);
	cr_assert_eq(shm_inbox_take_summary(&inbox), 1);
	shm_inbox_post(&inbox, 6);
	cr_expect_eq(shm_inbox_take(&inbox, 0), 3ull << 5);
	/* The summary bit remains set, for an empty leaf. */
	cr_expect(shm_inbox_is_set(&inbox));
	cr_expect_eq(shm_inbox_take_summary(&inbox), 1);
	cr_expect_eq(shm_inbox_take(&inbox, 0), 0);
}

Test(shm_inbox, a_writer_killed_between_its_bits_hides_no_other_link)
{
	static struct shm_inbox inbox;

	inbox.leaf[2] = 1; /* the writer of link 128 died after this step */
	cr_expect(!shm_inbox_is_set(&inbox));
	shm_inbox_post(&inbox, 129);
	cr_expect_eq(shm_inbox_take_summary(&inbox), 4);
	cr_expect_eq(shm_inbox_take(&inbox, 2), 3);
}

Test(shm_inbox, bell_rings_once_and_only_for_a_sleeper)
{
	static struct shm_inbox inbox;
	int fd = shm_bell_create();
	uint32_t number = 0;

	cr_assert_geq(fd, 0);
	shm_inbox_ring(&inbox, fd);
	cr_expect_eq(bell_count(fd), 0);
	shm_inbox_sleep(&inbox, &number);
	shm_inbox_ring(&inbox, fd);
	shm_inbox_ring(&inbox, fd);
	cr_expect_eq(bell_count(fd), 1);
}

Test(shm_inbox, waking_drains_the_bell)
{
	static struct shm_inbox inbox;
	int fd = shm_bell_create();
	uint32_t number = 0;

	shm_inbox_sleep(&inbox, &number);
	shm_inbox_ring(&inbox, fd);
	shm_inbox_wake(&inbox, fd);
	shm_inbox_ring(&inbox, fd);
	cr_expect_eq(bell_count(fd), 0);
}

Test(shm_inbox, sleeps_have_numbers_of_their_own_that_are_odd)
{
	static struct shm_inbox inbox;
	uint32_t number = UINT32_MAX - 4, last = 0;
	int i;

	for (i = 0; i < 6; i++) {
		shm_inbox_sleep(&inbox, &number);
		cr_expect_eq(inbox.sleeping, number);
		cr_expect_eq(number % 2, 1);
		cr_expect_neq(number, last);
		last = number;
	}
}

struct stopped {
	struct shm_inbox *inbox;
	int bell_fd; /* full and blocking: the writer stays where it rings */
};

static void *stopped_main(void *arg)
{
	struct stopped *writer = arg;

	shm_inbox_ring(writer->inbox, writer->bell_fd);
	return NULL;
}

static void fill(int fd)
{
	static const char bytes[4096];

	cr_assert_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	while (write(fd, bytes, sizeof(bytes)) > 0)
		;
	cr_assert_eq(fcntl(fd, F_SETFL, 0), 0);
}

Test(shm_inbox, a_writer_that_is_stopped_while_it_rings_silences_no_other)
{
	static struct shm_inbox inbox;
	static char bytes[1 << 20];
	struct stopped writer = { .inbox = &inbox };
	int fd = shm_bell_create(), full[2];
	uint32_t number = 0;
	pthread_t thread;

	cr_assert_eq(pipe(full), 0);
	fill(full[1]);
	writer.bell_fd = full[1];
	shm_inbox_sleep(&inbox, &number);
	cr_assert_eq(pthread_create(&thread, NULL, stopped_main, &writer), 0);
	usleep(50000);
	shm_inbox_ring(&inbox, fd);
	cr_expect_eq(bell_count(fd), 1, "another one rings for this sleep");
	shm_inbox_wake(&inbox, fd);
	shm_inbox_sleep(&inbox, &number);
	cr_assert_gt(read(full[0], bytes, sizeof(bytes)), 0); /* the writer goes on */
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(inbox.sleeping, number, "the next sleep is announced");
	shm_inbox_ring(&inbox, fd);
	cr_expect_eq(bell_count(fd), 1);
}

Test(shm_inbox, ringing_a_full_bell_does_not_block)
{
	static struct shm_inbox inbox;
	uint64_t full = UINT64_MAX - 1;
	int fd = shm_bell_create();
	uint32_t number = 0;

	cr_assert_eq(write(fd, &full, sizeof(full)), (ssize_t)sizeof(full));
	shm_inbox_sleep(&inbox, &number);
	shm_inbox_ring(&inbox, fd);
	cr_expect_eq(inbox.sleeping, 0);
}

Test(shm_inbox, only_a_non_blocking_bell_is_accepted)
{
	int fds[2], sv[2], bell = shm_bell_create(), slow = eventfd(0, 0);

	cr_assert_eq(pipe2(fds, O_NONBLOCK), 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sv), 0);
	cr_expect_eq(shm_bell_check(bell), 0);
	cr_expect_eq(shm_bell_check(slow), -FI_EINVAL);
	cr_expect_eq(shm_bell_check(fds[1]), -FI_EINVAL);
	cr_expect_eq(shm_bell_check(sv[0]), -FI_EINVAL);
	cr_expect_eq(shm_bell_check(open("/dev/null", O_WRONLY | O_NONBLOCK)), -FI_EINVAL);
	cr_expect_eq(shm_bell_check(-1), -FI_EINVAL);
}
