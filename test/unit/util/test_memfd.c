/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Creation of memfds. (util/memfd.h) */
#include "util/memfd.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

Test(memfd, it_is_empty_named_closed_on_exec_and_can_be_sealed)
{
	char path[64], link[64] = "";
	int fd = util_memfd("copyrpc-test");
	struct stat st;

	cr_assert_geq(fd, 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	cr_assert_gt(readlink(path, link, sizeof(link) - 1), 0);
	cr_expect_str_eq(link, "/memfd:copyrpc-test (deleted)");
	cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_size, 0);
	cr_assert_eq(ftruncate(fd, 4096), 0);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	cr_expect_lt(ftruncate(fd, 0), 0, "the seal holds");
	close(fd);
}

Test(memfd, without_descriptors_it_is_an_error)
{
	struct rlimit none;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &none), 0);
	none.rlim_cur = 0;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	cr_expect_eq(util_memfd("copyrpc-test"), -1);
	cr_expect_eq(errno, EMFILE);
	none.rlim_cur = none.rlim_max;
	setrlimit(RLIMIT_NOFILE, &none);
}
