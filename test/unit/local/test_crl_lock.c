/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One holder at a time, a lock that ends with its process, and no file at any time. */
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

#define NOBODY 65534

static char dir[32], path[64];

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/crl-lock-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/path", dir);
}

/* Fails if the lock of any test has made a file. */
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
		crl_lock_drop(lock);
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
	int lock, status;
	pid_t child = fork();

	if (!child)
		_exit(crl_lock_take(path) < 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0);
	lock = crl_lock_take(path);
	cr_assert_geq(lock, 0);
	crl_lock_drop(lock);
}

/* A child that was forked while a thread held the lock has its descriptor, and lives on. */
Test(crl_lock, is_given_back_for_children_too)
{
	int lock = crl_lock_take(path), child = dup(lock);

	cr_assert_geq(child, 0);
	crl_lock_drop(lock);
	lock = crl_lock_take(path);
	cr_assert_geq(lock, 0);
	crl_lock_drop(lock);
	close(child);
}

Test(crl_lock, exists_for_the_root_too)
{
	int lock = crl_lock_take("/path");

	cr_assert_geq(lock, 0);
	crl_lock_drop(lock);
}

Test(crl_lock, says_why_a_directory_has_none)
{
	int status;
	pid_t child;

	cr_expect_eq(crl_lock_take("/nowhere/path"), -ENOENT);
	cr_expect_eq(crl_lock_take("/dev/null/path"), -ENOTDIR);
	cr_assert_eq(chmod(dir, 0311), 0);
	child = fork();
	if (!child) {
		if (!geteuid() && setuid(NOBODY))
			_exit(1);
		_exit(crl_lock_take(path) == -EACCES ? 0 : 2);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "a directory that may not be read");
	cr_assert_eq(chmod(dir, 0700), 0);
}
