/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/shm/shm_inbox.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm_pair.h"

TestSuite(shm_inbox, .fini = pair_fini, .timeout = 200);

static struct shm_bell bell;

static void setup(void)
{
	cr_assert_eq(shm_bell_create(&bell), 0);
}

/* Returns how often the bell has rung, and takes that. */
static ssize_t bell_count(void)
{
	ssize_t cnt = 0;
	char byte;

	while (recv(bell.read_fd, &byte, 1, MSG_DONTWAIT) > 0)
		cnt++;
	return cnt;
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

Test(shm_inbox, bell_rings_once_and_only_for_a_sleeper, .init = setup)
{
	static struct shm_inbox inbox;
	uint32_t number = 0;

	shm_inbox_ring(&inbox, bell.write_fd);
	cr_expect_eq(bell_count(), 0);
	shm_inbox_sleep(&inbox, &number);
	shm_inbox_ring(&inbox, bell.write_fd);
	shm_inbox_ring(&inbox, bell.write_fd);
	cr_expect_eq(bell_count(), 1);
}

Test(shm_inbox, waking_drains_the_bell, .init = setup)
{
	static struct shm_inbox inbox;
	uint32_t number = 0;

	shm_inbox_sleep(&inbox, &number);
	shm_inbox_ring(&inbox, bell.write_fd);
	shm_inbox_wake(&inbox, bell.read_fd);
	shm_inbox_ring(&inbox, bell.write_fd);
	cr_expect_eq(bell_count(), 0);
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

/* Descriptor whose writers stay where they ring until `go` is posted. */
static int held_fd = -1;
static sem_t go;

/* Replaces the library's function, for shm_inbox.c. */
ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	if (fd == held_fd)
		sem_wait(&go);
	return syscall(SYS_sendto, fd, buf, len, flags, NULL, 0);
}

static void *stopped_main(void *inbox)
{
	shm_inbox_ring(inbox, held_fd);
	return NULL;
}

Test(shm_inbox, a_writer_that_is_stopped_while_it_rings_silences_no_other, .init = setup)
{
	static struct shm_inbox inbox;
	uint32_t number = 0;
	pthread_t thread;

	cr_assert_eq(sem_init(&go, 0, 0), 0);
	held_fd = dup(bell.write_fd);
	shm_inbox_sleep(&inbox, &number);
	cr_assert_eq(pthread_create(&thread, NULL, stopped_main, &inbox), 0);
	usleep(50000);
	shm_inbox_ring(&inbox, bell.write_fd);
	cr_expect_eq(bell_count(), 1, "another one rings for this sleep");
	shm_inbox_wake(&inbox, bell.read_fd);
	shm_inbox_sleep(&inbox, &number);
	cr_assert_eq(sem_post(&go), 0); /* the writer goes on */
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(inbox.sleeping, number, "the next sleep is announced");
	cr_expect_eq(bell_count(), 1, "its late ring");
	shm_inbox_ring(&inbox, bell.write_fd);
	cr_expect_eq(bell_count(), 1);
}

/* --- bells: `passed` is what a peer received, and every other peer has */

static int passed;

static void setup_peer(void)
{
	setup();
	passed = fcntl(bell.write_fd, F_DUPFD_CLOEXEC, 0);
	cr_assert_eq(shm_bell_check(passed), 0);
	alarm(5); /* instead of a call that blocks */
}

/* Makes the shared end blocking, and fills its queue. */
static void fill(void)
{
	while (send(passed, "", 1, MSG_DONTWAIT) > 0)
		;
	cr_assert_eq(errno, EAGAIN);
	cr_assert_eq(fcntl(passed, F_SETFL, 0), 0);
}

Test(shm_inbox, a_hostile_peer_that_blocks_and_fills_the_bell_blocks_nobody, .init = setup_peer)
{
	static struct shm_inbox inbox;
	uint32_t number = 0, wakes;

	fill();
	shm_inbox_sleep(&inbox, &number);
	shm_inbox_ring(&inbox, bell.write_fd);
	cr_expect_eq(inbox.sleeping, 0);
	for (wakes = 0; shm_inbox_wake(&inbox, bell.read_fd); wakes++)
		cr_assert_lt(wakes, 1u << 20);
	shm_inbox_sleep(&inbox, &number);
	shm_inbox_ring(&inbox, bell.write_fd);
	cr_expect_eq(bell_count(), 1);
}

Test(shm_inbox, one_wake_takes_a_bounded_number_of_messages, .init = setup_peer)
{
	static struct shm_inbox inbox;
	unsigned sent = 0, wakes = 0;

	while (send(passed, "", 1, MSG_DONTWAIT) > 0)
		sent++;
	while (shm_inbox_wake(&inbox, bell.read_fd))
		wakes++;
	cr_expect_eq(wakes, (sent + 15) / 16, "%u messages", sent);
}

Test(shm_inbox, a_hostile_peer_that_shuts_the_bell_down_keeps_its_owner_awake, .init = setup_peer)
{
	static struct shm_inbox inbox;
	struct pollfd pfd = { .fd = bell.read_fd, .events = POLLIN };
	uint32_t number = 0;

	cr_assert_eq(shutdown(passed, SHUT_RDWR), 0);
	for (int i = 0; i < 3; i++) {
		shm_inbox_sleep(&inbox, &number);
		shm_inbox_ring(&inbox, bell.write_fd);
		cr_expect_eq(poll(&pfd, 1, 0), 1);
		cr_expect(shm_inbox_wake(&inbox, bell.read_fd), "it looks at all links");
	}
}

Test(shm_inbox, ringing_for_a_dead_reader_raises_no_signal, .init = setup_peer)
{
	static struct shm_inbox inbox;
	uint32_t number = 0;

	shm_bell_close(&bell);
	shm_inbox_sleep(&inbox, &number);
	shm_inbox_ring(&inbox, passed);
	cr_expect_eq(inbox.sleeping, 0);
}

Test(shm_inbox, a_bell_without_peers_has_no_end, .init = setup_peer)
{
	struct pollfd pfd = { .fd = bell.read_fd, .events = POLLIN };

	close(passed);
	cr_expect_eq(poll(&pfd, 1, 0), 0);
}

Test(shm_inbox, only_a_local_socket_of_packets_is_a_bell, .init = setup)
{
	int sv[2], fds[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sv), 0);
	cr_assert_eq(pipe2(fds, O_NONBLOCK), 0);
	cr_expect_eq(shm_bell_check(bell.write_fd), 0);
	cr_expect_eq(shm_bell_check(sv[0]), -FI_EINVAL);
	cr_expect_eq(shm_bell_check(fds[1]), -FI_EINVAL);
	cr_expect_eq(shm_bell_check(socket(AF_INET, SOCK_DGRAM, 0)), -FI_EINVAL);
	cr_expect_eq(shm_bell_check(eventfd(0, EFD_NONBLOCK)), -FI_EINVAL);
	cr_expect_eq(shm_bell_check(open("/dev/null", O_WRONLY | O_NONBLOCK)), -FI_EINVAL);
	cr_expect_eq(shm_bell_check(-1), -FI_EINVAL);
}
