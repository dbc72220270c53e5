/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/shm/shm.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm_pair.h"

TestSuite(shm_dev, .fini = pair_fini, .timeout = 200);

static bool readable(struct shm_dev *dev, int ms)
{
	struct pollfd pfd = { .fd = shm_dev_ops.wait_fd((struct dev *)dev), .events = POLLIN };

	return poll(&pfd, 1, ms) == 1;
}

static int arm(struct shm_dev *dev)
{
	return shm_dev_ops.arm((struct dev *)dev);
}

static void disarm(struct shm_dev *dev)
{
	shm_dev_ops.disarm((struct dev *)dev);
}

Test(shm_dev, open_and_close_leave_nothing)
{
	int before = pair_fd_cnt(), i;

	for (i = 0; i < 100; i++)
		pair_dev_close(pair_dev());
	cr_expect_eq(pair_fd_cnt(), before);
}

Test(shm_dev, open_without_descriptors_is_an_error_that_leaves_nothing)
{
	int before = pair_fd_cnt(), next = dup(0);
	struct rlimit lim;
	struct dev *dev;
	int room;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
	close(next);
	for (room = 0; room < 3; room++) {
		lim.rlim_cur = (rlim_t)(next + room);
		cr_assert_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
		cr_expect_eq(shm_dev_ops.open(&dev), -FI_EMFILE);
	}
	lim.rlim_cur = lim.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	cr_expect_eq(pair_fd_cnt(), before);
}

Test(shm_dev, wait_fd_is_readable_after_a_write_to_an_armed_device)
{
	struct shm_dev *da = pair_dev(), *db = pair_dev();
	struct transport a, b;
	int i;

	pair_open(da, &a, 1024, db, &b, 1024);
	for (i = 0; i < 50; i++) {
		cr_assert_eq(arm(db), 0);
		cr_assert(!readable(db, 0));
		pair_write(&a, 1);
		cr_assert(readable(db, 0), "round %d", i);
		disarm(db);
		cr_assert(!readable(db, 0));
		cr_assert(pair_expect(db, &b, 1, 1));
	}
}

Test(shm_dev, wait_fd_is_not_readable_unless_armed)
{
	struct shm_dev *da = pair_dev(), *db = pair_dev();
	struct transport a, b;

	pair_open(da, &a, 1024, db, &b, 1024);
	pair_write(&a, 1);
	cr_expect(!readable(db, 0));
	cr_expect_eq(arm(db), -FI_EAGAIN);
	pair_write(&a, 1);
	cr_expect(!readable(db, 0), "a failed arm leaves the device unarmed");
	disarm(db);
	disarm(db);
	cr_expect(pair_expect(db, &b, 1, 1));
	cr_expect(pair_expect(db, &b, 1, 1));
}

Test(shm_dev, arming_twice_is_arming_once)
{
	struct shm_dev *da = pair_dev(), *db = pair_dev();
	struct transport a, b;

	pair_open(da, &a, 1024, db, &b, 1024);
	cr_assert_eq(arm(db), 0);
	cr_assert_eq(arm(db), 0);
	pair_write(&a, 1);
	cr_expect(readable(db, 0));
	cr_expect_eq(arm(db), -FI_EAGAIN);
}

/* A thread may arm again and again without disarm. */
Test(shm_dev, arming_again_drains_the_bell)
{
	struct shm_dev *da = pair_dev(), *db = pair_dev();
	struct transport a, b;
	int i;

	pair_open(da, &a, 1024, db, &b, 1024);
	for (i = 0; i < 50; i++) {
		cr_assert_eq(arm(db), 0);
		cr_assert(!readable(db, 0), "round %d", i);
		pair_write(&a, 1);
		cr_assert(readable(db, 0), "round %d", i);
		cr_assert(pair_expect(db, &b, 1, 1));
	}
}

/* --- posts that another peer erases --- */

#define MOST 200

static struct shm_dev *writer, *sleeper;
static struct transport from[MOST], to[MOST];

/* Lets `sleeper` sleep with `cnt` links that are all parked. */
static void sleep_with(int cnt)
{
	int i;

	writer = pair_dev();
	sleeper = pair_dev();
	for (i = 0; i < cnt; i++) {
		pair_open(writer, &from[i], 1024, sleeper, &to[i], 1024);
		cr_assert(shm_watch_park(sleeper, pair_shm_link(&to[i])));
	}
	cr_assert_eq(arm(sleeper), 0);
}

static void write_unseen(int i)
{
	pair_write(&from[i], 1);
	memset(sleeper->inbox, 0, offsetof(struct shm_inbox, sleeping));
	cr_assert(readable(sleeper, 0));
}

static void erased_while_asleep(int cnt)
{
	sleep_with(cnt);
	write_unseen(cnt - 1);
	disarm(sleeper);
	cr_expect(pair_expect(sleeper, &to[cnt - 1], 1, 2));
}

Test(shm_dev, a_sleeper_finds_the_write_whose_post_was_erased)
{
	erased_while_asleep(1);
	erased_while_asleep(64);
	erased_while_asleep(MOST);
}

Test(shm_dev, a_surplus_post_does_not_hide_the_write_whose_post_was_erased)
{
	sleep_with(MOST);
	write_unseen(MOST - 1);
	shm_inbox_post(sleeper->inbox, pair_shm_link(&to[3])->id);
	disarm(sleeper);
	cr_expect(pair_expect(sleeper, &to[MOST - 1], 1, 3));
}

Test(shm_dev, arming_again_finds_the_write_whose_post_was_erased)
{
	sleep_with(64);
	write_unseen(63);
	cr_expect_eq(arm(sleeper), -FI_EAGAIN);
	cr_expect(pair_expect(sleeper, &to[63], 1, 2));
}

/* A wake for another link looks at a few, in turn. */
Test(shm_dev, erased_writes_are_found_in_turn_when_another_post_is_owed)
{
	uint32_t wakes = MOST / SHM_PATROL_WAKE + 1, i;

	sleep_with(MOST);
	write_unseen(MOST - 1);
	for (i = 0; i < wakes && pair_shm_link(&to[MOST - 1])->act_idx == SHM_IDX_NONE; i++) {
		pair_write(&from[0], 1);
		disarm(sleeper);
		cr_assert(pair_expect(sleeper, &to[0], 1, 1));
		if (pair_shm_link(&to[MOST - 1])->act_idx == SHM_IDX_NONE)
			cr_assert_eq(arm(sleeper), 0);
	}
	cr_expect_gt(i, 1);
	cr_expect(pair_expect(sleeper, &to[MOST - 1], 1, 2));
}

/* Two processes take turns. Each sleeps until the other writes. */
static void ping_pong(struct shm_dev *dev, struct transport *transport, int rounds, bool first)
{
	struct dev_event ev;

	for (; rounds; rounds--) {
		if (first)
			pair_write(transport, 1);
		while (!pair_poll(dev, &ev, 1)) {
			if (arm(dev))
				continue;
			cr_assert(readable(dev, 60000), "slept on");
			disarm(dev);
		}
		if (!first)
			pair_write(transport, 1);
	}
}

static pid_t fork_peer(int sv[2])
{
	pid_t pid;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void sleepers(bool membarrier)
{
	struct shm_dev *dev;
	struct transport transport;
	int sv[2], status;
	pid_t pid = fork_peer(sv);

	dev = pair_dev();
	dev->membarrier = dev->membarrier && membarrier;
	pair_join(dev, &transport, 4096, sv[!pid]);
	ping_pong(dev, &transport, 3000, pid);
	if (!pid)
		_exit(0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
}

Test(shm_dev, sleeping_processes_wake_each_other)
{
	sleepers(true);
}

Test(shm_dev, sleeping_processes_wake_each_other_without_membarrier)
{
	sleepers(false);
}

Test(shm_dev, without_membarrier_the_device_opens_and_logs_it)
{
	struct shm_dev *dev;

	pair_forbid(SYS_membarrier, ENOSYS);
	dev = pair_dev();
	cr_expect(!dev->membarrier);
	cr_expect_eq(arm(dev), 0);
}

Test(shm_dev, losing_membarrier_later_keeps_the_device_awake)
{
	struct shm_dev *dev = pair_dev();

	pair_forbid(SYS_membarrier, EPERM);
	cr_expect_eq(arm(dev), -FI_EAGAIN);
	cr_expect_eq(arm(dev), -FI_EAGAIN);
	cr_expect_eq(dev->inbox->sleeping, 0);
}

Test(shm_dev, a_killed_peer_is_harmless_and_leaves_nothing)
{
	int before = pair_fd_cnt(), sv[2], i;
	struct shm_dev *dev;
	struct dev_event ev;
	struct transport transport;
	pid_t pid;

	for (i = 0; i < 10; i++) {
		pid = fork_peer(sv);
		dev = pair_dev();
		pair_join(dev, &transport, 4096, sv[!pid]);
		if (!pid)
			for (;;) { /* until killed, anywhere */
				pair_write(&transport, 1);
				pair_poll(dev, &ev, 1);
			}
		usleep(1000 + 777 * i);
		kill(pid, SIGKILL);
		cr_assert_eq(waitpid(pid, NULL, 0), pid);
		while (pair_poll(dev, &ev, 10000) && ev.kind == DEV_EV_IMM)
			pair_write(&transport, 1);
		pair_write(&transport, 5);
		pair_link_close(transport.link);
		pair_dev_close(dev);
		close(sv[0]);
		close(sv[1]);
	}
	cr_expect_eq(pair_fd_cnt(), before);
}
