/* SPDX-License-Identifier: Apache-2.0
 * A block of 8 network warps and 4 that help them. Weights held in registers leave too few for
 * twelve warps: on sm_90a the helpers give theirs to the network. */
#ifndef HO_CUDA_HELPERS_CUH
#define HO_CUDA_HELPERS_CUH

#include "kernels/cuda/policy_block.cuh"
#include "kernels/env/offer.h"
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#include "kernels/cuda/hopper.cuh"
#endif

enum { HELPED_THREADS = POLICY_THREADS + 128 };

/* KEPT: registers of a helping thread, 8 more than a multiple of 16. */
template <bool HELD, int KEPT> static __device__ __forceinline__ void registers_for_helpers(void)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    if (HELD) {
        registers_give<KEPT>();
    }
#endif
}

/* KEPT: by the helping threads. */
template <bool HELD, int KEPT> static __device__ __forceinline__ void registers_for_network(void)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    if (HELD) {
        registers_take<252 - KEPT / 2>();
    }
#endif
}

/* An offer's orders, by `threads` threads, this one being number `i`, whose first order is `part`.
 */
static __device__ __forceinline__ void offer_orders(const ho_env_config *c, ho_offer_part *part,
                                                    const ho_env *e, const ho_quote *q, int i,
                                                    int threads, ho_offer *offer)
{
    const ho_account account = e->account;
    const ho_quote quote = *q; /* read at once: later the network's loads are in the way */
    const double size = e->size, equity = e->equity;
    ho_offer_part own = *part;
    for (int n = i;; own = ho_offer_part_of(c, n)) {
        ho_crossing *to = n < HO_OFFER_ORDERS ? &offer->order[n] : &offer->stop;
        *to = ho_offer_order(c, &own, &account, &quote, size, equity, n);
        if (n == i) {
            *part = own;
        }
        n += threads;
        if (threads > HO_OFFER_ORDERS || n > HO_OFFER_ORDERS) {
            break;
        }
    }
}

/* The rest of an offer but its `ahead`: what limit and IOC orders meet, by HO_RESTS threads, this
 * one being number `i`, all of a warp at once. there: this one's offer is. Returns the last one's
 * lots at exposure 1 of the decision after the bar; before: those in force. */
static __device__ __forceinline__ double offer_rest(const ho_env_config *c, const ho_quote *q,
                                                    int i, bool there, double before,
                                                    ho_offer *offer)
{
    const ho_ratio r = ho_rest_ratio(c, q, i);
    const double x = ho_quotient(r.num, r.den), next = __shfl_down_sync(0xffffffffu, x, 1);
    const double ticks = ho_ticks_against(x, i == HO_REST_SELLER ? 1 : -1, c->tick_size);
    const double limit = c->tick_size > 0.0 ? ticks : r.num;
    const int32_t most = ho_ioc_most_of(c, q->before + q->jump, x, next);
    if (there && i < HO_REST_BAND) {
        offer->limit[i] = limit;
    }
    if (there && i == HO_REST_BAND) {
        offer->ioc_most = most;
    }
    return ho_size_of(c, before, q->sigma_next, x);
}

/* An offer that is there: what works one out without it is left out. */
static __device__ __forceinline__ const ho_offer *offer_there(const ho_offer *offer)
{
    if (!offer) {
        __builtin_unreachable();
    }
    return offer;
}

#endif
