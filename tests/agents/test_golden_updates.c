/* SPDX-License-Identifier: Apache-2.0
 * Single updates against PyTorch (golden.json, made by make_golden.py): targets, losses,
 * priorities, gradient norms and all parameters after one Adam step; GAE, n-step sums, AdamW.
 * The product's float32 is compared with float64: 3e-6 relative is some tens of roundings. */
#include <cjson/cJSON.h>
#include <stdlib.h>

#include "check.h"
#include "kernels/agents/ppo.h"
#include "kernels/agents/value.h"
#include "kernels/cpu/dqn_loss.h"
#include "kernels/cpu/ppo_loss.h"

#define TOLERANCE 3e-6

static cJSON *golden;

static const cJSON *item(const cJSON *object, const char *name)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!found) {
        fail_msg("golden.json has no %s", name);
    }
    return found;
}

static double number(const cJSON *object, const char *name)
{
    return item(object, name)->type == cJSON_True ? 1.0 : item(object, name)->valuedouble;
}

static int read_floats(const cJSON *array, float *out)
{
    int n = 0;
    const cJSON *x;
    cJSON_ArrayForEach(x, array)
    {
        out[n++] = (float)x->valuedouble;
    }
    return n;
}

static void check_array(const char *form, const char *what, const float *got, const cJSON *want)
{
    int i = 0;
    const cJSON *x;
    assert_true(cJSON_GetArraySize(want) > 0);
    cJSON_ArrayForEach(x, want)
    {
        const double w = x->valuedouble, room = TOLERANCE * (fabs(w) > 1.0 ? fabs(w) : 1.0);
        if (!(fabs((double)got[i] - w) <= room)) {
            fail_msg("%s: %s[%d] = %.9g, torch says %.9g", form, what, i, (double)got[i], w);
        }
        i++;
    }
}

/* A network of a case: layout, parameters by name, room for everything else. */
typedef struct network {
    ho_net_layout layout;
    float parameter[4096], target[4096], gradient[4096], m[4096], v[4096];
    float noise[512], target_noise[512];
    ho_net_pack pack, target_pack;
    ho_net_rows rows, selector, other;
    float x[16 * 128], x_next[16 * 128];
    int32_t choice[16 * HO_BRANCHES_MAX];
    int n; /* rows */
    void *block;
} network;

static void read_parameters(const ho_net_layout *layout, const cJSON *named, float *out)
{
    ho_net_tensor tensor[HO_NET_TENSORS_MAX];
    const int n = ho_net_layout_tensors(layout, tensor);
    assert_int_equal(n, cJSON_GetArraySize(named));
    for (int i = 0; i < n; i++) {
        assert_int_equal(read_floats(item(named, tensor[i].name), out + tensor[i].offset),
                         tensor[i].count);
    }
}

static void read_noise(const ho_net_layout *layout, const cJSON *named, float *out)
{
    for (int i = 0; i < HO_LAYERS; i++) {
        if (layout->layer[i].noisy) {
            (void)read_floats(item(named, layout->layer[i].name), out + layout->layer[i].noise);
        }
    }
}

static void carve_network(network *w, ho_carve *carve)
{
    ho_net_pack_carve(&w->pack, &w->layout, 1, carve);
    ho_net_pack_carve(&w->target_pack, &w->layout, 0, carve);
    ho_net_rows_carve(&w->rows, &w->layout, 16, 1, carve);
    ho_net_rows_carve(&w->selector, &w->layout, 16, 0, carve);
    ho_net_rows_carve(&w->other, &w->layout, 16, 0, carve);
}

static void read_states(const network *w, const cJSON *array, float *out)
{
    float flat[512];
    const int count = read_floats(array, flat), S = w->layout.state;
    for (int i = 0; i < count; i++) {
        out[i / S * w->rows.x_row + i % S] = flat[i];
    }
}

static network *open_network(const cJSON *c, ho_cohort_key key)
{
    network *w = calloc(1, sizeof *w);
    assert_non_null(w);
    const char *actions = item(c, "actions")->valuestring;
    key.hidden1 = 6;
    key.hidden2 = 5;
    key.head = 4;
    key.market_features = 2;
    key.state_form = HO_STATE_SEED54;
    key.action_set = strcmp(actions, "exposure5") == 0 ? HO_ACTIONS_EXPOSURE5 : HO_ACTIONS_FULL45;
    key.branching = key.ppo_factored = strcmp(actions, "branching") == 0;
    w->layout = ho_net_layout_of(&key);
    assert_true(w->layout.size <= 4096 && w->layout.noise_size <= 512);
    read_parameters(&w->layout, item(c, "online"), w->parameter);
    ho_carve carve = {NULL, 0};
    carve_network(w, &carve);
    w->block = aligned_alloc(HO_CARVE_ALIGN, carve.used);
    assert_non_null(w->block);
    memset(w->block, 0, carve.used);
    carve = (ho_carve){w->block, 0};
    carve_network(w, &carve);
    read_states(w, item(c, "x"), w->x);
    const int D = w->layout.branches.count;
    const cJSON *x;
    int i = 0;
    cJSON_ArrayForEach(x, item(c, "choice"))
    {
        w->choice[i / D * HO_BRANCHES_MAX + i % D] = x->valueint;
        i++;
    }
    w->n = i / D;
    assert_int_equal(w->n, 7);
    return w;
}

static void close_network(network *w)
{
    free(w->block);
    free(w);
}

/* Norm, clip, one Adam step from fresh moments, and the comparison. */
static void check_step(const cJSON *c, network *w)
{
    const char *form = item(c, "name")->valuestring;
    const cJSON *want = item(c, "want");
    const double norm = sqrt(ho_simd_get()->square_sum(w->gradient, w->layout.size));
    CHECK_CLOSE(norm, number(want, "norm"), TOLERANCE);
    const cJSON *decay = cJSON_GetObjectItemCaseSensitive(c, "decay");
    const ho_agent_config agent = {.adam_beta1 = 0.9,
                                   .adam_beta2 = 0.999,
                                   .adam_eps = 1e-5,
                                   .weight_decay = decay ? decay->valuedouble : 0.0};
    const ho_adam adam =
        ho_adam_of(&agent, number(c, "lr"), 1, ho_clip_scale(norm, number(c, "max_norm")));
    ho_simd_get()->adam(&adam, w->gradient, w->parameter, w->m, w->v, NULL, 0.0f, w->layout.size);
    ho_net_tensor tensor[HO_NET_TENSORS_MAX];
    const int n = ho_net_layout_tensors(&w->layout, tensor);
    for (int i = 0; i < n; i++) {
        char what[128];
        snprintf(what, sizeof what, "%.63s after the step", tensor[i].name);
        check_array(form, what, w->parameter + tensor[i].offset,
                    item(item(want, "after"), tensor[i].name));
    }
}

static void check_dqn(const cJSON *c)
{
    const char *form = item(c, "name")->valuestring;
    const ho_cohort_key key = {.dueling = (int32_t)number(c, "dueling"),
                               .atoms = (int32_t)number(c, "atoms"),
                               .noisy = (int32_t)number(c, "noisy")};
    network *w = open_network(c, key);
    const ho_net_layout *net = &w->layout;
    const float v_max = (float)number(c, "v_max");
    float reward[16], discount[16], weight[16], y[16 * 16], td[16];
    ho_dqn_row row[16];
    double loss = 0.0;
    read_parameters(net, item(c, "target"), w->target);
    read_states(w, item(c, "x_next"), w->x_next);
    (void)read_floats(item(c, "reward"), reward);
    (void)read_floats(item(c, "discount"), discount);
    (void)read_floats(item(c, "weight"), weight);
    read_noise(net, item(c, "noise"), w->noise);
    read_noise(net, item(c, "target_noise"), w->target_noise);
    const float *noise = key.noisy ? w->noise : NULL;
    ho_net_pack_fill(&w->pack, net, w->parameter, noise);
    ho_net_pack_fill(&w->target_pack, net, w->target, key.noisy ? w->target_noise : NULL);
    ho_net_forward(net, &w->target_pack, w->x_next, w->n, HO_NET_BOTH, &w->other);
    ho_dqn_values(net, w->n, v_max, &w->other);
    ho_net_forward(net, &w->pack, w->x_next, w->n, HO_NET_BOTH, &w->selector);
    ho_dqn_values(net, w->n, v_max, &w->selector);
    ho_dqn_targets(net, w->n, v_max, reward, discount,
                   number(c, "double") != 0.0 ? &w->selector : &w->other, &w->other, y);
    check_array(form, "target", y, item(item(c, "want"), "y"));
    ho_net_forward(net, &w->pack, w->x, w->n, HO_NET_BOTH, &w->rows);
    ho_dqn_values(net, w->n, v_max, &w->rows);
    const ho_dqn_loss_spec spec = {w->n, (float)number(c, "delta"), v_max};
    ho_dqn_loss(net, &spec, w->n, w->choice, y, weight, &w->rows, row);
    for (int i = 0; i < w->n; i++) {
        loss += (double)row[i].loss / w->n;
        td[i] = row[i].td;
    }
    CHECK_CLOSE(loss, number(item(c, "want"), "loss"), TOLERANCE);
    check_array(form, "td", td, item(item(c, "want"), "td")); /* unweighted, whatever the weights */
    ho_net_backward(net, &w->pack, w->x, w->n, ho_dqn_trunk_scale(net), &w->rows, w->gradient);
    if (noise) {
        ho_net_noise_gradient(net, noise, w->gradient);
    }
    check_step(c, w);
    close_network(w);
}

static void every_dqn_update_is_torchs(void **state)
{
    (void)state;
    const cJSON *c;
    assert_int_equal(cJSON_GetArraySize(item(golden, "dqn")), 12);
    cJSON_ArrayForEach(c, item(golden, "dqn"))
    {
        check_dqn(c);
    }
}

static void check_ppo(const cJSON *c)
{
    const ho_cohort_key key = {.algorithm = HO_PPO, .ppo_separate = (int32_t)number(c, "separate")};
    network *w = open_network(c, key);
    float log_p_old[16], advantage[16], value_old[16], value_target[16];
    ho_ppo_sums sums = {0};
    (void)read_floats(item(c, "log_p_old"), log_p_old);
    (void)read_floats(item(c, "advantage"), advantage);
    (void)read_floats(item(c, "value_old"), value_old);
    (void)read_floats(item(c, "value_target"), value_target);
    const ho_ppo_batch batch = {w->choice, log_p_old, advantage, value_old, value_target};
    const ho_ppo_loss_spec spec = {w->n, (float)number(c, "clip"), (float)number(c, "value_clip"),
                                   (float)number(c, "vf"), (float)number(c, "ent")};
    ho_net_pack_fill(&w->pack, &w->layout, w->parameter, NULL);
    ho_net_forward(&w->layout, &w->pack, w->x, w->n, HO_NET_BOTH, &w->rows);
    ho_ppo_log_probabilities(&w->layout, w->n, &w->rows);
    ho_ppo_loss(&w->layout, &spec, w->n, &batch, &w->rows, &sums);
    const cJSON *want = item(c, "want");
    const double n = w->n;
    CHECK_CLOSE(
        (sums.policy_loss + number(c, "vf") * sums.value_loss - number(c, "ent") * sums.entropy) /
            n,
        number(want, "loss"), TOLERANCE);
    CHECK_CLOSE(sums.kl / n, number(want, "kl"), TOLERANCE);
    CHECK_CLOSE(sums.entropy / n, number(want, "entropy"), TOLERANCE);
    assert_int_equal(sums.clipped, (int)number(want, "clipped"));
    ho_net_backward(&w->layout, &w->pack, w->x, w->n, 1.0f, &w->rows, w->gradient);
    check_step(c, w);
    close_network(w);
}

static void every_ppo_update_is_torchs(void **state)
{
    (void)state;
    const cJSON *c;
    assert_int_equal(cJSON_GetArraySize(item(golden, "ppo")), 4);
    cJSON_ArrayForEach(c, item(golden, "ppo"))
    {
        check_ppo(c);
    }
}

static void gae_keeps_the_bootstrap_of_a_truncation_and_cuts_there(void **state)
{
    (void)state;
    const cJSON *c = item(golden, "gae");
    float reward[64], value[64], value_next[64], end[64], advantage[64];
    const int n = read_floats(item(c, "reward"), reward);
    (void)read_floats(item(c, "value"), value);
    (void)read_floats(item(c, "value_next"), value_next);
    (void)read_floats(item(c, "end"), end);
    float next = 0.0f;
    for (int t = n - 1; t >= 0; t--) {
        next = ho_gae_step(reward[t], value[t], value_next[t], end[t] == 1.0f, end[t] != 0.0f, next,
                           (float)number(c, "gamma"), (float)number(c, "lambda"));
        advantage[t] = next;
    }
    check_array("gae", "advantage", advantage, item(c, "want"));
}

static void a_hundred_adam_steps_with_decay_are_adamw(void **state)
{
    (void)state;
    const cJSON *c = item(golden, "adam"), *g;
    float p[16], m[16] = {0}, v[16] = {0}, gradient[16];
    const int n = read_floats(item(c, "start"), p);
    const ho_agent_config agent = {.adam_beta1 = 0.9,
                                   .adam_beta2 = 0.999,
                                   .adam_eps = 1e-5,
                                   .weight_decay = number(c, "decay")};
    int t = 0;
    cJSON_ArrayForEach(g, item(c, "gradient"))
    {
        (void)read_floats(g, gradient);
        const ho_adam adam = ho_adam_of(&agent, number(c, "lr"), ++t, 1.0);
        ho_simd_get()->adam(&adam, gradient, p, m, v, NULL, 0.0f, n);
    }
    assert_int_equal(t, 100);
    check_array("adam", "parameter", p, item(c, "want"));
}

static void n_step_sums_stop_at_an_episodes_end_and_carry_gamma_to_the_m(void **state)
{
    (void)state;
    const cJSON *c = item(golden, "nstep"), *want;
    float reward[64], end[64];
    const int n = read_floats(item(c, "reward"), reward), steps = (int)number(c, "n");
    (void)read_floats(item(c, "end"), end);
    int t = 0;
    cJSON_ArrayForEach(want, item(c, "want"))
    {
        ho_nstep sum = {0.0, 1.0};
        int m = 0, k = t;
        do {
            ho_nstep_push(&sum, (double)reward[k], number(c, "gamma"));
            m++;
        } while (end[k++] == 0.0f && m < steps && k < n);
        const double discount = end[k - 1] == 1.0f ? 0.0 : sum.discount;
        CHECK_CLOSE(sum.reward, cJSON_GetArrayItem(want, 0)->valuedouble, TOLERANCE);
        CHECK_CLOSE(discount, cJSON_GetArrayItem(want, 1)->valuedouble, TOLERANCE);
        assert_int_equal(m, cJSON_GetArrayItem(want, 2)->valueint);
        t++;
    }
    assert_int_equal(t, n);
}

static int read_golden(void **state)
{
    (void)state;
    FILE *file = fopen(HO_SOURCE_DIR "/tests/agents/golden.json", "rb");
    static char text[1 << 20];
    if (!file) {
        return -1;
    }
    const size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    golden = cJSON_Parse(text);
    return golden ? 0 : -1;
}

static int free_golden(void **state)
{
    (void)state;
    cJSON_Delete(golden);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dqn_update_is_torchs),
        cmocka_unit_test(every_ppo_update_is_torchs),
        cmocka_unit_test(gae_keeps_the_bootstrap_of_a_truncation_and_cuts_there),
        cmocka_unit_test(a_hundred_adam_steps_with_decay_are_adamw),
        cmocka_unit_test(n_step_sums_stop_at_an_episodes_end_and_carry_gamma_to_the_m),
    };
    return cmocka_run_group_tests(tests, read_golden, free_golden);
}
