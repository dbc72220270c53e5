/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_timely.h. */
#include "erpc/pace/erpc_timely.h"

#define ERPC_TIMELY_HAI   5u      /* falls in a row after which increases are five times as large */
#define ERPC_TIMELY_T_LOW 50000.0 /* ns, or the time of ERPC_TIMELY_QUEUE: */
#define ERPC_TIMELY_QUEUE 12288.0 /* bytes in the queue of a busy link */

static double erpc_timely_lesser(double a, double b)
{
	return a < b ? a : b;
}

void erpc_timely_cfg_init(struct erpc_timely_cfg *cfg, double max_rate, uint64_t host_ns)
{
	double queue_ns = ERPC_TIMELY_QUEUE / max_rate * 1e9;
	double t_low = queue_ns > ERPC_TIMELY_T_LOW ? queue_ns : ERPC_TIMELY_T_LOW;

	*cfg = (struct erpc_timely_cfg){
		.t_low_ns = (uint64_t)t_low + host_ns,
		.t_high_ns = (uint64_t)(20 * t_low) + host_ns,
		.min_rtt_ns = (uint64_t)(t_low / 25),
		.catch_ns = (uint64_t)t_low + host_ns,
		.alpha = 0.875,
		.beta = 0.008,
		.beta_high = 0.8,
		.add_rate = erpc_timely_lesser(5e6, max_rate / 625),
		.min_rate = erpc_timely_lesser(15e6 / 8, max_rate / 256),
		.lost_rate = max_rate / 32,
		.max_rate = max_rate,
	};
}

void erpc_timely_init(struct erpc_timely *t, const struct erpc_timely_cfg *cfg, uint64_t now_ns)
{
	*t = (struct erpc_timely){ .cfg = cfg, .rate = cfg->max_rate, .updated_ns = now_ns };
}

/** Adds the sample to the trend. Returns the gradient, in min_rtt per sample. */
static double erpc_timely_gradient(struct erpc_timely *t, uint64_t rtt_ns)
{
	const struct erpc_timely_cfg *cfg = t->cfg;
	double diff;

	if (!t->prev_rtt_ns)
		t->prev_rtt_ns = rtt_ns;
	diff = (double)rtt_ns - (double)t->prev_rtt_ns;
	t->prev_rtt_ns = rtt_ns;
	t->falls = diff <= 0 ? t->falls + 1 : 0;
	t->avg_diff_ns = (1 - cfg->alpha) * t->avg_diff_ns + cfg->alpha * diff;
	return t->avg_diff_ns / (double)cfg->min_rtt_ns;
}

/** Returns the fraction of one min_rtt that has passed since the last change: 0 to 1. */
static double erpc_timely_share(struct erpc_timely *t, uint64_t now_ns)
{
	uint64_t passed = now_ns - t->updated_ns;

	t->updated_ns = now_ns;
	return passed < t->cfg->min_rtt_ns ? (double)passed / (double)t->cfg->min_rtt_ns : 1;
}

/** Returns the weight of the decrease between the thresholds: 0 to 1, by the trend. */
static double erpc_timely_weight(double gradient)
{
	if (gradient <= -0.25)
		return 0;
	return gradient >= 0.25 ? 1 : 2 * gradient + 0.5;
}

void erpc_timely_update(struct erpc_timely *t, uint64_t now_ns, uint64_t rtt_ns)
{
	const struct erpc_timely_cfg *cfg = t->cfg;
	double gradient = erpc_timely_gradient(t, rtt_ns);
	double share = erpc_timely_share(t, now_ns);
	double up = share * cfg->add_rate;
	double rate = t->rate, weight, above;

	if (rtt_ns < cfg->t_low_ns) {
		rate += t->falls >= ERPC_TIMELY_HAI ? 5 * up : up;
	} else if (rtt_ns > cfg->t_high_ns) {
		rate *= 1 - share * cfg->beta_high * (1 - (double)cfg->t_high_ns / (double)rtt_ns);
	} else {
		weight = erpc_timely_weight(gradient);
		above = (double)(rtt_ns - cfg->t_low_ns) / (double)cfg->t_low_ns;
		rate += up * (1 - weight) - share * cfg->beta * weight * above * rate;
	}
	/* One sample at most halves the rate. */
	if (rate < t->rate / 2)
		rate = t->rate / 2;
	if (rate > cfg->max_rate)
		rate = cfg->max_rate;
	t->rate = rate > cfg->min_rate ? rate : cfg->min_rate;
}

void erpc_timely_lost(struct erpc_timely *t, uint64_t now_ns)
{
	const struct erpc_timely_cfg *cfg = t->cfg;
	/* Before the first sample a full queue is assumed. */
	uint64_t rtt_ns = t->prev_rtt_ns ? t->prev_rtt_ns : cfg->t_high_ns / 4;

	if (rtt_ns <= cfg->t_low_ns || now_ns - t->lost_ns < rtt_ns || t->rate <= cfg->lost_rate)
		return;
	t->lost_ns = now_ns;
	t->rate = t->rate / 2 > cfg->lost_rate ? t->rate / 2 : cfg->lost_rate;
}
