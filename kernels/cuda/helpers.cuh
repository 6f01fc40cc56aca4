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
    const double size = e->size, equity = e->equity;
    ho_offer_part own = *part;
    for (int n = i;; own = ho_offer_part_of(c, n)) {
        ho_crossing *to = n < HO_OFFER_ORDERS ? &offer->order[n] : &offer->stop;
        *to = ho_offer_order(c, &own, &account, q, size, equity, n);
        if (n == i) {
            *part = own;
        }
        n += threads;
        if (threads > HO_OFFER_ORDERS || n > HO_OFFER_ORDERS) {
            break;
        }
    }
}

/* What limit and IOC orders meet, by 3 threads, this one being number `i`. */
static __device__ __forceinline__ void offer_limits(const ho_env_config *c, const ho_quote *q,
                                                    int i, ho_offer *offer)
{
    if (i < 2) {
        offer->limit[i] = ho_limit_price(c, q->before + q->jump, i ? 1 : -1);
    } else if (i == 2) {
        offer->ioc_most = ho_ioc_most(c, q);
    }
}

/* The rest of an offer, by 4 threads, this one being number `i`. */
static __device__ __forceinline__ void offer_rest(const ho_env_lane *lane, const ho_env *e,
                                                  ho_ring ring, const ho_quote *q, int i,
                                                  ho_offer *offer)
{
    if (i == 3) {
        offer->ahead = ho_env_look_ahead(lane, e, ring, q);
    } else {
        offer_limits(&lane->config, q, i, offer);
    }
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
