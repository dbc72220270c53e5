/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of locks in shared memory: they survive the death of their owners. */
#include "model/fabric/mdl_segment.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct mdl_lock *shared_lock(void)
{
	struct mdl_lock *lock =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(lock, MAP_FAILED);
	mdl_lock_init(lock);
	return lock;
}

/* Kills a child that has taken the lock. */
static void die_with(struct mdl_lock *lock)
{
	pid_t pid = fork();

	if (!pid) {
		mdl_lock(lock);
		raise(SIGKILL);
	}
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

Test(mdl_lock, a_dead_holder_is_reported_once)
{
	struct mdl_lock *lock = shared_lock();

	die_with(lock);
	cr_expect(mdl_lock(lock), "the next holder learns it");
	mdl_unlock(lock);
	cr_expect_not(mdl_lock(lock), "the one after does not");
	mdl_unlock(lock);
}

Test(mdl_lock, trylock_takes_over_and_refuses)
{
	struct mdl_lock *lock = shared_lock();
	bool taken = false;

	die_with(lock);
	cr_expect(mdl_trylock(lock, &taken));
	cr_expect(taken);
	if (!fork()) {
		mdl_trylock(lock, &taken);
		_exit(taken);
	}
	int status;

	wait(&status);
	cr_expect_eq(WEXITSTATUS(status), 0, "somebody else cannot have it");
	mdl_unlock(lock);
}
