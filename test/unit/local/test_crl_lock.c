/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One holder at a time, a lock that ends with its process, and no file left behind. */
#include "local/crl_lock.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[32], path[64], name[96];

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/crl-lock-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/path", dir);
	snprintf(name, sizeof(name), "%s" CRL_LOCK_SUFFIX, path);
}

/* Finds every file that a test has left. */
static void teardown(void)
{
	cr_expect_eq(rmdir(dir), 0, "a file is left behind");
}

TestSuite(crl_lock, .init = setup, .fini = teardown);

#define THREADS 4
#define ROUNDS  200

static atomic_int holders;

static void *contend(void *unused)
{
	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		int lock = crl_lock_take(path);

		cr_assert_geq(lock, 0, "error %d", lock);
		cr_expect_eq(atomic_fetch_add(&holders, 1), 0);
		atomic_fetch_sub(&holders, 1);
		crl_lock_drop(path, lock);
	}
	return NULL;
}

Test(crl_lock, one_thread_at_a_time_holds_it)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, contend, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

Test(crl_lock, ends_with_its_process)
{
	struct stat st;
	int lock, status;
	pid_t child = fork();

	if (!child)
		_exit(crl_lock_take(path) < 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0);
	cr_expect_eq(stat(name, &st), 0);
	lock = crl_lock_take(path);
	cr_assert_geq(lock, 0);
	crl_lock_drop(path, lock);
}

Test(crl_lock, follows_no_link)
{
	cr_assert_eq(symlink("nowhere", name), 0);
	cr_expect_eq(crl_lock_take(path), -ELOOP);
	cr_assert_eq(unlink(name), 0);
}

/* A child that was forked while a thread held the lock has its descriptor, and lives on. */
Test(crl_lock, is_given_back_for_children_too)
{
	int lock = crl_lock_take(path), child = dup(lock);

	cr_assert_geq(child, 0);
	cr_assert_eq(link(name, path), 0);
	crl_lock_drop(path, lock);
	cr_assert_eq(rename(path, name), 0, "the same file");
	lock = crl_lock_take(path);
	cr_assert_geq(lock, 0);
	crl_lock_drop(path, lock);
	close(child);
}
