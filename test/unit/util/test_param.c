/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parsing of parameters, and the warnings for values that cannot be used.
 *
 * Each test is a process of its own (Criterion). It sets the environment, loads the parameters
 * through libfabric and reads the log from standard error.
 */
#include <criterion/criterion.h>
#include <rdma/fabric.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/log.h"
#include "util/param.h"

static char logged[65536];

/* Runs `what` and stores its standard error in `logged`. */
static void log_of(void (*what)(void))
{
	FILE *sink = tmpfile();
	int saved = dup(STDERR_FILENO);
	size_t len;

	cr_assert(sink && saved >= 0);
	fflush(stderr);
	dup2(fileno(sink), STDERR_FILENO);
	what();
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(sink);
	len = fread(logged, 1, sizeof(logged) - 1, sink);
	logged[len] = 0;
	fclose(sink);
}

static void start_libfabric(void)
{
	struct fi_param *params;
	int cnt;

	cr_assert_eq(fi_getparams(&params, &cnt), 0);
	fi_freeparams(params);
}

/* Starts libfabric without providers, with warnings enabled; by default it logs nothing. */
static void start(void)
{
	setenv("FI_PROVIDER", "none", 1);
	setenv("FI_PROVIDER_PATH", "/nonexistent", 1);
	setenv("FI_LOG_LEVEL", "warn", 0);
	log_of(start_libfabric);
	util_param_define(&util_log_prov);
}

static void load_params(void)
{
	util_param_load(&util_log_prov);
}

static void load(void)
{
	log_of(load_params);
}

static void load_with(const char *name, const char *value)
{
	setenv(name, value, 1);
	load();
	unsetenv(name);
}

static int warnings(void)
{
	int cnt = 0;

	for (const char *at = logged; (at = strstr(at, ":copyrpc:")); at++)
		cnt++;
	return cnt;
}

static void expect_defaults(void)
{
	cr_assert_null(util_params.job_key);
	cr_assert_str_eq(util_params.paths, "shm,nic,udp");
	cr_assert_null(util_params.endpoint);
	cr_assert_null(util_params.device);
	cr_assert_null(util_params.gid_index);
	cr_assert_null(util_params.fault);
	cr_assert_eq(util_params.mem, 256u << 20);
	cr_assert_eq(util_params.ring_size, 0);
	cr_assert_eq(util_params.eager_max, 8192);
	cr_assert_eq(util_params.single_copy_min, 32768);
	cr_assert_eq(util_params.rndv_min, 65536);
	cr_assert_eq(util_params.unexpected_mem, 256u << 20);
	cr_assert_eq(util_params.peer_timeout_ms, 30000);
	cr_assert_eq(util_params.single_copy, 1);
	cr_assert_eq(util_params.hold, 1);
	cr_assert_eq(util_params.layering, 0);
	cr_assert_eq(util_params.link_rate, 0);
}

Test(param, an_empty_environment_gives_the_defaults_in_silence)
{
	start();
	load();
	expect_defaults();
	cr_assert_str_empty(logged);
}

Test(param, an_empty_value_counts_as_unset)
{
	struct fi_param *params;
	int cnt;

	start();
	cr_assert_eq(fi_getparams(&params, &cnt), 0);
	for (int i = 0; i < cnt; i++)
		if (!strncmp(params[i].name, "FI_COPYRPC_", 11))
			setenv(params[i].name, "", 1);
	fi_freeparams(params);
	load();
	expect_defaults();
	cr_assert_str_empty(logged);
}

Test(param, every_parameter_is_published_with_its_default)
{
	static const char *const names[] = {
		"JOB_KEY",        "PATHS",          "ENDPOINT",     "DEVICE",
		"IFACE",          "PORTS",          "GID_INDEX",    "MEM",
		"RING_SIZE",      "GRANT_MAX",      "EAGER_MAX",    "SINGLE_COPY_MIN",
		"RNDV_MIN",       "UNEXPECTED_MEM", "PEER_TIMEOUT", "NIC_RMA",
		"DCI_COUNT",      "RAILS",          "RC_MAX",       "RC_INTERVAL",
		"REVOKE_TIMEOUT", "SINGLE_COPY",    "TAG_OFFLOAD",  "HOLD",
		"LINK_RATE",      "UDP_EAGER_MAX",  "UDP_PLAIN",    "STATS",
		"WATCH",          "FAULT",          "LAYERING"
	};
	struct fi_param *params;
	int cnt, found = 0;

	start();
	cr_assert_eq(fi_getparams(&params, &cnt), 0);
	for (int i = 0; i < cnt; i++) {
		if (strncmp(params[i].name, "FI_COPYRPC_", 11))
			continue;
		cr_assert_str_eq(params[i].name + 11, names[found++]);
		cr_assert_not_null(strstr(params[i].help_string, "default"));
		cr_assert_null(params[i].value);
	}
	cr_assert_eq(found, sizeof(names) / sizeof(names[0]));
	fi_freeparams(params);
}

Test(param, sizes_take_suffixes)
{
	static const struct {
		const char *text;
		size_t value;
	} cases[] = {
		{ "1048576", 1048576 }, { "1024K", 1048576 },    { "1024k", 1048576 },
		{ "3M", 3145728 },      { "2g", 2147483648u },   { "1024G", 1ull << 40 },
		{ "1T", 1ull << 40 },   { "0x200000", 2097152 }, { "010M", 10u << 20 },
	};

	start();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		load_with("FI_COPYRPC_MEM", cases[i].text);
		cr_assert_eq(util_params.mem, cases[i].value, "%s", cases[i].text);
		cr_assert_str_empty(logged);
	}
}

Test(param, a_value_out_of_bounds_becomes_the_nearest_bound_with_a_warning)
{
	static const struct {
		const char *text;
		size_t value;
	} cases[] = {
		{ "0", 1u << 20 },
		{ "1", 1u << 20 },
		{ "1048575", 1u << 20 },
		{ "1025G", 1ull << 40 },
		{ "2T", 1ull << 40 },
		{ "99999999999999999999999", 1ull << 40 },
		{ "18446744073709551615G", 1ull << 40 },
		{ "17179869185G", 1ull << 40 },
	};

	start();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		load_with("FI_COPYRPC_MEM", cases[i].text);
		cr_assert_eq(util_params.mem, cases[i].value, "%s", cases[i].text);
		cr_assert_eq(warnings(), 1);
		cr_assert_not_null(strstr(logged, "FI_COPYRPC_MEM"));
		cr_assert_not_null(strstr(logged, cases[i].text));
	}
}

Test(param, an_unreadable_number_becomes_the_default_with_a_warning)
{
	static const char *const texts[] = { " ", "x", "-1", "12x", "1KB", "1 M", "K", "1.5M" };

	start();
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		load_with("FI_COPYRPC_EAGER_MAX", texts[i]);
		cr_assert_eq(util_params.eager_max, 8192, "'%s'", texts[i]);
		cr_assert_eq(warnings(), 1);
		cr_assert_not_null(strstr(logged, "FI_COPYRPC_EAGER_MAX"));
		cr_assert_not_null(strstr(logged, "(bytes, K, M, G or T may follow)"));
	}
	load_with("FI_COPYRPC_PEER_TIMEOUT", "30s");
	cr_assert_not_null(strstr(logged, "FI_COPYRPC_PEER_TIMEOUT=30s is not a number (ms):"));
}

Test(param, the_bound_that_a_warning_names_is_accepted)
{
	char bound[16] = "";

	start();
	load_with("FI_COPYRPC_MEM", "9999T");
	cr_assert_eq(sscanf(strstr(logged, "using "), "using %15s", bound), 1);
	load_with("FI_COPYRPC_MEM", bound);
	cr_assert_str_empty(logged, "%s: %s", bound, logged);
	load_with("FI_COPYRPC_UDP_EAGER_MAX", "512K");
	cr_assert_eq(util_params.udp_eager_max, 65u << 10);
	cr_assert_eq(warnings(), 1);
}

Test(param, zero_is_allowed_where_it_has_a_meaning)
{
	start();
	load_with("FI_COPYRPC_SINGLE_COPY_MIN", "0");
	cr_assert_eq(util_params.single_copy_min, 0);
	cr_assert_str_empty(logged);
	load_with("FI_COPYRPC_RING_SIZE", "0");
	cr_assert_eq(util_params.ring_size, 0);
	cr_assert_str_empty(logged);
	load_with("FI_COPYRPC_RING_SIZE", "1");
	cr_assert_eq(util_params.ring_size, 4096);
	cr_assert_eq(warnings(), 1);
}

Test(param, a_grant_has_room_for_the_response_to_any_call)
{
	start();
	load_with("FI_COPYRPC_GRANT_MAX", "64");
	cr_assert_eq(util_params.grant_max, 256);
	cr_assert_eq(warnings(), 1);
	load_with("FI_COPYRPC_GRANT_MAX", "256");
	cr_assert_eq(util_params.grant_max, 256);
	cr_assert_str_empty(logged);
}

Test(param, times_are_plain_numbers)
{
	start();
	load_with("FI_COPYRPC_PEER_TIMEOUT", "500");
	cr_assert_eq(util_params.peer_timeout_ms, 500);
	cr_assert_str_empty(logged);
	load_with("FI_COPYRPC_PEER_TIMEOUT", "5K");
	cr_assert_eq(util_params.peer_timeout_ms, 30000);
	cr_assert_eq(warnings(), 1);
	load_with("FI_COPYRPC_PEER_TIMEOUT", "99999999999");
	cr_assert_eq(util_params.peer_timeout_ms, 3600000);
	cr_assert_eq(warnings(), 1);
}

Test(param, booleans_accept_libfabrics_words)
{
	start();
	load_with("FI_COPYRPC_SINGLE_COPY", "no");
	cr_assert_eq(util_params.single_copy, 0);
	cr_assert_str_empty(logged);
	load_with("FI_COPYRPC_LAYERING", "1");
	cr_assert_eq(util_params.layering, 1);
	load_with("FI_COPYRPC_SINGLE_COPY", "perhaps");
	cr_assert_eq(util_params.single_copy, 1);
	cr_assert_not_null(strstr(logged, "FI_COPYRPC_SINGLE_COPY"));
}

Test(param, an_unknown_name_warns_with_the_nearest_known_name)
{
	static const struct {
		const char *wrong, *nearest;
	} cases[] = {
		{ "FI_COPYRPC_PEER_TIMEOT", "FI_COPYRPC_PEER_TIMEOUT?" },
		{ "FI_COPYRPC_PEERTIMEOUT", "FI_COPYRPC_PEER_TIMEOUT?" },
		{ "FI_COPYRPC_RINGSIZE", "FI_COPYRPC_RING_SIZE?" },
		{ "FI_COPYRPC_PATH", "FI_COPYRPC_PATHS?" },
		{ "FI_COPYRPC_mem", "FI_COPYRPC_MEM?" },
		{ "FI_COPYRPC_JOBKEY", "FI_COPYRPC_JOB_KEY?" },
		{ "FI_COPYRPC_TIMEOUT", "FI_COPYRPC_PEER_TIMEOUT?" },
		{ "FI_COPYRPC_MEM_MAX", "FI_COPYRPC_MEM?" },
	};
	char lengthy[300] = "FI_COPYRPC_";

	start();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		load_with(cases[i].wrong, "secret");
		cr_assert_eq(warnings(), 1);
		cr_assert_not_null(strstr(logged, cases[i].wrong));
		cr_assert_not_null(strstr(logged, cases[i].nearest), "%s", logged);
		cr_assert_null(strstr(logged, "secret"), "the value may be a misspelt job key");
	}
	memset(lengthy + 11, 'A', sizeof(lengthy) - 12);
	load_with(lengthy, "1");
	cr_assert_eq(warnings(), 1);
	expect_defaults();
}

Test(param, an_unknown_name_without_a_near_one_warns_without_a_guess)
{
	static const char *const strange[] = { "FI_COPYRPC_COLOUR", "FI_COPYRPC_VERBOSE",
					       "FI_COPYRPC_X", "FI_COPYRPC_PROTOCOL_VERSION" };

	start();
	for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
		load_with(strange[i], "1");
		cr_assert_eq(warnings(), 1);
		cr_assert_not_null(strstr(logged, strange[i]));
		cr_assert_null(strstr(logged, "did you mean"), "%s", logged);
	}
}

/* Each process of a job has the same environment: one line per host is enough. */
Test(param, of_a_jobs_processes_on_a_host_the_first_warns)
{
	start();
	setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
	load_with("FI_COPYRPC_PATH", "shm");
	cr_assert_eq(warnings(), 0);
	load_with("FI_COPYRPC_MEM", "12x");
	cr_assert_eq(warnings(), 0);
	setenv("OMPI_COMM_WORLD_LOCAL_RANK", "0", 1);
	load_with("FI_COPYRPC_PATH", "shm");
	cr_assert_eq(warnings(), 1);
}

Test(param, text_is_used_unchanged)
{
	start();
	setenv("FI_COPYRPC_PATHS", "nic,shm", 1);
	load();
	cr_assert_str_eq(util_params.paths, "nic,shm");
	cr_assert_str_empty(logged);
}

Test(param, the_job_key_is_never_logged)
{
	setenv("FI_LOG_LEVEL", "debug", 1);
	setenv("FI_LOG_PROV", "copyrpc", 1);
	start();
	setenv("FI_COPYRPC_JOB_KEY", "tiger=swordfish", 1);
	load();
	cr_assert_str_eq(util_params.job_key, "tiger=swordfish");
	cr_assert_not_null(strstr(logged, "copyrpc"), "nothing was logged");
	cr_assert_null(strstr(logged, "swordfish"));
	setenv("FI_COPYRPC_JOB_KEY", "", 1);
	load();
	cr_assert_null(util_params.job_key);
}

Test(param, names_are_known_or_have_a_near_one)
{
	const char *near;

	cr_expect(util_param_is_known("EAGER_MAX", 9, &near));
	cr_expect_null(near);
	cr_expect(util_param_is_known("MEM=12", 3, &near));
	cr_expect_not(util_param_is_known("EAGRMAX", 7, &near));
	cr_expect_str_eq(near, "EAGER_MAX");
	cr_expect_not(util_param_is_known("", 0, &near));
	cr_expect_null(near);
	cr_expect_not(util_param_is_known("XYZZY_PLUGH", 11, &near));
	cr_expect_null(near);
}
