/* SPDX-License-Identifier: Apache-2.0
 * Every network form and every loss against central differences, in float64 (the same sources as
 * the product's, compiled with HO_REAL_F64). */
#include <stdlib.h>

#include "check.h"
#include "kernels/cpu/dqn_loss.h"
#include "kernels/cpu/ppo_loss.h"

enum { ROWS = 5, PARAMETERS_MAX = 8192, ATOMS_MAX = 7 };

static uint64_t seed_state;

/* uniform in (-1, 1); a test's own numbers, not the product's */
static double random_number(void)
{
    seed_state = seed_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(seed_state >> 11) / 4503599627370496.0 - 1.0;
}

static double weights[PARAMETERS_MAX], gradient[PARAMETERS_MAX], noise[512];

typedef struct fixture {
    ho_net_layout net;
    ho_net_pack pack;
    ho_net_rows rows;
    double *x; /* [ROWS, x_row] */
    void *block;
} fixture;

static void lay_out(fixture *f, ho_carve *carve)
{
    ho_net_pack_carve(&f->pack, &f->net, 1, carve);
    ho_net_rows_carve(&f->rows, &f->net, ROWS, 1, carve);
    f->x = ho_carve_take(carve, ROWS * (size_t)f->rows.x_row, sizeof(double));
}

static void open_fixture(fixture *f, const ho_cohort_key *key)
{
    memset(f, 0, sizeof *f);
    f->net = ho_net_layout_of(key);
    assert_true(f->net.size <= PARAMETERS_MAX && f->net.noise_size <= 512);
    ho_carve carve = {NULL, 0};
    lay_out(f, &carve);
    f->block = aligned_alloc(HO_CARVE_ALIGN, carve.used);
    assert_non_null(f->block);
    memset(f->block, 0, carve.used);
    carve = (ho_carve){f->block, 0};
    lay_out(f, &carve);
    seed_state = 12345;
    for (int64_t i = 0; i < f->net.size; i++) {
        weights[i] = 0.5 * random_number();
    }
    for (int64_t i = 0; i < f->net.noise_size; i++) {
        noise[i] = random_number();
    }
    for (int r = 0; r < ROWS; r++) {
        for (int i = 0; i < f->net.state; i++) {
            f->x[r * f->rows.x_row + i] = random_number();
        }
    }
}

static ho_cohort_key small_key(void)
{
    return (ho_cohort_key){.hidden1 = 9,
                           .hidden2 = 10,
                           .head = 8,
                           .state_form = HO_STATE_SEED54,
                           .market_features = 4,
                           .action_set = HO_ACTIONS_FULL45};
}

/* Compares gradient[] with central differences of loss(); trunk_scale is what the trunk's
 * gradient was multiplied by on purpose. */
static void compare(const fixture *f, double (*loss)(void *), void *arg, double trunk_scale,
                    const char *form)
{
    ho_net_tensor tensor[HO_NET_TENSORS_MAX];
    const int tensors = ho_net_layout_tensors(&f->net, tensor);
    assert_true(tensors >= 8);
    for (int t = 0; t < tensors; t++) {
        const double scale = strncmp(tensor[t].name, "online.trunk", 12) == 0 ? trunk_scale : 1.0;
        double largest = 0.0;
        for (int64_t i = tensor[t].offset; i < tensor[t].offset + tensor[t].count; i++) {
            const double saved = weights[i], step = 1e-5;
            weights[i] = saved + step;
            const double up = loss(arg);
            weights[i] = saved - step;
            const double down = loss(arg);
            weights[i] = saved;
            const double want = scale * (up - down) / (2.0 * step);
            if (!(fabs(gradient[i] - want) <= 1e-7 + 1e-6 * fabs(want))) {
                fail_msg("%s: %s[%d] = %.12g, differences say %.12g", form, tensor[t].name,
                         (int)(i - tensor[t].offset), gradient[i], want);
            }
            largest = fabs(want) > largest ? fabs(want) : largest;
        }
        if (!(largest > 1e-6)) {
            fail_msg("%s: %s has no gradient, so nothing was tested", form, tensor[t].name);
        }
    }
}

/* ---- DQN ---- */

typedef struct dqn_case {
    fixture f;
    const double *noise;
    ho_dqn_loss_spec spec;
    int32_t choice[ROWS * HO_BRANCHES_MAX];
    double target[ROWS * ATOMS_MAX];
    double weight[ROWS];
    ho_dqn_row row[ROWS];
} dqn_case;

static double dqn_loss(void *arg)
{
    dqn_case *c = arg;
    ho_net_pack_fill(&c->f.pack, &c->f.net, weights, c->noise);
    ho_net_forward(&c->f.net, &c->f.pack, c->f.x, ROWS, HO_NET_BOTH, &c->f.rows);
    ho_dqn_values(&c->f.net, ROWS, c->spec.v_max, &c->f.rows);
    ho_dqn_loss(&c->f.net, &c->spec, ROWS, c->choice, c->target, c->weight, &c->f.rows, c->row);
    double sum = 0.0;
    for (int r = 0; r < ROWS; r++) {
        sum += c->row[r].loss;
    }
    return sum / ROWS;
}

static void check_dqn(int dueling, int branching, int noisy, int atoms, double delta)
{
    char form[96];
    snprintf(form, sizeof form, "dueling %d branching %d noisy %d atoms %d delta %g", dueling,
             branching, noisy, atoms, delta);
    ho_cohort_key key = small_key();
    key.dueling = dueling;
    key.branching = branching;
    key.noisy = noisy;
    key.atoms = atoms;
    dqn_case c = {.spec = {.batch = ROWS, .huber_delta = delta, .v_max = 2.0}};
    open_fixture(&c.f, &key);
    c.noise = noisy ? noise : NULL;
    for (int r = 0; r < ROWS; r++) {
        ho_branches_choice(&c.f.net.branches, (r * 19 + 4) % HO_ACTIONS, c.choice + r * 3);
        c.weight[r] = 0.3 + 0.2 * r;
        double sum = 0.0;
        for (int i = 0; i < atoms; i++) {
            c.target[r * atoms + i] = 1.5 + random_number();
            sum += c.target[r * atoms + i];
        }
        for (int i = 0; i < atoms; i++) {
            c.target[r * atoms + i] /= sum;
        }
        if (atoms == 0) {
            c.target[r] = 3.0 * random_number(); /* beyond and within the Huber delta */
        }
    }
    const double trunk_scale = branching ? 0.25 : 1.0;
    CHECK_NEAR(ho_dqn_trunk_scale(&c.f.net), trunk_scale, 1e-15);
    (void)dqn_loss(&c);
    ho_net_backward(&c.f.net, &c.f.pack, c.f.x, ROWS, trunk_scale, &c.f.rows, gradient);
    if (noisy) {
        ho_net_noise_gradient(&c.f.net, noise, gradient);
    }
    compare(&c.f, dqn_loss, &c, trunk_scale, form);
    free(c.f.block);
}

static void every_dqn_form_has_the_gradient_of_its_loss(void **state)
{
    (void)state;
    for (int form = 0; form < 16; form++) {
        const int atoms = form & 8 ? ATOMS_MAX : 0;
        check_dqn(form & 1, form >> 1 & 1, form >> 2 & 1, atoms, 0.7);
        if (!atoms) {
            check_dqn(form & 1, form >> 1 & 1, form >> 2 & 1, atoms, 0.0);
        }
    }
}

static void dueling_mean_is_per_sample_not_over_the_batch(void **state)
{
    (void)state;
    ho_cohort_key key = small_key();
    key.dueling = 1;
    dqn_case c = {.spec = {.batch = ROWS}};
    open_fixture(&c.f, &key);
    (void)dqn_loss(&c);
    double alone[HO_ACTIONS];
    for (int r = 0; r < ROWS; r++) {
        memcpy(alone, c.f.rows.q + r * c.f.rows.q_row, sizeof alone);
        const double value = c.f.rows.act[HO_LAYER_VALUE1][r * c.f.rows.row[HO_LAYER_VALUE1]];
        double mean = 0.0;
        for (int a = 0; a < HO_ACTIONS; a++) {
            mean += alone[a] / HO_ACTIONS;
        }
        CHECK_NEAR(mean, value, 1e-12); /* mean over actions of Q is V */
    }
    double first[HO_ACTIONS];
    memcpy(first, c.f.rows.q + 2 * c.f.rows.q_row, sizeof first);
    ho_net_forward(&c.f.net, &c.f.pack, c.f.x + 2 * c.f.rows.x_row, 1, HO_NET_BOTH, &c.f.rows);
    ho_dqn_values(&c.f.net, 1, 1.0, &c.f.rows);
    assert_memory_equal(first, c.f.rows.q, sizeof first);
    free(c.f.block);
}

/* ---- PPO ---- */

typedef struct ppo_case {
    fixture f;
    ho_ppo_loss_spec spec;
    int32_t choice[ROWS * HO_BRANCHES_MAX];
    double log_p_old[ROWS], advantage[ROWS], value_old[ROWS], value_target[ROWS];
} ppo_case;

static double ppo_loss(void *arg)
{
    ppo_case *c = arg;
    const ho_ppo_batch batch = {c->choice, c->log_p_old, c->advantage, c->value_old,
                                c->value_target};
    ho_ppo_sums sums = {0};
    ho_net_pack_fill(&c->f.pack, &c->f.net, weights, NULL);
    ho_net_forward(&c->f.net, &c->f.pack, c->f.x, ROWS, HO_NET_BOTH, &c->f.rows);
    ho_ppo_log_probabilities(&c->f.net, ROWS, &c->f.rows);
    ho_ppo_loss(&c->f.net, &c->spec, ROWS, &batch, &c->f.rows, &sums);
    return (sums.policy_loss + c->spec.vf_coef * sums.value_loss -
            c->spec.ent_coef * sums.entropy) /
           ROWS;
}

static void check_ppo(int factored, int separate, double value_clip)
{
    char form[64];
    snprintf(form, sizeof form, "factored %d separate %d value clip %g", factored, separate,
             value_clip);
    ho_cohort_key key = small_key();
    key.algorithm = HO_PPO;
    key.ppo_factored = factored;
    key.ppo_separate = separate;
    ppo_case c = {.spec = {ROWS, 0.2, value_clip, 0.5, 0.03}};
    open_fixture(&c.f, &key);
    (void)ppo_loss(&c); /* log-probabilities to start from */
    for (int r = 0; r < ROWS; r++) {
        ho_branches_choice(&c.f.net.branches, (r * 19 + 4) % HO_ACTIONS, c.choice + r * 3);
        const double now = ho_ppo_choice_log_p(
            &c.f.net, c.f.rows.act[HO_LAYER_MAIN1] + r * c.f.rows.row[HO_LAYER_MAIN1],
            c.choice + r * 3);
        /* ratios inside and outside the clip range, with both signs of the advantage */
        c.log_p_old[r] = now + (double[]){0.05, -0.5, 0.6, -0.5, -0.1}[r];
        c.advantage[r] = (double[]){1.2, 0.7, -0.8, -1.1, 0.4}[r];
        const double value = c.f.rows.act[HO_LAYER_VALUE1][r * c.f.rows.row[HO_LAYER_VALUE1]];
        c.value_old[r] = value + (double[]){0.05, -0.5, 0.6, -0.05, 0.5}[r];
        c.value_target[r] = value + 0.4 * random_number();
    }
    (void)ppo_loss(&c);
    ho_net_backward(&c.f.net, &c.f.pack, c.f.x, ROWS, 1.0, &c.f.rows, gradient);
    compare(&c.f, ppo_loss, &c, 1.0, form);
    free(c.f.block);
}

static void every_ppo_form_has_the_gradient_of_its_loss(void **state)
{
    (void)state;
    for (int form = 0; form < 8; form++) {
        check_ppo(form & 1, form >> 1 & 1, form & 4 ? 0.2 : 0.0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dqn_form_has_the_gradient_of_its_loss),
        cmocka_unit_test(dueling_mean_is_per_sample_not_over_the_batch),
        cmocka_unit_test(every_ppo_form_has_the_gradient_of_its_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
