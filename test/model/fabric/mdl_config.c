/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Configuration of the model, read once from the environment that the launcher set, and the model's
 * messages: remarks, and fatal messages for broken rules.
 */
#include "model/fabric/mdl_raw.h"
#include "model/fabric/mdl_segment.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct mdl_config config;
static pthread_once_t config_once = PTHREAD_ONCE_INIT;

static uint64_t env_number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static void env_text(char *to, size_t size, const char *name, const char *otherwise)
{
	const char *text = getenv(name);

	snprintf(to, size, "%s", text && *text ? text : otherwise);
}

static enum mdl_mode env_mode(void)
{
	const char *text = getenv("COPYRPC_HCA_MODE");

	return text && !strcmp(text, "poll") ? MDL_MODE_POLL : MDL_MODE_TRAP;
}

static void config_read(void)
{
	const char *link = getenv("COPYRPC_HCA_LINK");

	env_text(config.segment, sizeof(config.segment), "COPYRPC_HCA_SEGMENT", "default");
	env_text(config.faults, sizeof(config.faults), "COPYRPC_HCA_FAULTS", "");
	config.link = link && !strcmp(link, "roce") ? MDL_LINK_ROCE : MDL_LINK_IB;
	config.nodes = (uint32_t)env_number("COPYRPC_HCA_NODES", 2);
	config.devices = (uint32_t)env_number("COPYRPC_HCA_DEVICES", 1);
	config.node = (uint32_t)env_number("COPYRPC_HCA_NODE", 0);
	config.seed = env_number("COPYRPC_HCA_SEED", 1);
	config.stats = (uint32_t)env_number("COPYRPC_HCA_STATS", 0);
	config.mode = env_mode();
	if (config.nodes < 1 || config.nodes > MDL_NODE_MAX)
		config.nodes = 2;
	if (config.devices < 1 || config.devices > MDL_DEV_MAX)
		config.devices = 1;
	if (config.node >= config.nodes)
		config.node %= config.nodes;
}

const struct mdl_config *mdl_config_get(void)
{
	pthread_once(&config_once, config_read);
	return &config;
}

/* Writes one line with one write(), so that lines of several processes do not mix. */
static void speak(const char *kind, const char *format, va_list args)
{
	char line[1024];
	int used = snprintf(line, sizeof(line), "copyrpc_hca[%ld]: %s", MDL_RAW0(getpid), kind);
	int more = vsnprintf(line + used, sizeof(line) - (size_t)used - 1, format, args);
	size_t len = (size_t)used + (more < 0 ? 0 : (size_t)more);

	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	(void)MDL_RAW3(write, STDERR_FILENO, line, len);
}

void mdl_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	speak("", format, args);
	va_end(args);
}

void mdl_fatal(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	speak("RULE BROKEN: ", format, args);
	va_end(args);
	abort();
}
