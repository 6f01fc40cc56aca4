/* SPDX-License-Identifier: Apache-2.0
 * The forward model: its gradient, that it learns what can be foretold, and that nothing of it
 * reaches the agent's network. And C51's projection, which must lose no mass. */
#include <stdlib.h>

#include "agents/world.h"
#include "check.h"
#include "kernels/agents/value.h"
#include "kernels/cpu/cohort.h"

enum { ROWS = 6 };

typedef struct model {
    ho_curiosity c;
    ho_curiosity_rows rows;
    float next[ROWS][HO_CURIOSITY_FEATURES];
    const float *next_row[ROWS];
    void *block;
} model;

static void open_model(model *m)
{
    const uint32_t key[2] = {1, 2};
    ho_carve carve = {NULL, 0};
    uint64_t random = 9;
    ho_curiosity_carve(&m->c, &carve);
    ho_curiosity_rows_carve(&m->rows, ROWS, 1, &carve);
    m->block = aligned_alloc(HO_CARVE_ALIGN, carve.used);
    assert_non_null(m->block);
    memset(m->block, 0, carve.used);
    carve = (ho_carve){m->block, 0};
    ho_curiosity_carve(&m->c, &carve);
    ho_curiosity_rows_carve(&m->rows, ROWS, 1, &carve);
    CHECK_STATUS(ho_curiosity_init(&m->c, key), HO_OK);
    for (int i = 0; i < ROWS; i++) {
        float features[HO_CURIOSITY_FEATURES];
        for (int k = 0; k < HO_CURIOSITY_FEATURES; k++) {
            features[k] = (float)world_normal(&random);
            m->next[i][k] = (float)world_normal(&random);
        }
        ho_curiosity_input(&m->rows, i, features, i % 3);
        m->next_row[i] = m->next[i];
    }
}

static double loss_of(model *m)
{
    double loss = 0.0;
    ho_curiosity_pack(&m->c);
    ho_curiosity_forward(&m->c, ROWS, &m->rows);
    for (int i = 0; i < ROWS; i++) { /* in double, from the float32 outputs */
        for (int k = 0; k < HO_CURIOSITY_OUT; k++) {
            const double e = (double)m->rows.out[i * HO_CURIOSITY_OUT + k] - (double)m->next[i][k];
            loss += e * e / (HO_CURIOSITY_OUT * ROWS);
        }
    }
    return loss;
}

static void the_forward_model_has_the_gradient_of_its_error(void **state)
{
    (void)state;
    model m;
    memset(&m, 0, sizeof m);
    open_model(&m);
    double mean = 0.0, largest = 0.0;
    const double loss = loss_of(&m);
    for (int i = 0; i < ROWS; i++) {
        mean += (double)ho_curiosity_error(&m.rows, i, m.next[i]) / ROWS;
    }
    CHECK_CLOSE(mean, loss, 1e-5);
    ho_curiosity_backward(&m.c, ROWS, ROWS, m.next_row, &m.rows);
    for (int i = 0; i < HO_CURIOSITY_SIZE; i += 7) {
        const float saved = m.c.parameter[i], step = 1e-2f;
        m.c.parameter[i] = saved + step;
        const double up = loss_of(&m);
        m.c.parameter[i] = saved - step;
        const double down = loss_of(&m);
        m.c.parameter[i] = saved;
        const double want = (up - down) / (2.0 * (double)step);
        /* float32 outputs and a kink now and then: a wrong formula would be off by far more */
        CHECK_NEAR((double)m.rows.gradient[i], want, 2e-3);
        largest = fmax(largest, fabs(want));
    }
    assert_true(largest > 0.02);
    free(m.block);
}

static void it_learns_what_can_be_foretold_and_no_more(void **state)
{
    (void)state;
    ho_err err;
    ho_epoch_stat stat;
    double first = 0.0;
    world *w = world_new(WORLD_ALTERNATING, 20000, 3, HO_CURIOSITY_FEATURES, 1);
    ho_cohort_key key = world_key(w, HO_DQN);
    key.curiosity = 1;
    key.updates = 0;
    ho_lane_config lane = world_lane(w, &key, 1);
    lane.env.curiosity_weight = 0.01;
    lane.agent.curiosity_every = 1;
    lane.agent.curiosity_lr = 1e-2;
    ho_cohort *c;
    CHECK_OK(ho_cohort_create(w->backend, w->market, &key, 1, &c, &err), &err);
    CHECK_OK(ho_lane_start(c, 0, &lane, &err), &err);
    for (int i = 0; i < 100; i++) {
        CHECK_OK(ho_cohort_run_epoch(c, &stat, &err), &err);
        first = i == 0 ? stat.curiosity_loss : first;
    }
    /* one feature of 32 alternates, the others are noise of variance 1: 31 / 32 is left */
    assert_true(first > 1.2);
    CHECK_NEAR(stat.curiosity_loss, 31.0 / 32.0, 0.06);
    ho_cohort_destroy(&c);
    world_free(&w);
}

static void nothing_of_it_reaches_the_agents_network(void **state)
{
    (void)state;
    ho_err err;
    ho_epoch_stat stat[2];
    world *w = world_new(WORLD_SIGNAL, 400, 3, HO_CURIOSITY_FEATURES, 1);
    ho_cohort_key with = world_key(w, HO_DQN), without = with;
    with.curiosity = 1;
    ho_lane_config lane = world_lane(w, &with, 1);
    lane.agent.curiosity_every = 1; /* trained, but its weight in the reward is 0 */
    ho_cohort *a, *b;
    CHECK_OK(ho_cohort_create(w->backend, w->market, &with, 1, &a, &err), &err);
    CHECK_OK(ho_cohort_create(w->backend, w->market, &without, 1, &b, &err), &err);
    CHECK_OK(ho_lane_start(a, 0, &lane, &err), &err);
    CHECK_OK(ho_lane_start(b, 0, &lane, &err), &err);
    for (int i = 0; i < 4; i++) {
        CHECK_OK(ho_cohort_run_epoch(a, &stat[0], &err), &err);
        CHECK_OK(ho_cohort_run_epoch(b, &stat[1], &err), &err);
    }
    assert_true(stat[0].curiosity_loss > 0.0 && stat[1].curiosity_loss == 0.0);
    const ho_lane *x = ho_cpu_cohort_of(a)->lane[0], *y = ho_cpu_cohort_of(b)->lane[0];
    const size_t bytes = (size_t)ho_cpu_cohort_of(a)->shape.net.size * sizeof(float);
    assert_memory_equal(x->online, y->online, bytes);
    ho_cohort_destroy(&a);
    ho_cohort_destroy(&b);
    world_free(&w);
}

static void the_projection_keeps_all_mass_also_on_whole_atoms_and_beyond_the_ends(void **state)
{
    (void)state;
    enum { ATOMS = 11 };
    float p[ATOMS], out[ATOMS];
    const float v_max = 5.0f; /* atoms at -5, -4, ..., 5 */
    double sum = 0.0;
    for (int i = 0; i < ATOMS; i++) {
        p[i] = (float)(i + 1) / 66.0f;
    }
    const float rewards[] = {0.0f, 1.0f, -3.0f, 0.25f, 100.0f, -100.0f};
    const float discounts[] = {1.0f, 0.0f, 0.5f, 0.97f};
    for (int r = 0; r < 6; r++) {
        for (int d = 0; d < 4; d++) {
            double mean = 0.0, want = 0.0;
            ho_simd_get()->c51_project(out, p, ATOMS, v_max, rewards[r], discounts[d]);
            sum = 0.0;
            for (int i = 0; i < ATOMS; i++) {
                const double z = -5.0 + i;
                const double moved = (double)rewards[r] + (double)discounts[d] * z;
                sum += (double)out[i];
                mean += (double)out[i] * z;
                want += (double)p[i] * fmin(fmax(moved, -5.0), 5.0);
                assert_true(out[i] >= 0.0f);
            }
            CHECK_NEAR(sum, 1.0, 1e-6);
            CHECK_NEAR(mean, want, 1e-5); /* it keeps the mean of the clipped values, too */
        }
    }
    ho_simd_get()->c51_project(out, p, ATOMS, v_max, 1.0f, 1.0f); /* a shift by one whole atom */
    for (int i = 1; i < ATOMS - 1; i++) {
        CHECK_NEAR((double)out[i], (double)p[i - 1], 1e-7);
    }
    CHECK_NEAR((double)out[ATOMS - 1], (double)p[ATOMS - 1] + (double)p[ATOMS - 2], 1e-7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_forward_model_has_the_gradient_of_its_error),
        cmocka_unit_test(it_learns_what_can_be_foretold_and_no_more),
        cmocka_unit_test(nothing_of_it_reaches_the_agents_network),
        cmocka_unit_test(the_projection_keeps_all_mass_also_on_whole_atoms_and_beyond_the_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
