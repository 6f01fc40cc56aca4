/* SPDX-License-Identifier: Apache-2.0
 * Prioritised replay's kernels by themselves, on leaves of the test's own making: the sums are
 * exact, the draws are the CPU's, number for number, their frequencies are the probabilities, and
 * new priorities change what they should and nothing else. */
#include <stdlib.h>

#include "agents/world.h"
#include "check.h"
#include "gpu/run.h"
#include "gpu/sizes.h"
#include "kernels/agents/priority.h"
#include "kernels/cpu/sum_tree.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/env/rng.h"

enum { BATCH = 100, LANES = 2, LANE = 1, CAPACITY_MAX = 70000 };

/* A cohort whose lane 1 holds `fill` transitions and learns; its first updates are the test's. */
typedef struct bench {
    world *w;
    ho_cohort *base;
    const ho_learn_view *learn;
    cudaStream_t stream;
    ho_lane_device lane;
    int capacity, fill;
    uint32_t *leaf; /* [fill] what the device holds */
    int32_t *index; /* [BATCH] */
    float *weight;  /* [BATCH] over the batch's largest */
} bench;

static void check_cuda(cudaError_t rc)
{
    if (rc != cudaSuccess) {
        fail_msg("%s", cudaGetErrorString(rc));
    }
}

static void wait_for(const bench *b)
{
    check_cuda(cudaStreamSynchronize(b->stream));
}

/* Into device memory, before what the cohort's stream does next: a plain cudaMemcpy may return
 * while the last bytes are on their way, and that stream does not wait for it. */
static void put(const bench *b, void *to, const void *from, size_t bytes)
{
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, b->stream));
    wait_for(b);
}

static bench *bench_open(int replay, int capacity, int fill)
{
    ho_err err;
    bench *b = calloc(1, sizeof *b);
    ho_backend_options options = ho_backend_defaults();
    options.kind = HO_BACKEND_CUDA;
    options.force_portable = 1;
    b->w = world_new_on(WORLD_NOISE, 300, 4, WORLD_FEATURES, &options);
    ho_cohort_key key = world_key(b->w, HO_DQN);
    key.replay = replay;
    key.replay_capacity = capacity;
    key.batch = BATCH;
    key.updates = 1;
    CHECK_OK(ho_cohort_create(b->w->backend, b->w->market, &key, LANES, &b->base, &err), &err);
    for (int k = 0; k < LANES; k++) {
        ho_lane_config lane = world_lane(b->w, &key, 5 + (uint64_t)k);
        lane.agent.per_alpha = 0.7;
        lane.agent.per_beta_start = lane.agent.per_beta_end = 0.5;
        CHECK_OK(ho_lane_start(b->base, k, &lane, &err), &err);
    }
    const cuda_cohort *c = (const cuda_cohort *)(const void *)b->base;
    b->learn = &c->learn;
    b->stream = c->stream;
    wait_for(b); /* the lanes' start may still be on its way */
    b->capacity = capacity;
    b->fill = fill;
    b->leaf = calloc((size_t)fill, sizeof *b->leaf);
    b->index = calloc(BATCH, sizeof *b->index);
    b->weight = calloc(BATCH, sizeof *b->weight);
    ho_lane_device *at = c->learn.lane + LANE;
    check_cuda(cudaMemcpy(&b->lane, at, sizeof b->lane, cudaMemcpyDeviceToHost));
    b->lane.replay_fill = fill;
    b->lane.replay_head = fill % capacity;
    b->lane.learning = 1;
    put(b, at, &b->lane, sizeof b->lane);
    return b;
}

static void bench_close(bench *b)
{
    ho_cohort_destroy(&b->base);
    world_free(&b->w);
    free(b->leaf);
    free(b->index);
    free(b->weight);
    free(b);
}

static uint32_t *device_leaf(const bench *b)
{
    return b->learn->priority.leaf + (size_t)LANE * (size_t)b->learn->priority.shape.leaves;
}

static void put_leaves(const bench *b)
{
    put(b, device_leaf(b), b->leaf, (size_t)b->fill * sizeof *b->leaf);
    assert_int_equal(ho_priority_open(b->learn, b->stream), HO_OK);
    wait_for(b);
}

static void draw(const bench *b, int update)
{
    const ho_priority_view *p = &b->learn->priority;
    float part[64], largest = 0.0f;
    assert_true(p->shape.draw_parts <= 64);
    assert_int_equal(ho_priority_draw_batch(b->learn, update, b->stream), HO_OK);
    wait_for(b);
    check_cuda(cudaMemcpy(b->index, p->index + LANE * BATCH, BATCH * sizeof *b->index,
                          cudaMemcpyDeviceToHost));
    check_cuda(cudaMemcpy(b->weight, p->weight + LANE * BATCH, BATCH * sizeof *b->weight,
                          cudaMemcpyDeviceToHost));
    check_cuda(cudaMemcpy(part, p->weight_part + LANE * p->shape.draw_parts,
                          (size_t)p->shape.draw_parts * sizeof *part, cudaMemcpyDeviceToHost));
    for (int i = 0; i < p->shape.draw_parts; i++) {
        largest = part[i] > largest ? part[i] : largest;
    }
    for (int i = 0; i < BATCH; i++) {
        b->weight[i] /= largest;
    }
}

static uint64_t mass_of(const bench *b, int update, int row, uint64_t total)
{
    const ho_rng4 r = ho_rng(b->lane.env.key, (uint32_t)update, (uint32_t)row, 0, HO_RNG_REPLAY, 0);
    return ho_priority_draw(total, row, BATCH, (uint64_t)r.v[0] << 32 | r.v[1]);
}

/* Weights that the CPU computes from the same masses; pow differs in the last places only. */
static void check_weights(const bench *b, const uint64_t *share, uint64_t total)
{
    double weight[BATCH], largest = 0.0;
    for (int i = 0; i < BATCH; i++) {
        weight[i] = ho_priority_weight((double)share[i] / (double)total, b->fill, 0.5);
        largest = weight[i] > largest ? weight[i] : largest;
    }
    for (int i = 0; i < BATCH; i++) {
        CHECK_CLOSE(b->weight[i], weight[i] / largest, 1e-6);
    }
}

static uint64_t random_word(uint64_t *state)
{
    *state = ho_splitmix64(*state);
    return *state;
}

static const int capacities[] = {1, 31, 255, 256, 257, 5000, CAPACITY_MAX};
enum { CAPACITIES = sizeof capacities / sizeof capacities[0] };

/* Leaves of 1 and of 2^32 - 1 among usual ones, full rings and half-full ones. */
static void proportional_draws_are_the_sum_trees(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < gpu_size(CAPACITIES, CAPACITIES - 1); i++) {
        for (int half = 0; half < 2; half++) {
            bench *b = bench_open(HO_REPLAY_PER, capacities[i],
                                  half && capacities[i] > 1 ? capacities[i] / 2 : capacities[i]);
            ho_sum_tree tree = {ho_sum_tree_leaves(b->capacity), NULL};
            tree.node = calloc(2 * (size_t)tree.leaves, sizeof *tree.node);
            for (int k = 0; k < b->fill; k++) {
                const uint64_t r = random_word(&seed);
                b->leaf[k] = r % 50 == 0   ? 1u
                             : r % 50 == 1 ? 0xffffffffu
                                           : (uint32_t)(r >> 40) + 1u;
                ho_sum_tree_set(&tree, k, b->leaf[k]);
            }
            put_leaves(b);
            for (int update = 0; update < 4; update++) {
                uint64_t share[BATCH];
                draw(b, update);
                for (int row = 0; row < BATCH; row++) {
                    const int64_t want =
                        ho_sum_tree_find(&tree, mass_of(b, update, row, ho_sum_tree_total(&tree)));
                    if (b->index[row] != want) {
                        fail_msg("capacity %d, fill %d, update %d, row %d: slot %d, wanted %lld",
                                 b->capacity, b->fill, update, row, b->index[row], (long long)want);
                    }
                    share[row] = b->leaf[want];
                }
                check_weights(b, share, ho_sum_tree_total(&tree));
            }
            free(tree.node);
            bench_close(b);
        }
    }
}

typedef struct ranked {
    uint32_t bits; /* of |td| */
    int slot;
} ranked;

static int by_falling_td(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->bits != y->bits ? (x->bits < y->bits ? 1 : -1) : x->slot - y->slot;
}

static uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Many equal td errors: ties go to the lower slot. */
static void ranked_draws_are_those_of_a_sort(void **state)
{
    (void)state;
    uint64_t seed = 2;
    for (int i = 0; i < gpu_size(CAPACITIES, CAPACITIES - 1); i++) {
        for (int half = 0; half < 2; half++) {
            bench *b = bench_open(HO_REPLAY_PER_RANK, capacities[i],
                                  half && capacities[i] > 1 ? capacities[i] / 2 : capacities[i]);
            ranked *order = calloc((size_t)b->fill, sizeof *order);
            uint64_t *mass = calloc((size_t)b->fill + 1, sizeof *mass);
            for (int k = 0; k < b->fill; k++) {
                const uint64_t r = random_word(&seed);
                b->leaf[k] = float_bits(r % 3 == 0 ? (float)(r >> 60) : (float)(r >> 40) * 1e-6f);
                order[k].bits = b->leaf[k];
                order[k].slot = k;
                mass[k + 1] = mass[k] + ho_priority_rank_mass(k, 0.7);
            }
            qsort(order, (size_t)b->fill, sizeof *order, by_falling_td);
            put_leaves(b);
            for (int update = 0; update < 3; update++) { /* sorted at the first */
                uint64_t share[BATCH];
                draw(b, update);
                for (int row = 0; row < BATCH; row++) {
                    const uint64_t at = mass_of(b, update, row, mass[b->fill]);
                    int rank = 0;
                    while (mass[rank + 1] <= at) {
                        rank++;
                    }
                    if (b->index[row] != order[rank].slot) {
                        fail_msg("capacity %d, fill %d, update %d, row %d: slot %d, wanted %d",
                                 b->capacity, b->fill, update, row, b->index[row],
                                 order[rank].slot);
                    }
                    share[row] = mass[rank + 1] - mass[rank];
                }
                check_weights(b, share, mass[b->fill]);
            }
            free(order);
            free(mass);
            bench_close(b);
        }
    }
}

/* Pearson's statistic of the draws against the probabilities, 19 degrees of freedom: one of a
 * thousand fair samples of independent draws passes 43.8. Stratified draws lie nearer their
 * expectation than independent ones. */
static void draws_follow_the_probabilities(void **state)
{
    (void)state;
    enum { CLASSES = 20 };
    for (int replay = HO_REPLAY_PER; replay <= HO_REPLAY_PER_RANK; replay++) {
        const int updates = gpu_size(400, 40), fill = 20 * CLASSES;
        double expected[CLASSES] = {0}, total = 0.0, chi = 0.0;
        int64_t seen[CLASSES] = {0};
        bench *b = bench_open(replay, 1000, fill);
        for (int k = 0; k < fill; k++) { /* slot k is of class k % 20, the larger the likelier */
            const double td = 0.05 * (1 + k % CLASSES) + 1e-5 * k;
            b->leaf[k] =
                replay == HO_REPLAY_PER ? ho_priority_leaf(td, 0.7) : float_bits((float)td);
        }
        for (int k = 0; k < fill; k++) { /* rank: 20 of each class, falling */
            const double p = replay == HO_REPLAY_PER ? (double)b->leaf[k]
                                                     : (double)ho_priority_rank_mass(k, 0.7);
            expected[replay == HO_REPLAY_PER ? k % CLASSES : CLASSES - 1 - k / 20] += p;
            total += p;
        }
        put_leaves(b);
        for (int update = 0; update < updates; update++) {
            draw(b, update);
            for (int row = 0; row < BATCH; row++) {
                seen[b->index[row] % CLASSES]++;
            }
        }
        for (int c = 0; c < CLASSES; c++) {
            const double e = expected[c] / total * updates * BATCH;
            chi += ((double)seen[c] - e) * ((double)seen[c] - e) / e;
        }
        print_message("replay %d: chi-square %.2f of %d draws\n", replay, chi, updates * BATCH);
        assert_true(chi < 43.8);
        bench_close(b);
    }
}

/* New td errors of an applied update reach their leaves, other leaves and lanes stay, and the sums
 * are those of the leaves; an update that was not applied changes nothing. */
static void new_priorities_keep_the_sums_exact(void **state)
{
    (void)state;
    bench *b = bench_open(HO_REPLAY_PER, 3000, 2500);
    const ho_priority_view *p = &b->learn->priority;
    const size_t leaves = (size_t)b->fill;
    uint32_t *got = calloc(leaves, sizeof *got);
    uint64_t *sum = calloc((size_t)p->shape.blocks, sizeof *sum), seed = 3;
    float td[BATCH];
    ho_update_gate gate = {0};
    for (int k = 0; k < b->fill; k++) {
        b->leaf[k] = (uint32_t)(random_word(&seed) >> 40) + 1u;
    }
    put_leaves(b);
    for (int update = 0; update < 6; update++) {
        draw(b, update);
        gate.apply = update % 3 != 2;
        for (int row = 0; row < BATCH; row++) {
            td[row] = (float)(b->index[row] % 97) * 0.03f; /* a slot drawn twice has one td */
            if (gate.apply) {
                b->leaf[b->index[row]] = ho_priority_leaf((double)td[row], 0.7);
            }
        }
        put(b, p->td + LANE * BATCH, td, sizeof td);
        put(b, b->learn->gate + LANE, &gate, sizeof gate);
        assert_int_equal(ho_priority_write(b->learn, b->stream), HO_OK);
        wait_for(b);
        check_cuda(cudaMemcpy(got, device_leaf(b), leaves * sizeof *got, cudaMemcpyDeviceToHost));
        check_cuda(cudaMemcpy(sum, p->sum + (size_t)LANE * (size_t)p->shape.blocks,
                              (size_t)p->shape.blocks * sizeof *sum, cudaMemcpyDeviceToHost));
        for (int k = 0; k < b->fill; k++) {
            /* pow of the device and of the host: the last bit of a leaf */
            if (got[k] > b->leaf[k] + 1u || b->leaf[k] > got[k] + 1u) {
                fail_msg("update %d, slot %d: leaf %u, wanted %u", update, k, got[k], b->leaf[k]);
            }
            b->leaf[k] = got[k];
        }
        for (int block = 0; block < p->shape.blocks; block++) {
            uint64_t want = 0;
            for (int k = block * p->shape.block; k < (block + 1) * p->shape.block && k < b->fill;
                 k++) {
                want += got[k];
            }
            assert_true(sum[block] == want);
        }
    }
    free(got);
    free(sum);
    bench_close(b);
}

/* ---- new experience ---- */

static void a_transition_names_the_one_whose_state_comes_next(void **state)
{
    (void)state;
    for (int form = 0; form < 6; form++) {
        const int recycle = form % 2, n_step = 1 + form / 2;
        ho_err err;
        ho_epoch_stat stat;
        ho_backend_options options = ho_backend_defaults();
        options.kind = HO_BACKEND_CUDA;
        options.force_portable = 1;
        world *w = world_new_on(WORLD_NOISE, 300, 4, WORLD_FEATURES, &options);
        ho_cohort_key key = world_key(w, HO_DQN);
        key.replay_capacity = recycle ? 700 : 2000; /* less than an epoch's 800, and more */
        key.updates = 1;
        ho_cohort *base;
        CHECK_OK(ho_cohort_create(w->backend, w->market, &key, 1, &base, &err), &err);
        ho_lane_config lane = world_lane(w, &key, 5);
        lane.env.recycle = recycle;
        lane.env.end_on_barrier = 1;
        lane.agent.n_step = n_step;
        lane.agent.eps_start = lane.agent.eps_end = 1.0;
        CHECK_OK(ho_lane_start(base, 0, &lane, &err), &err);
        for (int epoch = 0; epoch < 2; epoch++) {
            CHECK_OK(ho_cohort_run_epoch(base, &stat, &err), &err);
        }
        const cuda_cohort *c = (const cuda_cohort *)(const void *)base;
        const ho_learn_view *v = &c->learn;
        ho_lane_device device;
        check_cuda(cudaStreamSynchronize(c->stream));
        ho_replay_record *ring = calloc((size_t)key.replay_capacity, sizeof *ring);
        check_cuda(cudaMemcpy(&device, v->lane, sizeof device, cudaMemcpyDeviceToHost));
        check_cuda(cudaMemcpy(ring, v->replay, (size_t)key.replay_capacity * sizeof *ring,
                              cudaMemcpyDeviceToHost));
        int named = 0;
        for (int i = 0; i < device.stored; i++) {
            const ho_replay_record *r = &ring[ho_new_slot(&device, i, key.replay_capacity)];
            if (r->later == 0) {
                continue;
            }
            named++;
            assert_in_range(i + r->later, i + 1, device.stored - 1);
            const ho_replay_record *next =
                &ring[ho_new_slot(&device, i + r->later, key.replay_capacity)];
            assert_int_equal(next->bar, r->next_bar);
            assert_memory_equal(next->portfolio, r->next_portfolio, sizeof r->next_portfolio);
        }
        print_message("recycle %d, %d steps: %d of %d named\n", recycle, n_step, named,
                      device.stored);
        assert_true(named >= device.stored / 3 && named < device.stored);
        free(ring);
        ho_cohort_destroy(&base);
        world_free(&w);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(proportional_draws_are_the_sum_trees),
        cmocka_unit_test(ranked_draws_are_those_of_a_sort),
        cmocka_unit_test(draws_follow_the_probabilities),
        cmocka_unit_test(new_priorities_keep_the_sums_exact),
        cmocka_unit_test(a_transition_names_the_one_whose_state_comes_next),
    };
    return GPU_TESTS_RUN(tests, argc, argv);
}
